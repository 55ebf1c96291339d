// Puts the parts of the page in their places.

const MOST_GROUPS = 24, DRAWN_AT_ONCE = 10_000;

// The points of a series for a chart over time; `breaks` tells the period of windows that begin anew in each.
function overTime(release, series) {
  const { times, columns } = release, points = [];
  const anew = series.family === "to-date";
  for (let row = series.from; row < series.to; row++) {
    const end = columns.last[row];
    points.push({
      x: times.at(end) - (times.kind === "number" ? 1 : times.dates ? 86_400_000 : 0), row,
      breaks: anew ? columns.first[row] : 0, numbers: () => release.numbers(series, row),
    });
  }
  return points;
}

function valueOf(page) {
  return (n) => (page.consistent && n.consistent !== null ? n.consistent : n.estimate);
}

function timeChart(page, title, list, { height, domain, labels } = {}) {
  const { release } = page, { times } = release;
  return lineChart({
    title, height, domain, calendar: times.kind !== "number", axis: times.axis, confidence: page.confidence, value: valueOf(page),
    series: list.map((one, at) => ({ label: labels ? labels[at] : one.label, colour: `var(--s${at % 6})`, points: overTime(release, one) })),
    xText: (point) => { const n = point.numbers(); return times.span(n.first, n.last); },
    chosen: (point) => { const n = point.numbers(); page.choose(n.first, n.last); },
  }).node;
}

function familySection(page, place) {
  const { release } = page, name = place.dataset.window;
  const all = release.series.filter((one) => one.window === name);
  const totals = all.filter((one) => one.groups.every(([, value]) => value === "all"));
  const grouped = all.filter((one) => !totals.includes(one));
  const title = place.dataset.title;
  const parts = [];
  if (all[0].family === "any") parts.push(anySection(page, all, title));
  else {
    for (let at = 0; at < totals.length; at += 6) parts.push(timeChart(page, title, totals.slice(at, at + 6)));
    if (grouped.length) parts.push(multiples(page, title, grouped));
  }
  place.replaceChildren(...parts);
}

// One small chart a group, all with the same scale.
function multiples(page, title, grouped) {
  const groups = new Map();
  for (const one of grouped) {
    const words = one.groups.filter(([, value]) => value !== "all").map(([name, value]) => `${name} ${value}`).join(", ");
    groups.set(words, [...(groups.get(words) ?? []), one]);
  }
  const drawn = [...groups].slice(0, MOST_GROUPS);
  const domain = range(drawn.flatMap(([, list]) => list.map((one) => ({ points: overTime(page.release, one) }))), valueOf(page));
  const left = groups.size - drawn.length;
  const short = (one) => one.label.split(",")[0];
  return make("div", { class: "multiples" },
    ...drawn.map(([words, list]) => make("section", {}, make("h3", {}, words),
      timeChart(page, `${title}, ${words}`, list.slice(0, 6), { height: 180, domain, labels: list.map(short) }))),
    left ? make("p", { class: "note" }, `${left} more groups are in the table of numbers below.`) : null);
}

function anySection(page, all, title) {
  const { release, confidence } = page;
  const map = heatMap({ release, series: all[0], shownValue: valueOf(page), confidence, chosen: page.choose });
  const last = release.columns.last[all[0].to - 1];
  const byLength = make("div", {});
  const profile = (one) => {
    const points = [];
    for (let row = one.to - 1; row >= one.from && release.columns.last[row] === last; row--) {
      points.push({ x: last - release.columns.first[row] + 1, row, numbers: () => release.numbers(one, row) });
    }
    byLength.replaceChildren(make("h3", {}, `By length, for windows ${release.times.until} ${release.times.end(last)}`), lineChart({
      title: `${title} by length`, axis: `window length (${release.times.steps})`, confidence, value: valueOf(page), height: 240,
      series: [{ label: one.label, colour: "var(--s0)", points }],
      xText: (point) => { const n = point.numbers(); return release.times.span(n.first, n.last); },
      chosen: (point) => { const n = point.numbers(); page.choose(n.first, n.last); },
    }).node);
  };
  profile(all[0]);
  const id = `pick-${all[0].id}`;
  const pick = make("select", { id, onchange: () => { const one = release.series[Number(pick.value)]; map.show(one); profile(one); } },
    ...all.map((one) => make("option", { value: one.id }, one.label)));
  return make("div", {}, all.length > 1 ? make("p", { class: "controls screen" }, make("label", { for: id }, "Items seen ", pick)) : null, map.node, byLength);
}

async function start() {
  const index = JSON.parse(document.getElementById("index").textContent);
  const columns = await unpack(index, document.getElementById("numbers").textContent.trim());
  const release = new Release(index, columns);
  const page = { release, confidence: index.confidence, consistent: false, choose: () => {} };
  const tool = explorer(release, { confidence: index.confidence, factor: index.factor });
  document.getElementById("explore").replaceChildren(tool.node);
  page.choose = (first, last) => {
    tool.show(first, last);
    document.getElementById("explore").scrollIntoView({ behavior: "smooth", block: "nearest" });
  };
  const places = [...document.querySelectorAll("[data-window]")];
  const render = () => places.forEach((place) => familySection(page, place));
  const toggle = document.getElementById("consistent");
  toggle?.addEventListener("change", () => { page.consistent = toggle.checked; render(); });
  // Of many numbers, what is asked for first answers first, and the charts follow when the browser has drawn it. Of few
  // they come at once, for a screenshot is of the first picture. Where no frame is ever drawn, a timer ends the wait.
  document.documentElement.dataset.ready = "explorer";
  if (index.rows > DRAWN_AT_ONCE) {
    await new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 200); });
  }
  if (toggle) page.consistent = toggle.checked;
  render();
  document.getElementById("table").replaceChildren(numbersTable(release, index.confidence));
  document.documentElement.dataset.ready = "all";
}

start().catch((error) => {
  document.getElementById("explore").textContent = `The charts of this page could not be drawn: ${error.message}`;
  throw error;
});
