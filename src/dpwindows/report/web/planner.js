// The planner: sliders for what is asked and for the budget, and the error that follows. An error is the noise scale that
// the budget buys (here) times the error at scale 1, read off a grid that the library worked out (plan/unit_errors.py).

// The upper tail of the normal law, to seven digits (Numerical Recipes' rational Chebyshev fit of erfc).
function upperTail(x) {
  const z = Math.abs(x) / Math.SQRT2, t = 1 / (1 + 0.5 * z);
  const series = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
  const tail = 0.5 * t * Math.exp(-z * z + series.reduceRight((sum, term) => sum * t + term, 0));
  return x >= 0 ? tail : 1 - tail;
}

// The largest mu for which Gaussian noise of scale 1/mu has (epsilon, delta) at sensitivity 1 (Balle and Wang 2018).
function gaussianMu(epsilon, delta) {
  const spent = (mu) => upperTail(epsilon / mu - mu / 2) - Math.exp(epsilon) * upperTail(epsilon / mu + mu / 2);
  let low = 1e-9, high = 2 * Math.sqrt(epsilon + 80);
  for (let turn = 0; turn < 200 && high / low > 1 + 1e-12; turn++) {
    const middle = Math.sqrt(low * high);
    if (spent(middle) <= delta) low = middle;
    else high = middle;
  }
  return low;
}

// The noise scale at sensitivity 1 for a share of a budget; null where the law cannot serve it.
function noiseScale(budget, law, share) {
  if (law === "discrete Laplace") return budget.kind === "zcdp" ? null : 1 / (budget.amount * share);
  if (budget.kind === "pure") return null;
  const mu = budget.kind === "zcdp" ? Math.sqrt(2 * budget.amount) : gaussianMu(budget.amount, budget.delta);
  return 1 / (mu * Math.sqrt(share));
}

// What limits per unit of noise are multiplied by: under a pure budget they are for noise of any distribution.
function limitScale(budget, share) {
  if (budget.kind !== "pure") return noiseScale(budget, "discrete Gaussian", share);
  const quiet = Math.exp(-budget.amount * share);
  return Math.sqrt(2 * quiet / (1 + quiet)) / (1 - quiet);
}

// Between the two places of an axis around a value: [lower, upper, part of the way, in logarithms].
function between(axis, value) {
  if (!axis || axis.length < 2 || value <= axis[0]) return [0, 0, 0];
  const last = axis.length - 1;
  if (value >= axis[last]) return [last, last, 0];
  const upper = axis.findIndex((one) => one >= value);
  return [upper - 1, upper, Math.log(value / axis[upper - 1]) / Math.log(axis[upper] / axis[upper - 1])];
}

function readGrid(family, rows, { unit, length, horizon, k }) {
  const [l0, l1, lp] = between(family.lengths, length), [h0, h1, hp] = between(family.horizons, horizon), [k0, k1, kp] = between(family.ks, k);
  const lengths = family.lengths?.length ?? 1, at = family.units.indexOf(unit);
  let sum = 0;
  for (const [l, lw] of [[l0, 1 - lp], [l1, lp]]) {
    for (const [h, hw] of [[h0, 1 - hp], [h1, hp]]) {
      for (const [p, pw] of [[k0, 1 - kp], [k1, kp]]) {
        const weight = lw * hw * pw;
        if (!weight) continue;
        const value = rows[(at * lengths + l) * family.horizons.length + h][p];
        if (value === null || value === undefined) return null;
        sum += weight * Math.log(value);
      }
    }
  }
  return Math.exp(sum);
}

// Error and limit of every family: under the noise law with the least weighted geometric mean error, as the library plans.
function planned(grid, asked) {
  const found = Object.keys(grid.families[0].errors).map((law) => {
    let mean = 0;
    const errors = grid.families.map((family) => {
      const scale = noiseScale(asked.budget, law, family.share);
      const unit = scale === null ? null : readGrid(family, family.errors[law], { ...asked, length: asked.lengths?.[family.window] ?? asked.length });
      mean += unit === null ? Infinity : family.share * Math.log(scale * unit);
      return unit === null ? null : scale * unit;
    });
    return { law, errors, mean };
  });
  const best = found.reduce((one, other) => (other.mean < one.mean ? other : one));
  if (!Number.isFinite(best.mean)) return null;
  return grid.families.map((family, at) => {
    const scale = limitScale(asked.budget, family.share);
    const limit = readGrid(family, family.limit, { ...asked, length: asked.lengths?.[family.window] ?? asked.length });
    return { window: family.window, law: best.law, error: best.errors[at], limit: limit === null ? null : limit * scale };
  });
}

// The least budget for which every family's error is at most so many counts; null if none up to 1000 does.
function budgetFor(grid, asked, error) {
  const worst = (amount) => Math.max(...planned(grid, { ...asked, budget: { ...asked.budget, amount } }).map((one) => one.error));
  if (!planned(grid, asked) || worst(1000) > error) return null;
  let low = 1e-6, high = 1000;
  while (high / low > 1 + 1e-6) {
    const middle = Math.sqrt(low * high);
    if (worst(middle) <= error) high = middle;
    else low = middle;
  }
  return high;
}

const three = (value) => (value === null || value === undefined ? "–" : Number(value.toPrecision(3)).toLocaleString("en-US"));
const percent = (value) => `${three(100 * value)} %`;

// A slider over a geometric range or a list, with its value beside it in words.
function slider(name, label, { low, high, list: given, value, words, changed, note }) {
  const list = given && [...new Set([...given, value])].sort((a, b) => a - b);
  const most = list ? list.length - 1 : 400;
  const valueAt = (at) => (list ? list[at] : low * (high / low) ** (at / most));
  const atOf = (given) => (list ? list.indexOf(given) : Math.round((Math.log(given / low) / Math.log(high / low)) * most));
  const field = make("input", { type: "range", id: name, min: 0, max: most, step: 1, value: atOf(value) });
  const shownValue = make("output", { for: name }, words(value));
  field.setAttribute("aria-valuetext", words(value));
  const state = { value };
  field.addEventListener("input", () => {
    state.value = valueAt(Number(field.value));
    shownValue.textContent = words(state.value);
    field.setAttribute("aria-valuetext", words(state.value));
    changed();
  });
  return { node: make("div", { class: "slider" }, make("label", { for: name }, label), field, shownValue, note ? make("span", { class: "note" }, note) : null), state };
}

function whole(low, high) {
  const found = [];
  for (let at = low; at <= high; at = Math.max(at + 1, Math.round(at * 1.04))) found.push(at);
  return found.at(-1) === high ? found : [...found, high];
}

function startPlanner(data) {
  const place = document.getElementById("planner"), families = data.families, start = data.asked;
  const kind = make("select", { id: "kind" }, ...[["approximate", "(ε, δ)"], ["pure", "pure ε"], ["zcdp", "ρ (zero-concentrated)"]].map(([value, words]) => make("option", { value, selected: value === start.kind }, words)));
  const unit = make("select", { id: "unit" }, ...families[0].units.map((value) => make("option", { value, selected: value === start.unit }, value)));
  const parts = {};
  const render = () => show();
  const add = (key, label, options) => { parts[key] = slider(key, label, { ...options, changed: render }); };
  add("amount", "Budget, ε or ρ", { low: 0.01, high: 20, value: start.amount, words: three });
  add("delta", "δ", { low: 1e-12, high: 1e-3, value: start.delta, words: (value) => value.toExponential(0) });
  add("horizon", "Steps of the range", { list: whole(Math.min(...families.map((one) => one.horizons[0])), Math.max(...families.map((one) => one.horizons.at(-1)))), value: start.horizon, words: (value) => String(value) });
  add("k", "Seen at least k times, k =", { list: Array.from({ length: families[0].ks.at(-1) }, (_, at) => at + 1), value: 1, words: (value) => String(value) });
  for (const [id, family] of families.entries()) {
    if (!family.lengths || family.lengths.length < 2) continue;
    const own = Number(family.window.split(":")[1]);
    const list = [...new Set([...whole(family.lengths[0], family.lengths.at(-1)), Math.min(own, family.lengths.at(-1))])].sort((a, b) => a - b);
    add(`length-${id}`, `Steps of the windows ${family.window.split(":")[0]}`, { list, value: Math.min(own, family.lengths.at(-1)), words: (value) => String(value) });
  }
  add("expected", "Expected count", { low: 10, high: 1e8, value: 10_000, words: (value) => three(value) });
  add("wanted", "Wanted relative error", { low: 0.0005, high: 0.5, value: 0.01, words: percent });
  const state = () => ({
    unit: unit.value, horizon: parts.horizon.state.value, k: parts.k.state.value,
    lengths: Object.fromEntries(families.map((family, id) => [family.window, parts[`length-${id}`]?.state.value])),
    budget: { kind: kind.value, amount: parts.amount.state.value, delta: parts.delta.state.value },
  });
  const table = make("div", {}), answer = make("p", { role: "status", class: "answer" }), curve = make("div", {});
  const names = (family, asked) => (asked.lengths[family.window] ? `${family.window.split(":")[0]}:${asked.lengths[family.window]}` : family.window);
  const show = () => {
    const asked = state(), found = planned(data, asked), expected = parts.expected.state.value, wanted = parts.wanted.state.value;
    parts.delta.node.hidden = kind.value !== "approximate";
    if (!found) {
      answer.textContent = "No strategy serves this unit with this kind of budget here.";
      table.replaceChildren();
      curve.replaceChildren();
      return;
    }
    table.replaceChildren(grid(["Window", "Standard error", "Relative error", "Least possible", "Times that", "Noise"], found.map((one, id) => [
      names(families[id], asked), three(one.error), percent(one.error / expected), three(one.limit), one.limit ? three(one.error / one.limit) : "–", one.law.replace("discrete ", ""),
    ]), "Errors for these choices"));
    const needed = budgetFor(data, asked, wanted * expected), symbol = kind.value === "zcdp" ? "ρ" : "ε";
    answer.textContent = needed === null ? `No budget up to 1,000 gives ${percent(wanted)} at ${three(expected)}.`
      : `${symbol} = ${three(needed)} gives a typical standard error of at most ${percent(wanted)} at a count of ${three(expected)}, in every family of windows.`;
    drawCurve(curve, data, asked, expected, symbol, names);
  };
  for (const field of [kind, unit]) field.addEventListener("change", render);
  place.replaceChildren(
    make("div", { class: "sliders" }, make("div", { class: "slider" }, make("label", { for: "kind" }, "Kind of budget"), kind),
      make("div", { class: "slider" }, make("label", { for: "unit" }, "Unit of privacy"), unit), ...Object.values(parts).map((part) => part.node)),
    make("h3", {}, "What budget?"), answer, table, curve);
  show();
  globalThis.planner = { planned: (asked) => planned(data, asked), budgetFor: (asked, error) => budgetFor(data, asked, error) };
  document.documentElement.dataset.ready = "all";
}

// The error of every family over budgets a tenth to ten times the one chosen, both in logarithms.
function drawCurve(place, data, asked, expected, symbol, names) {
  const points = Array.from({ length: 41 }, (_, at) => {
    const amount = asked.budget.amount * 10 ** ((at - 20) / 20);
    return { amount, errors: planned(data, { ...asked, budget: { ...asked.budget, amount } }).map((one) => one.error) };
  });
  const all = points.flatMap((one) => one.errors), low = Math.min(...all) / 1.1, high = Math.max(...all) * 1.1;
  const up = (error) => 1 - Math.log(error / low) / Math.log(high / low), title = `Standard error against ${symbol}`;
  const picture = draw("svg", { "aria-hidden": "true", width: "100%", height: 200 });
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const mark of [1, 2, 5].map((digit) => digit * 10 ** power).filter((one) => one >= low && one <= high)) {
      const y = percentOf(up(mark));
      picture.append(draw("line", { x1: 0, x2: "100%", y1: y, y2: y, class: "grid" }), draw("text", { x: -6, y, dy: 4, class: "tick", "text-anchor": "end" }, three(mark)));
    }
  }
  [["start", -1], ["middle", 0], ["end", 1]].forEach(([anchor, power]) => picture.append(
    draw("text", { x: percentOf((power + 1) / 2), y: "100%", dy: 18, class: "tick", "text-anchor": anchor }, three(asked.budget.amount * 10 ** power))));
  picture.append(draw("text", { x: 0, y: "100%", dy: 36, class: "title" }, `${symbol}, each mark ten times the one before`));
  const curves = draw("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", width: "100%", height: "100%" });
  data.families.forEach((_, id) => curves.append(draw("path", { class: "line", stroke: `var(--s${id % 6})`,
    d: `M${points.map((one, at) => `${25 * at} ${(1000 * up(one.errors[id])).toFixed(1)}`).join("L")}` })));
  const line = draw("line", { y1: 0, y2: "100%", class: "cursor" });
  picture.append(curves, line);
  const chart = make("div", { class: "chart", style: "padding: 12px 12px 42px 64px" }, picture), readout = make("p", { class: "readout", "aria-hidden": "true" });
  const words = (at, id) => `${names(data.families[id], asked)}: standard error ${three(points[at].errors[id])}, ${percent(points[at].errors[id] / expected)} of ${three(expected)}`;
  const where = (at) => `${symbol} = ${three(points[at].amount)}: `;
  const control = cursor(chart, {
    count: 41, rows: data.families.length, at: 20, label: title, text: (at, id) => where(at) + words(at, id),
    moved: (at) => {
      readout.replaceChildren(make("b", {}, where(at)), ...data.families.map((_, id) => make("span", {}, make("i", { style: `background:var(--s${id % 6})` }), words(at, id))));
      for (const end of ["x1", "x2"]) line.setAttribute(end, percentOf(at / 40));
    },
  });
  pointed(chart, picture, (share) => control.set(Math.round(share * 40)));
  place.replaceChildren(make("h3", {}, title), chart, readout);
}

startPlanner(JSON.parse(document.getElementById("grid").textContent));
