// One chart of one family in the output of a notebook's cell.
const release = new Release(given.index, await unpack(given.index, given.text));
const { times, columns } = release;
const pointsOf = (series) => Array.from({ length: series.rows }, (_, at) => {
  const row = series.from + (given.byLength ? series.rows - 1 - at : at);
  return {
    x: given.byLength ? columns.last[row] - columns.first[row] + 1 : times.at(columns.last[row]) - (times.kind === "number" ? 1 : 0),
    breaks: series.family === "to-date" ? columns.first[row] : 0, numbers: () => release.numbers(series, row),
  };
});
const colours = ["#0072b2", "#d55e00", "#00805c", "#b4538a", "#9a6a00", "#5b6770"];
place.append(lineChart({
  title: given.title, axis: `${given.title} (${given.byLength ? `window length, ${times.steps}` : times.axis})`,
  calendar: !given.byLength && times.kind !== "number", confidence: given.confidence, value: (n) => n.estimate, height: 260,
  series: release.series.map((one, at) => ({ label: one.label, colour: colours[at % 6], points: pointsOf(one) })),
  xText: (point) => { const n = point.numbers(); return times.span(n.first, n.last); },
}).node);
