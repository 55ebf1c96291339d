// The planner: sliders for what is asked and for the budget, and the error that follows. An error is the noise scale that
// the budget buys (here) times the error at scale 1, which the library worked out at every stop (plan/unit_errors.py).

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

// The standard deviation of noise on whole numbers, as in reading/noise_moments.py; Gaussian noise is always fine here.
function deviation(law, scale, size) {
  if (law === "discrete Gaussian") return scale;
  if (law === "discrete Laplace") return Math.SQRT2 * Math.exp(-0.5 / scale) / -Math.expm1(-1 / scale);
  const [shape, least, parts] = law === "discrete range" ? [size + 2, 1, 6] : [size + 1, 0.5, 3];
  if (shape * Math.log(2 * Math.PI * scale) > 25) return Math.sqrt((shape * (shape + 1) * scale ** 2 - least ** 2) / parts);
  const radii = Array.from({ length: Math.ceil(shape * scale + 40 * scale * Math.sqrt(shape) + 60 * scale) + 2 }, (_, radius) => radius);
  const logs = radii.map((radius) => (shape - 1) * Math.log(radius + least) - radius / scale), most = logs.reduce((one, two) => Math.max(one, two));
  const weights = logs.map((log) => Math.exp(log - most)), whole = weights.reduce((sum, one) => sum + one);
  return Math.sqrt(radii.reduce((sum, radius, at) => sum + weights[at] * radius * (radius + 2 * least), 0) / whole / parts);
}

// As the library chooses: the first whose error is as good as the least (strategies/search/choice.py).
const ALIKE = 1 + 1e-6;
function firstNearBest(list, error) {
  const least = Math.min(...list.map(error));
  return list.find((one) => error(one) <= least * ALIKE);
}

// What `plan` says of one choice under a budget: a noise law for the whole plan, then some windows together where none errs more.
function planned({ rows, apart, together }, budget) {
  const priced = ({ law, shares, families }) => {
    const chosen = families.map((options, at) => {
      const bought = noiseScale(budget, law, shares[at]);
      return bought && firstNearBest(options.map((one) => {
        const scale = bought * one.scale, spread = deviation(one.noise, scale, one.size), joint = one.noise !== law;
        return { law: one.noise, score: one.score * (joint ? spread : scale), errors: one.errors.map((error) => error * spread) };
      }), (one) => one.score);
    });
    const mean = Math.exp(chosen.reduce((sum, one, at) => sum + shares[at] * Math.log(Math.max(one?.score ?? 0, 1e-300)), 0));
    return { shares, chosen, mean, served: chosen.every(Boolean) };
  };
  const first = firstNearBest(apart.map(priced).filter((one) => one.served), (one) => one.mean), joint = together && priced(together);
  if (!first) return null;
  const best = joint?.served && joint.chosen.every((one, at) => one.score <= first.chosen[at].score * ALIKE) ? joint : first;
  const errors = best.chosen.flatMap((one) => one.errors);
  return rows.map(({ family, window, measure, ...row }, at) => {
    const limit = budget.kind === "pure" ? row.pure_limit : row.limit;
    return { window, measure, law: best.chosen[family].law, error: errors[at], limit: limit === null ? null : limit * limitScale(budget, best.shares[family]) };
  });
}

// The choice at the stops of the sliders; null where no strategy serves it.
function choiceAt({ units, horizons, lengths, counted, choices }, { unit, horizon, length, seen }) {
  return choices[((units.indexOf(unit) * horizons.length + horizons.indexOf(horizon)) * lengths.length + length) * counted.length + seen];
}

// The least budget for which every row's error is at most so many counts; null if none up to 1000 does.
function budgetFor(choice, budget, error) {
  const worst = (amount) => Math.max(...planned(choice, { ...budget, amount }).map((one) => one.error));
  if (worst(1000) > error) return null;
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
function slider(name, label, { low, high, digits = 3, list, value, words, changed }) {
  const most = list ? list.length - 1 : 400;
  // Values are what the words say, so that they can be typed elsewhere.
  const valueAt = (at) => (list ? list[at] : Number((low * (high / low) ** (at / most)).toPrecision(digits)));
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
  return { node: make("div", { class: "slider" }, make("label", { for: name }, label), field, shownValue), state };
}

function startPlanner(data) {
  const place = document.getElementById("planner"), start = data.asked;
  const select = (id, options, value) => make("select", { id }, ...options.map(([one, words]) => make("option", { value: one, selected: one === value }, words)));
  const kind = select("kind", [["approximate", "(ε, δ)"], ["pure", "pure ε"], ["zcdp", "ρ (zero-concentrated)"]], start.kind);
  const unit = select("unit", data.units.map((one) => [one, one]), start.unit);
  const parts = {}, places = (list) => list.map((_, at) => at);
  const add = (key, label, options) => { if (!options.list || options.list.length > 1) parts[key] = slider(key, label, { ...options, changed: () => show() }); };
  add("amount", "Budget, ε or ρ", { low: 0.01, high: 20, value: start.amount, words: three });
  add("delta", "δ", { low: 1e-12, high: 1e-3, digits: 1, value: start.delta, words: (value) => Number(value.toPrecision(3)).toExponential() });
  add("horizon", "Steps of the range", { list: data.horizons, value: start.horizon, words: String });
  const own = data.lengths.findIndex((one) => one.join() === start.length.join());
  const moved = data.lengths[0].map((_, at) => at).filter((at) => new Set(data.lengths.map((one) => one[at])).size > 1);
  add("length", "Length of the windows", { list: places(data.lengths), value: own, words: (at) => moved.map((one) => data.lengths[at][one]).join(", ") });
  add("seen", "Items seen", { list: places(data.counted), value: 0, words: (at) => data.counted[at] });
  add("expected", "Expected count", { low: 10, high: 1e8, value: 10_000, words: three });
  add("wanted", "Wanted relative error", { low: 0.0005, high: 0.5, value: 0.01, words: percent });
  const value = (key, otherwise) => parts[key]?.state.value ?? otherwise;
  const table = make("div", {}), answer = make("p", { role: "status", class: "answer" }), curve = make("div", {});
  const show = () => {
    const choice = choiceAt(data, { unit: unit.value, horizon: value("horizon", start.horizon), length: value("length", own), seen: value("seen", 0) });
    const budget = { kind: kind.value, amount: value("amount"), delta: value("delta") }, found = choice && planned(choice, budget);
    const expected = value("expected"), wanted = value("wanted");
    parts.delta.node.hidden = kind.value !== "approximate";
    if (!found) {
      answer.textContent = "No strategy serves this unit with this kind of budget here.";
      table.replaceChildren();
      curve.replaceChildren();
      return;
    }
    table.replaceChildren(grid(["Window", "Seen", "Standard error", "Relative error", kind.value === "pure" ? "Least possible" : "Least of Gaussian noise", "Times that", "Noise"], found.map((one) => [
      one.window, one.measure, three(one.error), percent(one.error / expected), three(one.limit), one.limit ? three(one.error / one.limit) : "–", one.law.replace("discrete ", ""),
    ]), "Errors for these choices"));
    const needed = budgetFor(choice, budget, wanted * expected), symbol = kind.value === "zcdp" ? "ρ" : "ε";
    answer.textContent = needed === null ? `No budget up to 1,000 gives ${percent(wanted)} at ${three(expected)}.`
      : `${symbol} = ${three(needed)} gives a typical standard error of at most ${percent(wanted)} at a count of ${three(expected)}, in every row.`;
    drawCurve(curve, choice, budget, expected, symbol);
  };
  for (const field of [kind, unit]) field.addEventListener("change", show);
  place.replaceChildren(
    make("div", { class: "sliders" }, make("div", { class: "slider" }, make("label", { for: "kind" }, "Kind of budget"), kind),
      make("div", { class: "slider" }, make("label", { for: "unit" }, "Unit of privacy"), unit), ...Object.values(parts).map((part) => part.node)),
    table, make("h3", {}, "What budget?"), answer, curve);
  show();
  globalThis.planner = {
    planned: (asked) => planned(choiceAt(data, asked), asked.budget),
    budgetFor: (asked, error) => budgetFor(choiceAt(data, asked), asked.budget, error),
  };
  document.documentElement.dataset.ready = "all";
}

// The error of every row over budgets a tenth to ten times the one chosen, both in logarithms.
function drawCurve(place, choice, budget, expected, symbol) {
  const { rows } = choice, points = Array.from({ length: 41 }, (_, at) => {
    const amount = budget.amount * 10 ** ((at - 20) / 20);
    return { amount, errors: planned(choice, { ...budget, amount }).map((one) => one.error) };
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
    draw("text", { x: percentOf((power + 1) / 2), y: "100%", dy: 18, class: "tick", "text-anchor": anchor }, three(budget.amount * 10 ** power))));
  picture.append(draw("text", { x: 0, y: "100%", dy: 36, class: "title" }, `${symbol}, each mark ten times the one before`));
  const curves = draw("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", width: "100%", height: "100%" });
  rows.forEach((_, id) => curves.append(draw("path", { class: "line", stroke: `var(--s${id % 6})`,
    d: `M${points.map((one, at) => `${25 * at} ${(1000 * up(one.errors[id])).toFixed(1)}`).join("L")}` })));
  const line = draw("line", { y1: 0, y2: "100%", class: "cursor" });
  picture.append(curves, line);
  const chart = make("div", { class: "chart", style: "padding: 12px 12px 42px 64px" }, picture), readout = make("p", { class: "readout", "aria-hidden": "true" });
  const words = (at, id) => `${rows[id].window}, ${rows[id].measure}: standard error ${three(points[at].errors[id])}, ${percent(points[at].errors[id] / expected)} of ${three(expected)}`;
  const where = (at) => `${symbol} = ${three(points[at].amount)}: `;
  const control = cursor(chart, {
    count: 41, rows: rows.length, at: 20, label: title, text: (at, id) => where(at) + words(at, id),
    moved: (at) => {
      readout.replaceChildren(make("b", {}, where(at)), ...rows.map((_, id) => make("span", {}, make("i", { style: `background:var(--s${id % 6})` }), words(at, id))));
      for (const end of ["x1", "x2"]) line.setAttribute(end, percentOf(at / 40));
    },
  });
  pointed(chart, picture, (share) => control.set(Math.round(share * 40)));
  place.replaceChildren(make("h3", {}, title), chart, readout);
}

startPlanner(JSON.parse(document.getElementById("grid").textContent));
