// The scale of values: where each lies on it, its colours, the range of the rows that are
// not hidden, and the part of the legend that shows and changes them.

const histogramBins = 48;
const mostSampled = 100000; // values that tell which scale suits them

/** Writes a number as Number in internal/plot does: 0.05, 20, 5e6. */
function number(v) {
  const a = Math.abs(v);
  return a >= 1e-4 && a < 1e6 || v === 0 ? String(v) : v.toExponential().replace("e+", "e");
}

/** Writes a year with its fraction as a date, as 2020-02-29, and the time of day if it is not midnight. */
function dateText(v, withTime = true) {
  const text = new Date(Math.round((v - 1970) * 365.2425 * 24 * 60) * 60000).toISOString().replace("T", " ");
  return text.slice(0, withTime && !text.endsWith("00:00:00.000Z") ? -8 : -14);
}

/** Returns the first place in an increasing array of what is not below v. */
function firstFrom(array, v) {
  let from = 0, to = array.length;
  while (from < to) {
    const k = (from + to) >> 1;
    if (array[k] < v) from = k + 1;
    else to = k;
  }
  return from;
}

class ValueScale {
  /** Returns the scale of the values that colour the points, with all shown; null without values. */
  static of(app) {
    const column = app.data.columns[app.data.column];
    if (!column?.scale) return null;
    column.shown = column.shown ?? new ValueScale(app, column);
    column.shown.missing = true;
    column.shown._span(-Infinity, Infinity);
    return column.shown;
  }

  constructor(app, { scale, values }) {
    Object.assign(this, { app, values, dates: scale.dates, min: scale.low, max: scale.high, inks: scale.inks, round: scale.ticks.map((t) => t.value) });
    const every = Math.ceil(values.length / mostSampled);
    const some = values.filter((v, i) => i % every === 0 && !Number.isNaN(v)).sort();
    const quantile = (of, q) => of[Math.round(q * (of.length - 1))];
    const largest = Math.max(-this.min, this.max);
    // The symmetrical logarithm is about linear up to the unit.
    this.unit = Math.max(quantile(some.map(Math.abs).filter((v) => v > 0).sort(), 0.05) || 0, largest * 1e-300) || 1;
    this.digits = within(3 + Math.ceil(Math.log10(largest / (this.max - this.min) || 1) - 0.3), 3, 17);
    // Where the middle 90 % would have less than a tenth of the colours, they get more.
    const narrow = quantile(some, 0.95) / 2 - quantile(some, 0.05) / 2 < 0.1 * (this.max / 2 - this.min / 2);
    this.usual = narrow && !this.dates ? "log" : "linear";
    this._measure(this.usual);
  }

  /** Finds where all values lie on a scale: "linear", "log" or "quantile". */
  _measure(kind) {
    const { values } = this;
    this.kind = kind;
    if (kind === "quantile" && !this.known) this._rank();
    const [low, high] = kind === "quantile" ? [0, this.last[this.last.length - 1]] : [this._raw(this.min), this._raw(this.max)];
    Object.assign(this, { base: low, extent: high - low, at: new Float32Array(values.length), bins: new Uint32Array(histogramBins) });
    for (let i = 0; i < values.length; i++) {
      const t = this.at[i] = Number.isNaN(values[i]) ? NaN : this.place(values[i]);
      if (t === t) this.bins[Math.min(histogramBins - 1, Math.floor(t * histogramBins))]++;
    }
  }

  /** Finds the different values, and of each the last of its places among all in order. */
  _rank() {
    const sorted = this.values.filter((v) => !Number.isNaN(v)).sort();
    const known = new Float64Array(sorted.length), last = new Float64Array(sorted.length);
    let count = 0;
    for (let i = 0; i < sorted.length; i++) {
      if (sorted[i] === sorted[i + 1]) continue;
      known[count] = sorted[i];
      last[count++] = i;
    }
    Object.assign(this, { known: known.subarray(0, count), last: last.subarray(0, count) });
  }

  /** The scale itself, which increases with the value. Halves, because the range may overflow. */
  _raw(v) {
    if (this.kind === "linear") return v / 2;
    if (this.kind === "log") return this.min > 0 ? Math.log(v) : Math.sign(v) * Math.log1p(Math.abs(v) / this.unit);
    const k = firstFrom(this.known, v);
    return ((k ? this.last[k - 1] + 1 : 0) + this.last[k]) / 2; // equal values share the mean of their places
  }

  /** Returns where a value lies among all, from 0 to 1. */
  place(v) { return this.extent > 0 ? (this._raw(v) - this.base) / this.extent : 0.5; }

  /** Returns the value at a place: of quantiles one that there is, else a round one. */
  valueAt(t) {
    if (t <= 0 || t >= 1) return t <= 0 ? this.min : this.max;
    const raw = this.base + t * this.extent;
    if (this.kind === "quantile") return this.known[firstFrom(this.last, raw)];
    const v = this.kind === "linear" ? 2 * raw : this.min > 0 ? Math.exp(raw) : Math.sign(raw) * this.unit * Math.expm1(Math.abs(raw));
    return within(Number(v.toPrecision(this.digits)), this.min, this.max);
  }

  text(v, digits = this.digits) { return this.dates ? dateText(v, this.max - this.min < 0.05) : number(Number(v.toPrecision(digits))); }

  /** Returns the colour at a place in a theme. All colours together span the range. */
  ink(t, dark) { return this.inks[this.step(t)][dark]; }

  /** Returns the number of that colour. */
  step(t) {
    const last = this.inks.length - 1;
    return Math.round(this.to > this.from ? within((t - this.from) / (this.to - this.from), 0, 1) * last : last / 2);
  }

  /** Whether some values are out of the range. Rows without a value are so, too, then. */
  get narrowed() { return this.low > this.min || this.high < this.max; }

  has(row) {
    const v = this.values[row];
    return this.narrowed ? v >= this.low && v <= this.high : this.missing || !Number.isNaN(v);
  }

  /** The range as text, low..high, empty for all. */
  get range() { return this.narrowed ? number(this.low) + ".." + number(this.high) : ""; }
  set range(text) {
    const [low, high] = text ? text.split("..").map(Number) : [-Infinity, Infinity];
    this.set({ low, high });
  }

  _span(low, high) {
    [this.low, this.high] = low <= high ? [within(low, this.min, this.max), within(high, this.min, this.max)] : [this.min, this.max];
    [this.from, this.to] = [this.place(this.low), this.place(this.high)];
  }

  /** Sets the kind of the scale, and which values are shown, from low to high. */
  set({ kind = this.kind, low = this.low, high = this.high, missing = this.missing }) {
    if (kind !== this.kind && ["linear", "log", "quantile"].includes(kind)) this._measure(kind);
    this.missing = missing;
    this._span(low, high);
    this.app.rescale();
  }

  /** Shows all. */
  reset() { this.set({ low: -Infinity, high: Infinity, missing: true }); }

  /** Returns marks with room for their texts under the scale: { text, at }, at from 0 to 1. */
  marks() {
    const { kind, min, max, round } = this;
    const groups = []; // of texts and places that are shown together, the most important first
    const add = (values) => groups.push(values.filter((v) => v >= min && v <= max).map((v) => [number(v), this.place(v)]));
    if (kind === "quantile" || this.dates) {
      for (const group of [[0, 1], [0.5], [0.25, 0.75]]) groups.push(group.map((t) => [this.text(this.valueAt(t)), t]));
    } else {
      if (kind === "log") {
        const lowest = Math.floor(Math.log10(min > 0 ? min : this.unit)), highest = Math.floor(Math.log10(Math.max(-min, max)));
        add([0]);
        for (let every = 64; every >= 1; every /= 2) {
          for (const factors of every > 1 ? [[1]] : [[1], [2, 5]]) {
            const values = [];
            for (let e = Math.ceil(lowest / every) * every; e <= highest; e += every) for (const f of factors) values.push(Number(f + "e" + e), -Number(f + "e" + e));
            add(values);
          }
        }
      }
      if (groups.flat().length < 2) for (const every of [8, 4, 2, 1]) add(round.filter((_, k) => k % every === 0));
    }
    let marks = [];
    const free = (a, b) => a === b || a.text === b.text || Math.abs(a.at - b.at) >= (a.w + b.w) / 2;
    for (const group of groups) {
      const more = group.map(([text, t]) => {
        const w = 0.032 * text.length + 0.025; // the width of the text
        return { text, w, at: within(t, w / 2, 1 - w / 2) };
      }).filter((m) => marks.every((other) => other.text !== m.text) && (!marks.length || free(m, marks[0]))); // about 0, all crowd
      if (more.every((m) => [...marks, ...more].every((other) => free(m, other)))) marks = [...marks, ...more];
    }
    return marks.sort((a, b) => a.at - b.at);
  }
}

/** What the legend shows of values. */
class ValueLegend {
  constructor(app) {
    this.app = app;
    this.ends = { low: byId("range-low"), high: byId("range-high") };
    for (const end of Object.values(this.ends)) end.addEventListener("input", () => this._slide(end));
    byId("scale-kind").addEventListener("change", (e) => app.scale.set({ kind: e.target.value }));
    byId("range-reset").addEventListener("click", () => {
      this.ends.low.focus(); // the button goes
      app.scale.reset();
    });
    byId("missing").addEventListener("click", () => app.scale.set({ missing: !app.scale.missing }));
    // Arrows move the ends of the range, not the map.
    byId("colours").addEventListener("keydown", (e) => { if (/^(Arrow|Page|Home|End)/.test(e.key)) e.stopPropagation(); });
  }

  /** Takes over where an end of the range was put, not beyond the other. */
  _slide(end) {
    const { scale } = this.app, { low, high } = this.ends;
    if (Number(low.value) > Number(high.value)) end.value = (end === low ? high : low).value;
    this.moved = end;
    scale.set({ [end === low ? "low" : "high"]: scale.valueAt(end.value / end.max) });
  }

  /** Shows the scale in the colours of the theme. */
  paint() {
    const { app, app: { scale, dark } } = this;
    if (this.shown !== scale.bins) this._fill(scale);
    const inside = (t, half) => !scale.narrowed || t + half >= scale.from && t - half <= scale.to;
    const top = Math.max(...scale.bins), histogram = byId("histogram"), { width, height } = histogram, w = width / histogramBins;
    const g = histogram.getContext("2d");
    g.clearRect(0, 0, width, height);
    scale.bins.forEach((n, k) => {
      const t = (k + 0.5) / histogramBins, h = n && Math.max(3, Math.round(Math.sqrt(n / top) * height));
      g.fillStyle = inside(t, 0.5 / histogramBins) ? scale.ink(t, dark) : app.data.none[dark];
      g.fillRect(k * w, height - h, w - 1, h);
    });
    const bar = byId("colour-bar"), strip = bar.getContext("2d");
    strip.clearRect(0, 0, bar.width, 1);
    for (let x = 0; x < bar.width; x++) {
      const t = (x + 0.5) / bar.width;
      strip.fillStyle = scale.ink(t, dark);
      if (inside(t, 0.5 / bar.width)) strip.fillRect(x, 0, 1, 1);
    }
    for (const [name, end] of Object.entries(this.ends)) {
      // Equal values have one place; an end that is moved stays where it was put.
      const t = scale[name] === scale.min && name === "low" ? 0 : scale[name] === scale.max && name === "high" ? 1 : scale.place(scale[name]);
      if (end !== this.moved) end.value = t * end.max;
      end.setAttribute("aria-valuetext", scale.text(scale[name]));
    }
    this.moved = null;
    this.ends.low.style.zIndex = this.ends.low.value > this.ends.low.max / 2 ? 1 : 0; // or it could not be moved back
    byId("range-text").textContent = scale.text(scale.low) + (scale.max > scale.min ? " – " + scale.text(scale.high) : "");
    byId("range-reset").hidden = !scale.narrowed;
    const missing = byId("missing");
    missing.disabled = scale.narrowed;
    missing.setAttribute("aria-pressed", String(scale.missing && !scale.narrowed));
    missing.firstElementChild.style.background = app.data.none[dark];
  }

  /** Shows what changes with the column and the kind of scale. */
  _fill(scale) {
    this.shown = scale.bins;
    byId("scale-kind").value = scale.kind;
    byId("histogram").setAttribute("aria-label", `Histogram of values from ${scale.text(scale.min)} to ${scale.text(scale.max)}`);
    document.querySelector("#colours .marks").replaceChildren(...scale.marks().map(({ text, at }) => {
      const mark = make("span", "", text);
      mark.style.left = 100 * at + "%";
      return mark;
    }));
    const { data } = this.app, none = data.n - scale.bins.reduce((sum, n) => sum + n, 0);
    byId("missing").hidden = none === 0;
    byId("missing").replaceChildren(make("span", "dot"), make("span", "name", data.noLabel), make("span", "number", grouped(none)));
  }
}
