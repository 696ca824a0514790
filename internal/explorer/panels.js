// What stands around the points: legend, slider and facts, the tip at a point.

/** Returns a new element with a class and a text; neither is HTML. */
function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== "") element.textContent = text;
  return element;
}

/** Writes a whole number with thin spaces between the thousands. */
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");

const points = (n) => grouped(n) + (n === 1 ? " point" : " points");

function showIcon(button, name) {
  button.querySelector("use").setAttribute("href", "#i-" + name);
}

/** Scrolls a part of a list into sight without moving anything around the list. */
const reveal = (element) => element.scrollIntoView({ block: "nearest" });

/** Moves on from the button of a list that has the focus, by arrows, Home and End. */
function stepThrough(event, buttons) {
  const k = buttons.indexOf(document.activeElement);
  const to = { ArrowDown: k + 1, ArrowUp: k - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (k < 0 || to === undefined) return;
  buttons[within(to, 0, buttons.length - 1)].focus();
  event.preventDefault();
  event.stopPropagation();
}

/* The legend ------------------------------------------------------------- */

const mostApart = 20; // classes whose colours can be told apart

class Legend {
  constructor(app) {
    this.app = app;
    const { data } = app;
    this.list = byId("classes");
    this.entries = []; // { category, name, button, item }
    this.values = new ValueLegend(app);
    this.kinds = []; // buttons of the points trained on and of those held out
    this._connect();
    if (data.held) this._makeKey();
    this.any = Boolean(data.columns.length || data.held);
    byId("legend").hidden = !this.any;
    this.fill();
  }

  /** Shows what the points are coloured by. */
  fill() {
    const { data } = this.app;
    clearTimeout(this.timer); // which would have a class stand out that is no more
    this.entries = [];
    this.marked = -1;
    this.markedEntry = undefined;
    this.list.replaceChildren();
    byId("legend-title").textContent = data.classes ? "Classes" : data.scale ? "Values" : "Points";
    byId("all").hidden = byId("none").hidden = !data.classes;
    byId("colours").hidden = !data.scale;
    byId("filter").hidden = true;
    byId("filter").value = "";
    if (data.classes) this._makeEntries();
    this.paint();
  }

  /** Sets up what stays, whatever the points are coloured by. */
  _connect() {
    const { app } = this;
    const { columns } = app.data;
    const choice = byId("column");
    choice.append(...columns.map((column, k) => {
      const option = make("option", "", column.name || "column " + (k + 1));
      option.value = String(k);
      return option;
    }));
    byId("coloured").hidden = columns.length < 2;
    choice.addEventListener("change", () => app.colourBy(Number(choice.value)));
    const search = byId("column-search");
    search.hidden = columns.length < fewColumns;
    byId("column-names").append(...columns.map((column) => {
      const option = make("option");
      option.value = column.name;
      return option;
    }));
    search.addEventListener("change", () => {
      const text = search.value.trim().toLowerCase(), names = columns.map((column) => column.name.toLowerCase());
      const k = [(name) => name === text, (name) => name.startsWith(text), (name) => name.includes(text)].reduce((found, fits) => (found < 0 ? names.findIndex(fits) : found), -1);
      if (!text || k < 0) return;
      search.value = "";
      choice.value = String(k);
      app.colourBy(k);
    });
    this.list.addEventListener("keydown", (e) => stepThrough(e, this._shown().map((entry) => entry.button)));
    byId("all").addEventListener("click", () => this._all(true));
    byId("none").addEventListener("click", () => this._all(false));
    const filter = byId("filter");
    filter.addEventListener("input", () => {
      const text = filter.value.trim().toLowerCase();
      for (const entry of this.entries) entry.item.hidden = !entry.name.toLowerCase().includes(text);
      const shown = this._shown();
      if (shown.length) this._current(shown[0]);
    });
  }

  _makeEntries() {
    const { data } = this.app;
    const counts = this.app.counts;
    const add = (category, name) => {
      const button = make("button");
      button.type = "button";
      button.append(make("span", "dot"), make("span", "name", name), make("span", "number", grouped(counts[category])));
      button.title = name;
      button.tabIndex = this.entries.length ? -1 : 0;
      const item = make("li");
      item.append(button);
      this.list.append(item);
      const entry = { category, name, button, item };
      button.addEventListener("click", (e) => (e.altKey || e.shiftKey ? this.only(category) : this.toggle(category)));
      button.addEventListener("dblclick", (e) => { if (!e.altKey && !e.shiftKey) this.only(category); });
      button.addEventListener("pointerenter", (e) => { if (e.pointerType === "mouse") this._point(category, 120); });
      button.addEventListener("pointerleave", () => this._point(-1, 60));
      button.addEventListener("focus", () => {
        this._current(entry);
        if (button.matches(":focus-visible")) this._point(category, 0);
      });
      button.addEventListener("blur", () => this._point(-1, 0));
      this.entries.push(entry);
    };
    data.classes.forEach((c, k) => add(k, c.name));
    if (counts[data.classes.length]) add(data.classes.length, data.noLabel);
    byId("filter").hidden = this.entries.length <= 12;
    this.update();
  }

  _shown() { return this.entries.filter((e) => !e.item.hidden); }

  /** Brings the class of a row into sight and highlights it where there are many, or none for −1. */
  mark(row) {
    if (row === this.marked) return;
    this.marked = row;
    const { category } = this.app.data;
    const entry = row < 0 || !category || this.entries.length <= mostApart ? undefined : this.entries.find((e) => e.category === category[row]);
    if (entry === this.markedEntry) return;
    this.markedEntry?.item.classList.remove("at");
    entry?.item.classList.add("at");
    this.markedEntry = entry;
    if (entry) reveal(entry.item);
  }

  /** Makes an entry the one that Tab reaches. */
  _current(entry) {
    for (const e of this.entries) if (e.button.tabIndex === 0) e.button.tabIndex = -1;
    entry.button.tabIndex = 0;
  }

  /** Has a class stand out after some milliseconds, or none for −1. */
  _point(category, wait) {
    clearTimeout(this.timer);
    const run = () => this.app.pointAt(category);
    if (wait) this.timer = setTimeout(run, wait);
    else run();
  }

  toggle(category) {
    const { hidden } = this.app;
    if (!hidden.delete(category)) hidden.add(category);
    this._done();
  }

  /** Shows only this class, or all if only this one is shown. */
  only(category) {
    const { hidden } = this.app;
    const alone = !hidden.has(category) && hidden.size === this.entries.length - 1;
    hidden.clear();
    if (!alone) for (const e of this.entries) if (e.category !== category) hidden.add(e.category);
    this._done();
  }

  _all(visible) {
    for (const e of this._shown()) {
      if (visible) this.app.hidden.delete(e.category);
      else this.app.hidden.add(e.category);
    }
    this._done();
  }

  _done() {
    clearTimeout(this.timer);
    this.update();
    this.app.visibilityChanged();
  }

  /** Shows which classes are hidden. */
  update() {
    for (const e of this.entries) e.button.setAttribute("aria-pressed", String(!this.app.hidden.has(e.category)));
    this.kinds.forEach((button, kind) => button.setAttribute("aria-pressed", String(!this.app.hiddenKinds.has(kind))));
  }

  _makeKey() {
    const key = byId("key");
    key.hidden = false;
    const n = this.app.data.held.reduce((sum, held) => sum + held, 0);
    this.kinds = [["training", "trained", this.app.data.n - n], ["held out", "held", n]].map(([name, className, count], kind) => {
      const button = make("button");
      button.type = "button";
      button.append(make("span", "dot " + className), make("span", "name", name), make("span", "number", grouped(count)));
      button.addEventListener("click", () => {
        const { hiddenKinds } = this.app;
        if (!hiddenKinds.delete(kind)) hiddenKinds.add(kind);
        this._done();
      });
      const item = make("li");
      item.append(button);
      key.append(item);
      return button;
    });
    this.update();
  }

  /** Colours everything for the theme. */
  paint() {
    const { app } = this;
    for (const e of this.entries) e.button.firstChild.style.background = app.ink(e.category);
    if (app.scale) this.values.paint();
    const trained = document.querySelector("#key .trained"), held = document.querySelector("#key .held");
    if (trained) {
      trained.style.background = app.dark ? "#55585e" : "#c0c0c0";
      held.style.background = "#808080";
      held.style.boxShadow = `inset 0 0 0 2px ${app.dark ? "#dddddd" : "#2c2c2c"}`;
    }
  }
}

/* Slider and facts --------------------------------------------------------- */

const mostFacts = 2; // in sight; the others are behind a button
const glideTime = 450; // milliseconds to the next view

class Player {
  constructor(app) {
    this.app = app;
    this.views = app.data.views;
    this.last = this.views.length / app.data.rows - 1; // of a row
    this.playing = false;
    this.running = 0;   // number of the animation that runs
    const facts = this.views.some((v) => v.facts.length);
    byId("player").hidden = this.views.length === 1;
    byId("foot").hidden = this.views.length === 1 && !facts && !this.views[0].name;
    for (const element of document.querySelectorAll(".several")) element.hidden = this.views.length === 1;
    for (const element of document.querySelectorAll(".grid")) element.hidden = app.data.rows === 1;
    byId("slider").disabled = byId("play").disabled = this.last === 0;
    this.rows = byId("rows");
    this.rows.max = String(app.data.rows - 1);
    this.rows.addEventListener("input", () => {
      this.stop();
      this._setRow(Number(this.rows.value));
    });
    this.rows.addEventListener("change", () => this.goRow(Math.round(Number(this.rows.value))));
    this.slider = byId("slider");
    this.slider.max = String(this.last);
    this.slider.setAttribute("aria-label", app.data.slider ? `Embedding by ${app.data.slider}` : "Embedding");
    this.slider.addEventListener("input", () => {
      this.stop();
      app.setPlace(app.camera.first + Number(this.slider.value));
    });
    // Let go near a view, it is the one that was meant.
    this.slider.addEventListener("change", () => {
      const t = Number(this.slider.value);
      if (Math.abs(t - Math.round(t)) < 0.06) this.glide(app.camera.first + Math.round(t), 120);
    });
    byId("play").addEventListener("click", () => this.toggle());
    this._makeTicks();
    this._makeFacts();
  }

  /** The name of a view where it is clear what the views differ in. */
  _short(view) {
    const { slider } = this.app.data;
    const start = [slider + " = ", slider + " "].find((s) => slider && view.name.startsWith(s) && view.name !== s);
    const name = this.app.data.rows > 1 ? view.name.split(", ")[0] : view.name;
    return start ? name.slice(start.length) : name;
  }

  _makeTicks() {
    this.ticks = this.views.slice(0, this.last + 1).map((view, k) => {
      const tick = make("span", "", this._short(view) || String(k));
      tick.style.left = (this.last ? (100 * k) / this.last : 0) + "%";
      tick.addEventListener("click", () => this.go(this.app.camera.first + k));
      byId("ticks").append(tick);
      return tick;
    });
  }

  /** Names every so many views, if there is no room for all, and the last one. */
  layout() {
    if (this.last === 0) return;
    const room = byId("ticks").getBoundingClientRect();
    const track = byId("track").getBoundingClientRect();
    for (const tick of this.ticks) tick.classList.remove("bare");
    const widths = this.ticks.map((tick) => tick.getBoundingClientRect().width);
    const gap = 10;
    const apart = room.width / this.last;
    // A long name at either end stays in the window, though not its mark.
    const lefts = widths.map((w, k) => within(room.left + k * apart - w / 2, track.left, Math.max(track.left, track.right - w)));
    const free = (a, b) => lefts[a] + widths[a] + gap <= lefts[b];
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((n) => widths.every((_, k) => k % n !== 0 || k < n || free(k - n, k))) || this.last;
    this.ticks.forEach((tick, k) => {
      tick.classList.toggle("bare", k !== this.last && (k % every !== 0 || !free(k, this.last)));
      tick.style.setProperty("--shift", lefts[k] - (room.left + k * apart - widths[k] / 2) + "px");
    });
  }

  _makeFacts() {
    const names = [...new Set(this.views.flatMap((v) => v.facts.map((f) => f[0])))];
    byId("more").hidden = document.querySelector(".figures").hidden = names.length <= mostFacts;
    this.facts = names.map((name, k) => {
      const values = this.views.map((v) => v.facts.find((f) => f[0] === name)?.[1] ?? "");
      const row = make("div");
      const value = make("dd");
      row.append(make("dt", "", name), value);
      byId(k < mostFacts ? "facts" : "more-facts").append(row);
      const meaning = this.app.data.meanings?.[name];
      if (meaning) explain(row, meaning);
      return { values, row, value };
    });
  }

  /** Shows where the slider is. */
  update() {
    const { camera } = this.app, { near, first } = camera, { from, to, mixing } = camera.between();
    this.slider.value = String(camera.t - first);
    this.rows.value = String(camera.row);
    const exact = Math.abs(mixing - Math.round(mixing)) < 1e-3, { down } = camera;
    const name = exact
      ? this.views[near].name || (this.last ? String(near) : "")
      : `${this.views[from].name || from} → ${(down ? this.views[to].name.split(", ")[1] : this._short(this.views[to])) || to}`;
    this.rows.setAttribute("aria-valuetext", name);
    byId("row-name").textContent = this.views[near].name.split(", ")[1] ?? "";
    byId("view-name").textContent = name;
    this.slider.setAttribute("aria-valuetext", name);
    this.ticks.forEach((tick, k) => tick.classList.toggle("at", k === near % (this.last + 1) && exact));
    for (const fact of this.facts) {
      fact.row.hidden = fact.values[near] === "";
      fact.value.textContent = fact.values[near];
    }
    const note = this.views[near].note ?? "";
    byId("note").textContent = note;
    byId("note").hidden = note === "";
  }

  /** Goes to a row or a place between two, at the nearest view of a row. */
  _setRow(row) {
    const above = Math.min(Math.floor(row), this.app.data.rows - 1), { camera } = this.app;
    this.app.setPlace(Math.round(camera.t - camera.first) + above * camera.across, row - above);
  }

  /** Goes to a row by itself. */
  async goRow(row) {
    this.stop();
    this.goalRow = within(row, 0, this.app.data.rows - 1);
    if (await this.glide(this.goalRow, glideTime, true, this.app.camera.row, (r) => this._setRow(r))) {
      this.goalRow = undefined;
      this.app.say(this.views[this.app.camera.near].name);
    }
  }

  /** Goes so many rows down; while it still moves, from where it will be. */
  stepRow(by) {
    const row = this.goalRow ?? this.app.camera.row;
    this.goRow(by > 0 ? Math.floor(row + 1e-6) + by : Math.ceil(row - 1e-6) + by);
  }

  /** Moves to a place by itself. */
  glide(to, time = glideTime, ease = true, from = this.app.camera.t, set = (t) => this.app.setPlace(t)) {
    const run = ++this.running;
    if (this.app.still.matches) time = 0;
    return new Promise((done) => {
      let start;
      const step = (now) => {
        if (run !== this.running) return done(false);
        if (start === undefined) start = now;
        const part = time ? Math.min(1, (now - start) / time) : 1;
        const eased = ease ? part * part * (3 - 2 * part) : part;
        set(part === 1 ? to : from + (to - from) * eased);
        if (part < 1) requestAnimationFrame(step);
        else done(true);
      };
      requestAnimationFrame(step);
    });
  }

  /** Goes to a view, as far as there is one. */
  async go(k) {
    this.stop();
    const { first } = this.app.camera;
    k = within(k, first, first + this.last);
    this.goal = k;
    if (await this.glide(k)) {
      this.goal = undefined;
      this.app.say(this.views[k].name);
    }
  }

  /** Goes so many views on; while it still moves, from where it will be. */
  step(by) {
    const t = this.goal ?? this.app.camera.t;
    this.go(by > 0 ? Math.floor(t + 1e-6) + by : Math.ceil(t - 1e-6) + by);
  }

  /** Moves a little. */
  nudge(by) {
    this.stop();
    this.app.setPlace(within(Math.round((this.app.camera.t + by) * 1000) / 1000, this.app.camera.first, this.app.camera.first + this.last));
  }

  toggle() {
    if (this.playing) this.stop();
    else this.play();
  }

  stop() {
    this.running++;
    this.goal = this.goalRow = undefined;
    this._show(false);
  }

  _show(playing) {
    this.playing = playing;
    const button = byId("play");
    button.setAttribute("aria-label", playing ? "Pause" : "Play");
    showIcon(button, playing ? "pause" : "play");
  }

  /** Runs through the views to the last, from the first if it is there already. */
  async play() {
    if (this.last === 0) return;
    this.stop();
    this._show(true);
    // A few views each have their time; many, as epochs of a run, make a film.
    const time = within(14000 / this.last, 90, 1500);
    const film = time < 700;
    const { first } = this.app.camera;
    this.app.setPlace(this.app.camera.t >= first + this.last - 1e-6 ? first : this.app.camera.t);
    while (this.app.camera.t < first + this.last) {
      const { t } = this.app.camera;
      const next = Math.floor(t + 1e-6) + 1;
      if (!(await this.glide(next, time * (next - t), !film))) return;
      const run = this.running;
      if (!film || this.app.still.matches) await new Promise((done) => setTimeout(done, this.app.still.matches ? 1500 : 600));
      if (run !== this.running) return;
    }
    this._show(false);
  }
}

/* The tip ------------------------------------------------------------------ */

const fewColumns = 10; // that need no search
const mostLines = 8; // about columns other than the colours'

class Tip {
  constructor(app) {
    this.app = app;
    this.row = -1;
    this.box = byId("tip");
  }

  /** Tells of a row beside a place of the stage that is so wide to either side, or nothing for −1. */
  show(row, x = 0, y = 0, half = 0) {
    this.box.hidden = row < 0;
    if (row !== this.row && row >= 0) this._fill(row);
    this.row = row;
    if (row < 0) return;
    const { camera } = this.app;
    const w = this.box.offsetWidth, h = this.box.offsetHeight, gap = 14 + half;
    const left = x + gap + w < camera.width ? x + gap : x - gap - w;
    this.box.style.transform = `translate(${within(left, 4, Math.max(4, camera.width - w - 4))}px, ${within(y - h / 2, 4, Math.max(4, camera.height - h - 4))}px)`;
  }

  _fill(row) {
    const { app } = this;
    describe(app, "tip", row, mostLines);
    byId("tip-near").replaceChildren(...app.point.of(row).slice(0, nearInTip).map((i) => app.point.fill(make("li"), i)));
  }
}

/** Says all about a row in the elements of a panel, with at most so many columns other than the colours'. */
function describe(app, panel, row, most = Infinity) {
  const { data } = app;
  const part = (name) => byId(panel + "-" + name);
  const text = app.labelOf(row);
  part("label").replaceChildren(...(text === "" ? [] : [app.dot(row), text]));
  part("name").textContent = data.names?.[row] ?? "";
  part("more").replaceChildren(...data.columns.slice(0, most + 1).flatMap((column, k) => {
    const what = app.textOf(column, row);
    return k === data.column || what === "" ? [] : [make("dt", "", column.name), make("dd", "", what)];
  }));
  part("row").textContent = "row " + row + (data.held ? (data.held[row] ? ", held out" : ", training") : "");
  const canvas = part("image");
  canvas.hidden = !app.pictures;
  if (app.pictures) {
    const { width, height } = data.images;
    const zoom = Math.max(1, Math.floor(112 / Math.max(width, height)));
    canvas.style.width = zoom * width + "px";
    canvas.style.height = zoom * height + "px";
    app.pictures.draw(canvas, row).catch(() => { canvas.hidden = true; });
  }
}
