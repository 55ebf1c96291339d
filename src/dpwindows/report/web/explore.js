// Any two dates: two fields and a brush choose a window, a table answers for every k and group, a second window compares.

const MOST_ROWS = 60;

// Two fields that hold one window; `changed(first, last)` is called with whole steps when either is typed in.
function windowFields(times, name, changed) {
  const limits = { min: times.fieldOf(times.start(times.firstBoundary + 1)), max: times.fieldOf(times.end(times.lastBoundary)) };
  const step = times.seconds ? 1 : null;
  const from = make("input", { type: times.fieldType, id: `${name}-from`, ...limits, step });
  const to = make("input", { type: times.fieldType, id: `${name}-to`, ...limits, step });
  const note = make("p", { class: "moved", role: "status" });
  const typed = (event) => {
    const was = new Map([[from, from.value], [to, to.value]]);
    const first = times.stepOf(from.value, false), last = times.stepOf(to.value, true);
    if (first === null || last === null) {
      note.textContent = `Type both ends of the window: the range is ${times.span(times.firstBoundary + 1, times.lastBoundary)}.`;
      return;
    }
    // The field that was typed in stands; the other follows where it must.
    if (event.target === from) changed(first, Math.max(first, last));
    else changed(Math.min(first, last), last);
    // What was typed is corrected only with a word about it.
    const moved = [...was].filter(([field, value]) => field.value !== value).map(([field, value]) => {
      const reason = field !== event.target ? "a window does not end before it starts"
        : value < limits.min || value > limits.max ? `the range is ${times.span(times.firstBoundary + 1, times.lastBoundary)}` : `the steps are ${times.steps}`;
      return `${value.replace("T", " ")} became ${field.value.replace("T", " ")}: ${reason}.`;
    });
    note.textContent = moved.join(" ");
  };
  for (const field of [from, to]) field.addEventListener("change", typed);
  const until = times.until[0].toUpperCase() + times.until.slice(1);
  const node = make("div", { class: "fields" },
    make("label", { for: from.id }, "From ", from), make("label", { for: to.id }, `${until} `, to), note);
  const show = (first, last) => {
    from.value = times.fieldOf(times.start(first));
    to.value = times.fieldOf(times.end(last));
    note.textContent = "";
  };
  return { node, show };
}

// A strip over the whole range with two handles and the part between them, for mouse, touch and arrow keys.
function brush(release, overview, changed) {
  const { times } = release, low = times.firstBoundary, high = times.lastBoundary, span = high - low;
  const picture = draw("svg", { "aria-hidden": "true", preserveAspectRatio: "none", viewBox: "0 0 1000 60" });
  const state = { first: low + 1, last: high };
  const handles = { first: "Start of the window", body: "The window as a whole", last: "End of the window" };
  const nodes = {};
  const strip = make("div", { class: "brush" }, picture);
  for (const [key, label] of Object.entries(handles)) {
    nodes[key] = make("div", { class: `handle ${key}`, role: "slider", tabindex: 0, "aria-label": label, "aria-valuemin": low, "aria-valuemax": high });
    strip.append(nodes[key]);
  }
  const place = (at) => `${((at - low) / span) * 100}%`;
  const show = (first, last) => {
    Object.assign(state, { first, last });
    nodes.first.style.left = place(first - 1);
    nodes.last.style.left = place(last);
    nodes.body.style.left = place(first - 1);
    nodes.body.style.width = `${((last - first + 1) / span) * 100}%`;
    const at = { first: first - 1, last, body: first - 1 };
    const words = { first: times.start(first), last: times.end(last), body: times.span(first, last) };
    for (const key of Object.keys(handles)) {
      nodes[key].setAttribute("aria-valuenow", at[key]);
      nodes[key].setAttribute("aria-valuetext", words[key]);
    }
  };
  const move = (key, steps, from = state) => {
    let { first, last } = from;
    if (key === "body") {
      const kept = Math.max(low + 1 - first, Math.min(high - last, steps));
      first += kept;
      last += kept;
    } else if (key === "first") first = Math.max(low + 1, Math.min(last, first + steps));
    else last = Math.max(first, Math.min(high, last + steps));
    if (first !== state.first || last !== state.last) changed(first, last);
  };
  for (const key of Object.keys(handles)) {
    nodes[key].addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.round(span / 20));
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -page, PageUp: page, Home: -span, End: span };
      if (!(event.key in steps)) return;
      event.preventDefault();
      move(key, steps[event.key]);
    });
  }
  const stepAt = (event) => {
    const box = strip.getBoundingClientRect();
    return low + Math.round(((event.clientX - box.left) / box.width) * span);
  };
  strip.addEventListener("pointerdown", (event) => {
    const key = Object.keys(handles).find((one) => event.target === nodes[one]);
    const begin = { at: stepAt(event), first: state.first, last: state.last };
    strip.setPointerCapture(event.pointerId);
    event.preventDefault();
    nodes[key ?? "body"].focus({ preventScroll: true });
    const drag = (next) => {
      const at = stepAt(next);
      if (key) move(key, at - begin.at, begin);
      // Outside the window a new one is drawn from here.
      else if (at !== begin.at) changed(Math.max(low + 1, Math.min(begin.at, at) + 1), Math.min(high, Math.max(begin.at, at)));
    };
    const stop = () => { strip.removeEventListener("pointermove", drag); strip.removeEventListener("pointerup", stop); };
    strip.addEventListener("pointermove", drag);
    strip.addEventListener("pointerup", stop);
    strip.addEventListener("pointercancel", stop, { once: true });
  });
  drawOverview(picture, release, overview, low, span);
  return { node: strip, show };
}

// The course of one series behind the brush: a shape to aim at, without numbers.
function drawOverview(picture, release, series, low, span) {
  const last = new Map();
  for (let row = series.from; row < series.to; row++) last.set(release.columns.last[row], row);
  const points = [...last].map(([end, row]) => [((end - low) / span) * 1000, release.numbers(series, row).estimate ?? 0]);
  const top = points.reduce((most, [, value]) => Math.max(most, value), 1);
  const path = points.map(([x, value]) => `${x.toFixed(1)},${(58 - (Math.max(0, value) / top) * 52).toFixed(1)}`);
  if (points.length) picture.append(draw("path", { d: `M${points[0][0].toFixed(1)},60L${path.join("L")}L${points.at(-1)[0].toFixed(1)},60Z` }));
}

// The released window that is closest to one that was not released.
function closest(release, first, last) {
  const { first: firsts, last: lasts } = release.columns;
  let best = 0, cost = Infinity;
  for (let row = 0; row < firsts.length; row++) {
    const apart = Math.abs(firsts[row] - first) + 1.001 * Math.abs(lasts[row] - last);
    if (apart < cost) [best, cost] = [row, apart];
  }
  return [firsts[best], lasts[best]];
}

// What is released for a window: its numbers by measure, or those of the closest window with a note that says so.
function answer(release, measures, first, last) {
  const find = (a, b) => measures.map((measure) => ({ measure, n: release.best(measure, a, b) })).filter(({ n }) => n);
  const exact = find(first, last);
  if (exact.length) return { first, last, found: exact, note: "" };
  const [a, b] = closest(release, first, last);
  const note = `No number was released for ${release.times.span(first, last)}. Shown is the closest window that was: ${release.times.span(a, b)}.`;
  return { first: a, last: b, found: find(a, b), note };
}

function windowName(times, first, last) {
  const epochs = times.epochs(first, last);
  const steps = last - first + 1;
  const length = times.steps.includes(" ") ? `${steps} ${times.steps}` : `${steps} ${steps === 1 ? times.steps.replace(/s$/, "") : times.steps}`;
  return `${times.span(first, last)} (${length}${epochs ? `; ${epochs}` : ""})`;
}

const sentenceCase = (text) => text[0].toUpperCase() + text.slice(1);

function answerTable(release, { first, last, found }, confidence) {
  const fitted = release.hasConsistent;
  const head = [`${sentenceCase(release.noun)} seen`, "Estimate", ...(fitted ? ["Made consistent"] : []), "Standard error", `${confidence} interval`, "Released as"];
  const rows = found.slice(0, MOST_ROWS).map(({ measure, n }) => [
    sentenceCase(measure.label), shown(n.estimate, n.decimals), ...(fitted ? [n.consistent === null ? "–" : shown(n.consistent)] : []),
    shownError(n.error) + (n.bias ? `, bias up to ${shown(n.bias, n.decimals)}` : ""), interval(n), n.series.window,
  ]);
  return grid(head, rows, windowName(release.times, first, last));
}

// The change from one window to another. Errors of two released numbers may be correlated; their sum bounds the error
// of the difference however they are, and the wider factor bounds its quantile for any noise in it.
function changeTable(release, one, other, factor, confidence) {
  const rows = [];
  for (const { measure, n } of one.found.slice(0, MOST_ROWS)) {
    const second = other.found.find((found) => found.measure === measure)?.n;
    if (!second || n.estimate === null || second.estimate === null) continue;
    const change = n.estimate - second.estimate, error = (n.error ?? Infinity) + (second.error ?? Infinity);
    const half = factor * error + n.bias + second.bias, decimals = Math.max(n.decimals, second.decimals);
    const signed = (value) => (value > 0 ? "+" : "") + shown(value, decimals);
    const verdict = change - half > 0 ? "more" : change + half < 0 ? "fewer" : "cannot be told apart";
    rows.push([sentenceCase(measure.label), `${shown(second.estimate, decimals)} (standard error ${shownError(second.error)})`, signed(change), `at most ${shownError(error)}`, `${signed(change - half)} to ${signed(change + half)}`, verdict]);
  }
  const span = (found) => release.times.span(found.first, found.last);
  return grid([`${sentenceCase(release.noun)} seen`, "In the other window", "Change", "Standard error", `${confidence} interval`, "So it is"], rows,
    `Change to ${span(one)} from ${span(other)}`);
}

// How often items were seen in the window: those seen at least k times, and exactly k times.
function frequency({ found }, confidence, noun) {
  const parts = [];
  for (const [kind, words, heading] of [["at_least", "at least", `Reach: ${noun} seen at least k times`], ["exactly", "exactly", `Frequency: ${noun} seen exactly k times`]]) {
    const bars = found.filter(({ measure, n }) => measure.measure === kind && n.estimate !== null && measure.groups.every(([, value]) => value === "all"))
      .sort((a, b) => a.measure.k - b.measure.k);
    const most = Math.max(...bars.map(({ n }) => n.upper ?? n.estimate), 1), part = (value) => percentOf(Math.max(0, value) / most);
    const rows = bars.flatMap(({ measure, n }) => [
      make("span", {}, `${words} ${measure.k === 1 ? "once" : measure.k === 2 ? "twice" : `${measure.k} times`}`),
      make("span", { class: "track" }, make("i", { style: `width:${part(n.estimate)}` }), make("b", { style: `left:${part(n.lower)};width:calc(${part(n.upper)} - ${part(n.lower)})` })),
      make("span", { class: "words" }, `${shown(n.estimate, n.decimals)} (${confidence} interval ${interval(n)})`),
    ]);
    if (bars.length > 1) parts.push(make("section", {}, make("h3", {}, heading), make("div", { class: "bars" }, ...rows)));
  }
  return parts;
}

function explorer(release, { confidence, factor }) {
  const { times } = release, measures = release.measures();
  const low = times.firstBoundary + 1, high = times.lastBoundary;
  const output = make("div", {}), said = make("p", { class: "said", role: "status" });
  const changes = make("div", {}), bars = make("div", {});
  let here = null, other = null;
  const wide = release.series.find((one) => one.family !== "any" && one.family !== "cumulative") ?? release.series[0];
  const fields = windowFields(times, "window", (first, last) => show(first, last));
  const strip = brush(release, wide, (first, last) => show(first, last));
  const second = windowFields(times, "other", (first, last) => compare(first, last));
  const renderChanges = () => changes.replaceChildren(
    ...(other.note ? [make("p", { class: "note" }, other.note)] : []), changeTable(release, here, other, factor, confidence));
  const compare = (first, last) => {
    second.show(first, last);
    other = answer(release, measures, first, last);
    renderChanges();
  };
  const show = (first, last) => {
    fields.show(first, last);
    strip.show(first, last);
    here = answer(release, measures, first, last);
    output.replaceChildren(...(here.note ? [make("p", { class: "note" }, here.note)] : []), answerTable(release, here, confidence));
    const main = here.found[0];
    said.textContent = main ? `${times.span(here.first, here.last)}: ${told(main.n, confidence)}, seen ${main.measure.label}.` : "";
    bars.replaceChildren(...frequency(here, confidence, release.noun));
    if (other) renderChanges();
  };
  const length = Math.min(28, Math.max(1, Math.round((high - low + 1) / 4)));
  const any = release.series.find((one) => one.family === "any");
  const start = any ? [high - length + 1, high] : [release.columns.first[wide.to - 1], release.columns.last[wide.to - 1]];
  show(...start);
  const before = start[1] - start[0] + 1;
  compare(Math.max(low, start[0] - before), Math.max(low, start[0] - 1));
  const hint = make("p", { class: "note screen" }, "Type two dates, or drag the ends of the bar, or move them with the arrow keys.");
  return {
    node: make("div", { class: "explorer" }, fields.node, strip.node, hint, said, output, bars,
      make("h3", {}, "What changed, against another window"), second.node, changes,
      make("p", { class: "note" }, "The error of a change is at most the sum of the two errors, however they are correlated; its interval is made with that bound and so is rather too wide than too narrow.")),
    show,
  };
}
