// All windows of an `any` family: when they end across, how long they are upwards, the count as colour. Paler where the
// error is large beside the count. Each pixel is one released window; none is averaged.

function heatMap({ release, series, shownValue, confidence, chosen }) {
  const { times, columns } = release;
  const canvas = make("canvas", { "aria-hidden": "true" });
  const marker = make("span", { class: "crosshair", "aria-hidden": "true" });
  const place = make("div", { class: "heat" }, canvas, marker);
  const readout = make("p", { class: "readout", "aria-hidden": "true" });
  const legend = make("ul", { class: "legend", "aria-label": "Colours" });
  const axisX = make("p", { class: "axes", "aria-hidden": "true" });
  const height = 300;
  let ends = [], longest = 1, one = series, extent = [0, 1];
  const control = {};

  const rowOf = (end, length) => release.row(one, end - length + 1, end);
  const say = (at, row) => {
    const end = ends[at], length = Math.min(row + 1, end);
    const found = rowOf(end, length);
    const where = times.span(end - length + 1, end);
    return found < 0 ? `${where}: not released` : `${where}: ${told(release.numbers(one, found), confidence)}`;
  };
  const choose = (at, row) => chosen(Math.max(1, ends[at] - row), ends[at]);
  const moved = (at, row) => {
    readout.textContent = say(at, row);
    const width = canvas.clientWidth || 1;
    marker.style.left = `${((at + 0.5) / ends.length) * width}px`;
    marker.style.top = `${height - ((row + 0.5) / longest) * height}px`;
  };
  const set = (next) => {
    one = next;
    ends = [...new Set(columns.last.subarray(one.from, one.to))];
    longest = 1;
    extent = [0, 1];
    // A colour needs no more than about the range: of a great many windows one in so many tells it.
    const every = Math.ceil((one.to - one.from) / 200_000);
    for (let row = one.from; row < one.to; row++) {
      longest = Math.max(longest, columns.last[row] - columns.first[row] + 1);
      if (row % every) continue;
      const value = shownValue(release.numbers(one, row));
      if (value !== null) extent = [Math.min(extent[0], value), Math.max(extent[1], value)];
    }
  };
  set(series);
  Object.assign(control, cursor(place, {
    count: ends.length, rows: longest, at: ends.length - 1, text: say, moved, chosen: choose,
    label: `Every window: ${one.label}. Left and right: when it ends. Up and down: how long it is. Enter: show it above.`,
  }));

  const paint = () => {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio)), tall = Math.round(height * ratio);
    canvas.width = width;
    canvas.height = tall;
    const style = getComputedStyle(place);
    const colours = Array.from({ length: 8 }, (_, at) => channels(style.getPropertyValue(`--h${at}`)));
    const back = channels(style.getPropertyValue("--page"));
    const breaks = ticks(extent[0], extent[1], 8);
    const pickOf = (value) => Math.max(0, Math.min(7, Math.floor((value - (breaks.values[0] ?? 0)) / breaks.step)));
    const image = new ImageData(width, tall), data = new Uint32Array(image.data.buffer);
    const pixel = (colour, strength) => {
      const [r, g, b] = colour.map((channel, at) => Math.round(channel * strength + back[at] * (1 - strength)));
      return 0xff000000 | (b << 16) | (g << 8) | r;
    };
    const palette = colours.map((colour) => [1, 0.6, 0.25].map((strength) => pixel(colour, strength)));
    for (let px = 0; px < width; px++) {
      const end = ends[Math.min(ends.length - 1, Math.floor((px / width) * ends.length))];
      for (let py = 0; py < tall; py++) {
        const length = Math.floor(((tall - py - 0.5) / tall) * longest) + 1;
        const row = length > end ? -1 : rowOf(end, length);
        if (row < 0) continue;
        const n = release.numbers(one, row), value = shownValue(n);
        if (value === null) continue;
        const part = n.error / Math.max(1e-12, Math.abs(value));
        data[py * width + px] = palette[pickOf(value)][part <= 0.1 ? 0 : part <= 0.5 ? 1 : 2];
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    const used = breaks.values.filter((at) => pickOf(at) <= 7).slice(0, 8);
    legend.replaceChildren(
      ...used.map((at, id) => make("li", {}, make("i", { class: "cell", style: `background:var(--h${Math.min(7, id)})` }), `from ${shown(at)}`)),
      make("li", {}, "paler: the error is over 10 %, palest: over 50 % of the count"),
    );
    axisX.replaceChildren(
      make("span", {}, times.end(ends[0])), make("span", {}, `across: ${times.axis}; upwards: 1 to ${longest} ${times.steps}`), make("span", {}, times.end(ends.at(-1))),
    );
    control.set(control.state.at, control.state.row);
  };
  canvas.style.height = `${height}px`;
  const cell = (event) => {
    const box = canvas.getBoundingClientRect();
    return [
      Math.floor(((event.clientX - box.left) / box.width) * ends.length),
      Math.floor((1 - (event.clientY - box.top) / box.height) * longest),
    ];
  };
  place.addEventListener("pointermove", (event) => control.set(...cell(event)));
  place.addEventListener("click", (event) => { control.set(...cell(event)); choose(control.state.at, control.state.row); });
  responsive(place, paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  return {
    node: make("div", {}, legend, place, axisX, readout),
    show: (next) => { set(next); paint(); },
    repaint: () => { set(one); paint(); },
  };
}

function channels(colour) {
  const text = colour.trim().replace("#", "");
  return [0, 2, 4].map((at) => parseInt(text.slice(at, at + 2), 16));
}
