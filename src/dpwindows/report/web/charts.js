// The cursor of charts that are drawn already (report/charts.py): mouse, touch and arrow keys move it. Under each chart
// stands what the cursor is at, with its error and interval, so that no number is read without them; for screen readers
// a chart is a slider that says it.

const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function draw(name, attributes = {}, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const percentOf = (share) => `${(100 * share).toFixed(2)}%`;

// A cursor over `count` positions of something focusable: one slider for mouse, touch and keys.
function cursor(place, { count, at, label, text, rows = 1, moved, chosen }) {
  const state = { at, row: 0 };
  const set = (next, row = state.row) => {
    state.at = Math.max(0, Math.min(count - 1, next));
    state.row = Math.max(0, Math.min(rows - 1, row));
    place.setAttribute("aria-valuenow", state.at);
    place.setAttribute("aria-valuetext", text(state.at, state.row));
    moved(state.at, state.row);
  };
  for (const [name, value] of Object.entries({
    tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": Math.max(0, count - 1),
  })) place.setAttribute(name, value);
  place.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.round(count / 20));
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -page, PageUp: page, Home: -count, End: count };
    if (event.key in steps) set(state.at + steps[event.key]);
    else if (event.key === "ArrowUp" && rows > 1) set(state.at, state.row + 1);
    else if (event.key === "ArrowDown" && rows > 1) set(state.at, state.row - 1);
    else if ((event.key === "Enter" || event.key === " ") && chosen) chosen(state.at, state.row);
    else return;
    event.preventDefault();
  });
  set(at, 0);
  return { set, again: () => set(state.at), choose: () => chosen(state.at, state.row) };
}

// Lets a pointer lead a cursor; `at(across, up)` gives its place for shares of the width and of the height.
function pointed(place, picture, at) {
  const lead = (event) => {
    const box = picture.getBoundingClientRect();
    at((event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height);
  };
  place.addEventListener("pointermove", lead);
  place.addEventListener("pointerdown", lead);
}

// What of a series a chart shows: its rows, and where they stand; over length the windows that end last, shortest first.
function pointsOf(release, series, along) {
  const { times, columns } = release, { from, to } = series;
  const shift = times.kind === "number" ? 1 : times.dates ? 86_400_000 : 0;
  const rows = Array.from({ length: to - from }, (_, at) => from + at);
  if (along === "time") return rows.map((row) => ({ row, x: times.at(columns.last[row]) - shift }));
  const last = columns.last[to - 1];
  return rows.filter((row) => columns.last[row] === last).reverse().map((row) => ({ row, x: last - columns.first[row] + 1 }));
}

const nearest = (points, x) => points.reduce((best, one) => (Math.abs(one.x - x) < Math.abs(best.x - x) ? one : best));
const isRaw = (place) => place.closest(".draw-raw") !== null;
const shareOf = ([low, high], value) => (high > low ? (value - low) / (high - low) : 0.5);
const axisOf = (text) => text.split(" ").map(Number);

function followLine(place, release, { confidence, chosen }) {
  const picture = place.querySelector("svg"), readout = place.nextElementSibling, { along } = place.dataset;
  const across = axisOf(place.dataset.x), upwards = axisOf(place.dataset.y);
  const legend = [...place.parentNode.querySelectorAll(".legend li")].map((one) => one.textContent);
  const series = place.dataset.series.split(" ").map((id, at) => {
    const one = release.series[id], dot = draw("circle", { r: 4, fill: `var(--s${at % 6})`, class: "dot" });
    return { name: legend.length ? `${legend[at]}: ` : "", colour: `var(--s${at % 6})`, dot, points: pointsOf(release, one, along), numbers: (point) => release.numbers(one, point.row) };
  });
  const main = series[0].points, line = draw("line", { y1: 0, y2: "100%", class: "cursor" });
  picture.append(line, ...series.map(({ dot }) => dot));
  const pointAt = (one, at) => (one === series[0] ? main[at] : nearest(one.points, main[at].x));
  const where = (n) => release.times.span(n.first, n.last);
  const control = cursor(place, {
    count: main.length, rows: series.length, at: main.length - 1, label: place.getAttribute("aria-label"),
    text: (at, row) => { const one = series[row], n = one.numbers(pointAt(one, at)); return `${where(n)}: ${one.name}${told(n, confidence)}`; },
    chosen: (at) => { const n = series[0].numbers(main[at]); chosen?.(n.first, n.last); },
    moved: (at) => {
      readout.replaceChildren(make("b", {}, `${where(series[0].numbers(main[at]))}: `));
      for (const one of series) {
        const point = pointAt(one, at), n = one.numbers(point), value = isRaw(place) ? n.estimate : n.consistent ?? n.estimate;
        const fitted = value === n.estimate ? "" : `${shown(value)} made consistent; estimate `;
        const words = `${one.name}${fitted}${shown(n.estimate, n.decimals)} (${confidence} interval ${interval(n)}; standard error ${shownError(n.error)})`;
        readout.append(make("span", {}, make("i", { style: `background:${one.colour}` }), words));
        one.dot.setAttribute("cx", percentOf(shareOf(across, point.x)));
        one.dot.setAttribute("cy", value === null ? -99 : percentOf(1 - shareOf(upwards, value)));
      }
      for (const end of ["x1", "x2"]) line.setAttribute(end, percentOf(shareOf(across, main[at].x)));
    },
  });
  pointed(place, picture, (share) => control.set(main.indexOf(nearest(main, across[0] + share * (across[1] - across[0])))));
  return control;
}

// All windows of an `any` family: when they end across, how long they are upwards.
function followMap(place, release, { confidence, chosen }) {
  const picture = place.querySelector("svg"), readout = place.nextElementSibling, { times, columns } = release;
  const one = release.series[place.dataset.series], tall = axisOf(place.dataset.y)[1];
  const ends = [...new Set(columns.last.subarray(one.from, one.to))];
  let longest = 1;
  for (let row = one.from; row < one.to; row++) longest = Math.max(longest, columns.last[row] - columns.first[row] + 1);
  const marker = draw("circle", { r: 6, class: "marker" });
  picture.append(marker);
  const control = cursor(place, {
    count: ends.length, rows: longest, at: ends.length - 1,
    label: `Every window: ${one.label}. Left and right: when it ends. Up and down: how long it is. Enter: show it above.`,
    text: (at, row) => {
      const end = ends[at], first = Math.max(1, end - row), found = release.row(one, first, end);
      return `${times.span(first, end)}: ${found < 0 ? "not released" : told(release.numbers(one, found), confidence)}`;
    },
    chosen: (at, row) => chosen?.(Math.max(1, ends[at] - row), ends[at]),
    moved: (at, row) => {
      readout.textContent = place.getAttribute("aria-valuetext");
      marker.setAttribute("cx", percentOf((at + 0.5) / ends.length));
      marker.setAttribute("cy", percentOf(1 - (row + 0.5) / tall));
    },
  });
  pointed(place, picture, (across, up) => control.set(Math.floor(across * ends.length), Math.floor(up * tall)));
  place.addEventListener("click", control.choose);
  return control;
}

// Of the panels of a figure that a reader picks from, shows the picked ones.
function choose(figure) {
  const panels = [...figure.querySelectorAll("[data-choice]")], all = [...new Set(panels.map((one) => one.dataset.choice))];
  if (all.length < 2) return;
  const id = `${figure.querySelector("h2").id}-choice`;
  const pick = make("select", { id }, ...all.map((one) => make("option", {}, one)));
  const show = () => { for (const one of panels) one.hidden = one.dataset.choice !== pick.value; };
  pick.addEventListener("change", show);
  panels[0].before(make("p", { class: "controls screen" }, make("label", { for: id }, "Seen ", pick)));
  show();
}

// Makes all charts under `root` answer. `chosen(first, last)` is called with a window that is asked for; the function
// that comes back says anew what stands under each chart.
function answering(root, release, options) {
  const controls = [...root.querySelectorAll("[data-along]")].map((place) => {
    place.nextElementSibling.setAttribute("aria-hidden", "true");
    return (place.dataset.along === "both" ? followMap : followLine)(place, release, options);
  });
  root.querySelectorAll("figure").forEach(choose);
  return () => controls.forEach((one) => one.again());
}

// A table with its caption, in a box that scrolls sideways by itself. Each cell knows its column, for narrow screens.
function grid(head, rows, caption) {
  const numeric = (at) => (at > 0 ? { class: "n" } : {});
  return make("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": caption },
    make("table", {}, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...head.map((name, at) => make("th", { scope: "col", ...numeric(at) }, name)))),
      make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell, at) =>
        at ? make("td", { ...numeric(at), "data-column": head[at] }, cell) : make("th", { scope: "row" }, cell)))))));
}
