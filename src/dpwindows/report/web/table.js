// All numbers of the release as a table to page through, and as a file to download.

const PAGE_ROWS = 25;

function numbersTable(release, confidence) {
  const { times } = release;
  const choice = make("select", { id: "series" }, ...release.series.map((one) => make("option", { value: one.id }, `${one.window}, ${one.label}`)));
  const place = make("div", {}), where = make("span", { class: "where", role: "status" });
  let at = 0;
  const render = () => {
    const series = release.series[Number(choice.value)], pages = Math.max(1, Math.ceil(series.rows / PAGE_ROWS));
    at = Math.max(0, Math.min(pages - 1, at));
    const rows = [], fitted = release.hasConsistent, biased = "bias" in release.columns;
    for (let row = series.from + at * PAGE_ROWS; row < Math.min(series.to, series.from + (at + 1) * PAGE_ROWS); row++) {
      const n = release.numbers(series, row);
      rows.push([times.start(n.first), times.end(n.last), shown(n.estimate, n.decimals), ...(fitted ? [n.consistent === null ? "–" : shown(n.consistent)] : []),
        shownError(n.error), ...(biased ? [shown(n.bias, n.decimals)] : []), interval(n)]);
    }
    const head = ["From", sentenceCase(times.until), "Estimate", ...(fitted ? ["Made consistent"] : []), "Standard error", ...(biased ? ["Bias at most"] : []), `${confidence} interval`];
    place.replaceChildren(grid(head, rows, `${series.window}, seen ${series.label}: ${series.rows.toLocaleString("en-US")} windows`));
    where.textContent = `Page ${at + 1} of ${pages}`;
  };
  const turn = (steps) => () => { at += steps; render(); };
  choice.addEventListener("change", () => { at = 0; render(); });
  render();
  return make("div", {},
    make("p", { class: "controls screen" }, make("label", { for: "series" }, "Numbers of ", choice),
      make("button", { type: "button", onclick: turn(-1) }, "Earlier"), where, make("button", { type: "button", onclick: turn(1) }, "Later"),
      make("button", { type: "button", id: "download", onclick: () => download(release) }, "Download all as CSV")),
    place);
}

function asCsv(release) {
  const groups = release.series[0]?.groups.map(([name]) => name) ?? [];
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = [["window", "measure", "k", ...groups, "first_step", "last_step", "from", release.times.until, "estimate", "std_error", "bias_bound", "lower", "upper", "consistent"].map(quoted).join(",")];
  for (const series of release.series) {
    const head = [series.window, series.measure, series.k, ...series.groups.map(([, value]) => (value === "all" ? "" : value))].map((text) => quoted(String(text))).join(",");
    for (let row = series.from; row < series.to; row++) {
      const n = release.numbers(series, row), fixed = (value) => (value === null ? "" : value.toFixed(Math.max(0, n.decimals)));
      lines.push([head, n.first, n.last, release.times.start(n.first), release.times.end(n.last), fixed(n.estimate),
        n.error === null ? "" : Number(n.error.toPrecision(4)), fixed(n.bias), fixed(n.lower), fixed(n.upper), n.consistent ?? ""].join(","));
    }
  }
  return lines.join("\n") + "\n";
}

function download(release) {
  const link = make("a", { href: URL.createObjectURL(new Blob([asCsv(release)], { type: "text/csv" })), download: "release.csv" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
