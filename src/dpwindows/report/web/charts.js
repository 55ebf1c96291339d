// Charts as SVG with a cursor that mouse, touch and arrow keys move. Under each chart stands what the cursor is at, with
// its error and interval, so that no number is read without them; for screen readers a chart is a slider that says it.

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

// Round numbers that divide a range into about so many parts.
function ticks(low, high, parts) {
  const spread = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(spread / parts));
  const step = [1, 2, 2.5, 5, 10].map((nice) => nice * power).find((size) => spread / size <= parts) ?? 10 * power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) found.push(at * step);
  return { step, values: found };
}

// Dates that divide a range: years, months, days or parts of a day, whichever are few enough for the width.
function timeTicks(low, high, most) {
  const hour = 3_600_000, day = 24 * hour;
  const steps = [60_000, 300_000, 900_000, hour, 3 * hour, 6 * hour, day, 2 * day, 7 * day, 14 * day];
  const step = steps.find((size) => (high - low) / size <= most);
  if (step) {
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
    const iso = (at) => new Date(at).toISOString();
    return found.map((at) => [at, step < day && at % day ? iso(at).slice(11, 16) : iso(at).slice(step < day ? 5 : 0, 10)]);
  }
  const first = new Date(low), found = [];
  for (const months of [1, 2, 3, 6, 12, 24, 60, 120, 240, 1200]) {
    if ((high - low) / (months * 30.4 * day) > most) continue;
    const begin = first.getUTCFullYear() * 12 + first.getUTCMonth();
    for (let at = Math.ceil(begin / months) * months; ; at += months) {
      const when = Date.UTC(Math.floor(at / 12), at % 12);
      if (when > high) return found;
      if (when >= low) found.push([when, new Date(when).toISOString().slice(0, months < 12 ? 7 : 4)]);
    }
  }
  return found;
}

// A cursor over `count` positions of something focusable: one slider for mouse, touch and keys.
function cursor(place, { count, at, label, text, rows = 1, moved, chosen }) {
  const state = { at, row: 0 };
  const set = (next, row = state.row, quiet = false) => {
    state.at = Math.max(0, Math.min(count - 1, next));
    state.row = Math.max(0, Math.min(rows - 1, row));
    place.setAttribute("aria-valuenow", state.at);
    place.setAttribute("aria-valuetext", text(state.at, state.row));
    moved(state.at, state.row, quiet);
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
  set(at, 0, true);
  return { set, state };
}

// Redraws when the width changes, and once at first.
function responsive(place, redraw) {
  let width = 0;
  const look = () => {
    const now = Math.round(place.clientWidth);
    if (now && now !== width) redraw((width = now));
  };
  new ResizeObserver(look).observe(place);
  look();
}

// A chart of bands and lines.
//   series: [{label, colour, points: [{x, cut, row...}]}], each point with `numbers()`; x in data units, ascending.
//   xText(point): where it stands, in words; value(numbers): the number drawn.
function lineChart({ title, series, calendar, axis, xText, value, confidence, chosen, height = 300, domain, marks, saying = (n) => told(n, confidence) }) {
  const picture = draw("svg", { "aria-hidden": "true", height });
  const place = make("div", { class: "chart" }, picture);
  const readout = make("p", { class: "readout", "aria-hidden": "true" });
  const main = series[0].points;
  let dot = () => {};
  const near = (one, x) => one.points.reduce((best, p) => (Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best));
  const nameOf = (one) => (series.length > 1 ? `${one.label}: ` : "");
  const say = (at, row) => {
    const one = series[row], point = one === series[0] ? main[at] : near(one, main[at].x);
    return `${xText(point)}: ${nameOf(one)}${saying(point.numbers())}`;
  };
  const control = cursor(place, {
    count: main.length, at: main.length - 1, label: title, text: say, rows: series.length, chosen: chosen && ((at) => chosen(main[at])),
    moved: (at) => {
      readout.replaceChildren(make("b", {}, `${xText(main[at])}: `));
      series.forEach((one, id) => {
        const point = id ? near(one, main[at].x) : main[at], n = point.numbers();
        const fitted = value(n) === n.estimate ? "" : `${shown(value(n))} made consistent; estimate `;
        const words = nameOf(one) + (n.error === undefined ? saying(n) : `${fitted}${shown(n.estimate, n.decimals)} ± ${shownError(n.error)} (${confidence} interval ${interval(n)})`);
        readout.append(make("span", {}, make("i", { style: `background:${one.colour}` }), words));
      });
      dot(main[at].x);
    },
  });
  responsive(place, (width) => { dot = drawBands(picture, { series, width, height, calendar, axis, value, domain, near, marks }); control.set(control.state.at); });
  const follow = (event) => {
    const box = picture.getBoundingClientRect();
    const x = picture.invert((event.clientX - box.left));
    let low = 0;
    for (let at = 1; at < main.length; at++) if (Math.abs(main[at].x - x) < Math.abs(main[low].x - x)) low = at;
    control.set(low);
  };
  place.addEventListener("pointermove", follow);
  place.addEventListener("pointerdown", follow);
  return { node: make("div", {}, place, readout), control };
}

function range(series, value) {
  let low = 0, high = 0;
  for (const one of series) {
    for (const point of one.points) {
      const n = point.numbers();
      for (const v of [value(n), n.lower, n.upper]) {
        if (v !== null && v < low) low = v;
        if (v !== null && v > high) high = v;
      }
    }
  }
  const { step } = ticks(low, high, 5);
  return [low, Math.ceil(high / step - 1e-9) * step || (low < 0 ? 0 : 1)];
}

function drawBands(picture, { series, width, height, calendar, axis, value, domain, near, marks: given }) {
  const [low, high] = domain ?? range(series, value);
  const decimals = ticks(low, high, 5).step < 1 ? 1 : 0;
  const left = 14 + 7.5 * Math.max(shown(low, decimals).length, shown(high, decimals).length), right = 12, top = 12, bottom = 40;
  const points = series[0].points;
  const begin = points[0].x, end = points[points.length - 1].x;
  const inner = width - left - right;
  const x = (at) => left + (end > begin ? ((at - begin) / (end - begin)) * inner : inner / 2);
  const y = (at) => top + (1 - (at - low) / (high - low)) * (height - top - bottom);
  picture.invert = (at) => begin + ((at - left) / inner) * (end - begin);
  picture.replaceChildren();
  picture.setAttribute("width", width);
  for (const at of ticks(low, high, 5).values) {
    picture.append(draw("line", { x1: left, x2: width - right, y1: y(at), y2: y(at), class: at === 0 ? "zero" : "grid" }));
    picture.append(draw("text", { x: left - 6, y: y(at) + 4, class: "tick", "text-anchor": "end" }, shown(at, decimals)));
  }
  const most = Math.max(2, Math.floor(width / 95));
  const marks = given ? given : calendar ? timeTicks(begin, end, most) : ticks(begin, end, most).values.filter(Number.isInteger).map((at) => [at, String(at)]);
  for (const [at, words] of marks) {
    picture.append(draw("line", { x1: x(at), x2: x(at), y1: height - bottom, y2: height - bottom + 5, class: "axis" }));
    const anchor = x(at) < left + 30 ? "start" : x(at) > width - right - 36 ? "end" : "middle";
    picture.append(draw("text", { x: x(at), y: height - bottom + 18, class: "tick", "text-anchor": anchor }, words));
  }
  picture.append(draw("text", { x: left, y: height - 5, class: "title" }, axis));
  const few = points.length <= 40;
  for (const one of series) drawSeries(picture, one, { x, y, value, few, strength: series.length < 4 ? 0.25 : 0.14 });
  const line = draw("line", { y1: top, y2: height - bottom, class: "cursor" });
  const dots = series.map((one) => draw("circle", { r: 4, fill: one.colour, class: "dot" }));
  picture.append(line, ...dots);
  return (at) => {
    line.setAttribute("x1", x(at));
    line.setAttribute("x2", x(at));
    series.forEach((one, id) => {
      const point = near(one, at), v = value(point.numbers());
      dots[id].setAttribute("cx", x(point.x));
      dots[id].setAttribute("cy", v === null ? -99 : y(v));
    });
  };
}

// Band and line in pieces: a piece ends where a number is missing, a period begins anew, or windows stop being cut.
function drawSeries(picture, one, { x, y, value, few, strength }) {
  const pieces = [];
  let piece = null, before = null;
  const stride = Math.ceil(one.points.length / 2500);
  one.points.forEach((point, at) => {
    if (at % stride && at !== one.points.length - 1) return;
    const n = point.numbers(), v = value(n);
    if (v === null) { piece = null; return; }
    const here = { x: x(point.x), y: y(v), low: y(n.lower ?? v), high: y(n.upper ?? v), cut: n.cut };
    if (!piece || (point.breaks && point.breaks !== before?.breaks) || (before && before.cut !== n.cut)) {
      const joins = piece && before.cut !== n.cut && point.breaks === before.breaks;
      piece = [];
      piece.cut = joins ? before.cut : n.cut;
      pieces.push(piece);
      if (joins) { piece.push(before.here); piece.cut = n.cut; }
    }
    piece.push(here);
    before = { cut: n.cut, breaks: point.breaks, here };
  });
  for (const part of pieces) {
    const path = (list, key) => list.map((p) => `${p.x.toFixed(1)},${p[key].toFixed(1)}`).join("L");
    const opacity = part.cut ? strength / 2 : strength;
    if (few) {
      for (const p of part) picture.append(draw("line", { x1: p.x, x2: p.x, y1: p.low, y2: p.high, stroke: one.colour, "stroke-width": 1.5, opacity: 0.7 }));
    } else if (part.length > 1) {
      picture.append(draw("path", { d: `M${path(part, "high")}L${path([...part].reverse(), "low")}Z`, fill: one.colour, opacity }));
    }
    picture.append(draw("path", { d: `M${path(part, "y")}`, fill: "none", stroke: one.colour, "stroke-width": 1.75, "stroke-dasharray": part.cut ? "4 3" : "none" }));
    if (few || part.length === 1) for (const p of part) picture.append(draw("circle", { cx: p.x, cy: p.y, r: 3, fill: one.colour }));
  }
}

// Bars with their intervals: one a category, such as "at least 3 times".
function barChart({ title, bars, say, height = 220 }) {
  const picture = draw("svg", { "aria-hidden": "true", height });
  const place = make("div", { class: "chart" }, picture);
  const readout = make("p", { class: "readout", "aria-hidden": "true" });
  let mark = () => {};
  const control = cursor(place, {
    count: bars.length, at: 0, label: title, text: (at) => say(bars[at]),
    moved: (at) => { readout.textContent = say(bars[at]); mark(at); },
  });
  responsive(place, (width) => {
    const [low, high] = range([{ points: bars.map((bar) => ({ numbers: () => bar.numbers })) }], (n) => n.estimate);
    const left = 14 + 7.5 * Math.max(shown(low).length, shown(high).length), bottom = 24, top = 10;
    const y = (at) => top + (1 - (at - low) / (high - low)) * (height - top - bottom);
    const slot = (width - left - 10) / bars.length;
    picture.replaceChildren();
    picture.setAttribute("width", width);
    for (const at of ticks(low, high, 4).values) {
      picture.append(draw("line", { x1: left, x2: width, y1: y(at), y2: y(at), class: at === 0 ? "zero" : "grid" }));
      picture.append(draw("text", { x: left - 6, y: y(at) + 4, class: "tick", "text-anchor": "end" }, shown(at)));
    }
    const drawn = bars.map((bar, at) => {
      const n = bar.numbers, middle = left + slot * (at + 0.5), wide = Math.min(56, slot * 0.7);
      const value = n.estimate ?? 0;
      const box = draw("rect", { x: middle - wide / 2, width: wide, y: Math.min(y(value), y(0)), height: Math.abs(y(value) - y(0)), class: "bar" });
      picture.append(box, draw("line", { x1: middle, x2: middle, y1: y(n.lower ?? value), y2: y(n.upper ?? value), class: "whisker" }));
      if (slot > 26 || at % Math.ceil(26 / slot) === 0) picture.append(draw("text", { x: middle, y: height - 6, class: "tick", "text-anchor": "middle" }, bar.short));
      return box;
    });
    mark = (chosen) => drawn.forEach((box, at) => box.classList.toggle("chosen", at === chosen));
    control.set(control.state.at);
  });
  place.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const first = picture.querySelector(".bar")?.getBoundingClientRect();
    const last = [...picture.querySelectorAll(".bar")].at(-1)?.getBoundingClientRect();
    if (!first || !box.width) return;
    const middle = (rect) => rect.left + rect.width / 2;
    const slot = bars.length > 1 ? (middle(last) - middle(first)) / (bars.length - 1) : 1;
    control.set(Math.round((event.clientX - middle(first)) / slot));
  });
  return make("div", {}, place, readout);
}

// A table with its caption, in a box that scrolls sideways by itself.
function grid(head, rows, caption) {
  const numeric = (at) => (at > 0 ? { class: "n" } : {});
  return make("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": caption },
    make("table", {}, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...head.map((name, at) => make("th", { scope: "col", ...numeric(at) }, name)))),
      make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell, at) =>
        at ? make("td", numeric(at), cell) : make("th", { scope: "row" }, cell)))))));
}
