// Reads the packed numbers of a release (report/pack.py) and answers: which row is this window, how is it written.

const MISSING = -(2 ** 31);

async function unpack(index, text) {
  const letters = atob(text), raw = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) raw[at] = letters.charCodeAt(at);
  const opened = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(opened).arrayBuffer());
  const rows = index.rows, columns = {};
  let at = 0;
  for (const [name, planes] of index.columns) {
    const values = new Int32Array(rows);
    let before = 0;
    if (planes < 4) {
      const two = planes > 1, three = planes > 2;
      for (let row = 0, place = at; row < rows; row++, place++) {
        const folded = bytes[place] | (two ? bytes[place + rows] << 8 : 0) | (three ? bytes[place + 2 * rows] << 16 : 0);
        before += (folded >>> 1) ^ -(folded & 1);
        values[row] = before;
      }
    } else for (let row = 0; row < rows; row++) {
      let folded = 0;
      for (let plane = planes - 1; plane >= 0; plane--) folded = folded * 256 + bytes[at + plane * rows + row];
      before += folded % 2 ? -(folded + 1) / 2 : folded / 2;
      values[row] = before;
    }
    columns[name] = values;
    at += planes * rows;
  }
  return columns;
}

// The release as the page uses it: series with their places in the columns, times, and the numbers of one row.
class Release {
  constructor(index, columns) {
    this.columns = columns;
    this.noun = index.noun;
    this.times = new Times(index.times);
    let from = 0;
    this.series = index.series.map((one, id) => {
      const placed = { ...one, id, from, to: from + one.rows, family: one.window.split(":")[0] };
      from += one.rows;
      return placed;
    });
    this.windows = [...new Set(this.series.map((one) => one.window))];
    this.hasConsistent = "consistent" in columns;
  }

  // The row of a series for a window, or -1. Rows stand by last step, then by first.
  row(series, first, last) {
    const at = this.lowest(series, first, last);
    const { first: firsts, last: lasts } = this.columns;
    return at < series.to && firsts[at] === first && lasts[at] === last ? at : -1;
  }

  // The first row of a series at or after a window in its order.
  lowest(series, first, last) {
    const { first: firsts, last: lasts } = this.columns;
    let low = series.from, high = series.to;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lasts[middle] < last || (lasts[middle] === last && firsts[middle] < first)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // All numbers of one row; null where there is none.
  numbers(series, row) {
    const column = (name, unit) => {
      const value = this.columns[name]?.[row];
      return value === undefined || value === MISSING ? null : value * unit;
    };
    const unit = 10 ** -series.decimals;
    const estimate = column("estimate", unit), below = column("below", unit), above = column("above", unit);
    return {
      first: this.columns.first[row], last: this.columns.last[row], cut: Boolean(this.columns.cut?.[row]),
      estimate, error: column("error", series.errorUnit), bias: column("bias", unit) ?? 0,
      lower: estimate === null || below === null ? null : estimate - below,
      upper: estimate === null || above === null ? null : estimate + above,
      consistent: column("consistent", 1), decimals: series.decimals,
    };
  }

  // The number to quote for this measure and group: of all that were released for this very window (report/series.py).
  best(measure, first, last) {
    for (const series of measure.series) {
      const row = this.row(series, first, last);
      if (row >= 0 && !this.columns.surpassed?.[row]) return { ...this.numbers(series, row), series };
    }
    return null;
  }

  // Every (measure, k, group) with the series that hold it, in the order of the release.
  measures() {
    const found = new Map();
    for (const series of this.series) {
      const key = JSON.stringify([series.measure, series.k, series.groups]);
      if (!found.has(key)) {
        found.set(key, { key, measure: series.measure, k: series.k, label: series.label, groups: series.groups, series: [] });
      }
      found.get(key).series.push(series);
    }
    return [...found.values()];
  }
}

// Step boundaries as dates or numbers. Boundary 0 is the start of the first step, boundary t the end of step t.
class Times {
  constructor(index) {
    Object.assign(this, index);
    this.places = new Map();
    let step = index.first, value = 0n;
    const base = BigInt(index.base);
    this.places.set(step, base);
    for (const [steps, apart, count] of index.runs) {
      for (let repeat = 0; repeat < count; repeat++) {
        step += steps;
        value += BigInt(apart);
        this.places.set(step, base + value);
      }
    }
    this.firstBoundary = index.first;
    this.lastBoundary = step;
    this.known = [...this.places.keys()];
  }

  at(boundary) { return Number(this.places.get(boundary) ?? this.places.get(this.nearest(boundary))); }
  exact(boundary) { return this.places.get(boundary) ?? 0n; }

  nearest(boundary) {
    return this.known.reduce((best, one) => (Math.abs(one - boundary) < Math.abs(best - boundary) ? one : best));
  }

  // The text of a window's start (first step) and end (last step).
  start(step) { return this.text(this.exact(step - 1)); }
  end(step) {
    const exact = this.exact(step);
    if (this.kind === "number") return this.text(exact - 1n);
    return this.text(this.dates ? exact - 1n : exact);
  }

  text(value) {
    if (this.kind === "number") return String(value);
    const iso = new Date(Number(value)).toISOString();
    return this.dates ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${iso.slice(11, this.seconds ? 19 : 16)}`;
  }

  span(first, last) { return `${this.start(first)} ${this.until} ${this.end(last)}`; }

  // A window's times as the numbers they are in the release, where dates stand for numbers.
  epochs(first, last) {
    if (!this.epoch) return "";
    const number = (value) => (value * BigInt(this.epoch)) / 1000n;
    return `${number(this.exact(first - 1))} until ${number(this.exact(last))}`;
  }

  // Fields for typing times: their type, and values to and from steps.
  get fieldType() { return this.kind === "number" ? "number" : this.dates ? "date" : "datetime-local"; }
  fieldOf(text) { return this.fieldType === "datetime-local" ? text.replace(" ", "T") : text; }

  // The step that holds a typed start, or that ends with a typed end; null where nothing readable was typed.
  stepOf(typed, isEnd) {
    if (!typed) return null;
    const value = this.kind === "number" ? Number(typed) : Date.parse(typed + (this.dates ? "T00:00Z" : "Z"));
    if (!Number.isFinite(value)) return null;
    // The typed end is the last day or number inside, but for times of day, which are where the window stops.
    const inside = isEnd && !(this.kind === "number" || this.dates) ? value - 1 : value;
    let low = this.firstBoundary, high = this.lastBoundary;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.at(middle) <= inside) low = middle;
      else high = middle - 1;
    }
    return Math.min(this.lastBoundary, Math.max(this.firstBoundary + 1, low + 1));
  }
}

const counted = (decimals) => new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
const formats = Array.from({ length: 13 }, (_, decimals) => counted(decimals));

function shown(value, decimals = 0) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "unknown";
  const text = formats[Math.max(0, Math.min(12, decimals))].format(value);
  return (/^-[0.,]*$/.test(text) ? text.slice(1) : text).replace("-", "−");
}

// An error with three figures.
function shownError(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "unknown";
  if (Math.abs(value) >= 100) return shown(value);
  return String(Number(value.toPrecision(3)));
}

const interval = (n) => `${shown(n.lower, n.decimals)} to ${shown(n.upper, n.decimals)}`;

// One number with all that belongs to it, as a sentence says it.
function told(n, confidence) {
  const fitted = n.consistent === null ? "" : `, made consistent ${shown(n.consistent)}`;
  const biased = n.bias ? `, bias at most ${shown(n.bias, n.decimals)}` : "";
  return `${shown(n.estimate, n.decimals)}${fitted}, standard error ${shownError(n.error)}${biased}, ${confidence} interval ${interval(n)}`;
}
