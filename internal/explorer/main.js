// Puts the parts together: what is visible and what stands out, keys, drawing.

/** Strokes the path of a canvas's context. */
function stroke(g, colour, width) {
  g.strokeStyle = colour;
  g.lineWidth = width;
  g.stroke();
}

const cards = ["settings", "save"]; // under the tools

class App {
  constructor(data, renderer) {
    this.data = data;
    this.renderer = renderer;
    this.pace = new Pace(renderer);
    this.views = data.views;
    this.camera = new Camera(data.views, data.rows);
    this.places = new Places(data.views);
    this.crowds = data.dense ? new Crowds(data.views) : null;
    this.pictures = data.images ? new Pictures(data.images) : null;
    this.mapNames = new MapNames(this);
    this.scale = ValueScale.of(this);
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.systemDark = matchMedia("(prefers-color-scheme: dark)");
    this.narrow = matchMedia("(max-width: 760px)");

    this.hidden = new Set();  // categories that are not shown
    this.hiddenKinds = new Set(); // 0: points trained on, 1: those held out
    this.found = null;        // rows that the search has found, or null
    this.pointed = -1;        // category that is pointed at in the legend
    this.hovered = -1;        // row under the pointer
    this.pinned = -1;         // row that was clicked
    this.lassoing = false;    // whether dragging draws
    this.settled = false;     // whether the first picture has been shown
    this.line = null;         // the lasso while it is drawn, in positions
    this.sizeFactor = this.opacityFactor = 1;
    this.counts = this._count();
    this.order = this._shuffle();
    this.selection = new Selection(this);
    this._applyTheme(this._storedTheme());
    this.rgbx = this._colours();
    this._filter();
  }

  /** Number of points of each category, those without a class at the end. */
  _count() {
    const { classes, category } = this.data;
    if (!classes) return [];
    const counts = new Array(classes.length + 1).fill(0);
    for (let i = 0; i < category.length; i++) counts[category[i]]++;
    return counts;
  }

  /**
   * Returns all rows in the order of drawing: at random, so that no class
   * systematically covers another, but those without a colour first.
   */
  _shuffle() {
    const { n, classes, category, values } = this.data;
    const grey = new Uint8Array(n);
    let greys = 0;
    for (let i = 0; i < n; i++) greys += grey[i] = Number(classes ? category[i] === classes.length : values !== null && Number.isNaN(values[i]));
    let below = 0, above = greys; // where the next goes
    const order = new Uint32Array(n);
    // Each step maps the whole numbers of so many bits onto themselves.
    const bits = Math.max(2, 32 - Math.clz32(n - 1)), mask = 2 ** bits - 1, half = bits >> 1;
    for (let k = 0; k <= mask; k++) {
      let i = Math.imul(k ^ (k >>> half), 0x9e3779b1) & mask;
      i = Math.imul(i ^ (i >>> half), 0x85ebca6b) & mask;
      i = Math.imul(i ^ (i >>> half), 0xc2b2ae35) & mask;
      i ^= i >>> half;
      if (i >= n) continue;
      if (below < greys && grey[i]) order[below++] = i;
      else order[above++] = i;
    }
    return order;
  }

  /* What points are ------------------------------------------------------- */

  nameOf(category) { return this.data.classes[category]?.name ?? this.data.noLabel; }

  /** What a row is by what the points are coloured by, as text; may be empty. */
  labelOf(row) { return this.textOf(this.data, row); }

  /** What a row is in a column, as text; empty if there is neither a class nor a value. */
  textOf({ classes, category, values, scale }, row) {
    const { noLabel } = this.data;
    if (category) return classes[category[row]]?.name ?? noLabel;
    if (values) return Number.isNaN(values[row]) ? noLabel : scale.dates ? dateText(values[row]) : String(values[row]);
    return "";
  }

  /** The colour of a category in this theme. */
  ink(category) { return (this.data.classes[category]?.ink ?? this.data.none)[this.dark]; }

  inkOfRow(row) {
    const { classes, category, values, none, single } = this.data;
    if (classes) return this.ink(category[row]);
    if (!values) return single[this.dark];
    return Number.isNaN(values[row]) ? none[this.dark] : this.scale.ink(this.scale.at[row], this.dark);
  }

  /** Returns a new dot in the colour of a row. */
  dot(row) {
    const dot = make("span", "dot");
    dot.style.background = this.inkOfRow(row);
    return dot;
  }

  isVisible(row) {
    return !(this.hidden.size && this.hidden.has(this.data.category[row])) &&
      (this.scale === null || this.scale.has(row)) &&
      !(this.hiddenKinds.size && this.hiddenKinds.has(this.data.held[row]));
  }

  /* What is shown ---------------------------------------------------------- */

  /** Makes the lists of rows that are drawn. */
  _filter() {
    const { held } = this.data, { scale } = this;
    this.visible = this.hidden.size || this.hiddenKinds.size || scale && (scale.narrowed || !scale.missing) ? this._visibleRows() : this.order;
    this.lower = held ? this.visible.filter((i) => !held[i]) : this.visible;
    this.upper = held ? this.visible.filter((i) => held[i]) : null;
    this.places.forget();
    this.crowds?.forget();
    this.mapNames.forget();
    this.standing = undefined;
    byId("count").textContent = this.visible.length === this.data.n ? points(this.data.n) : `${grouped(this.visible.length)} of ${points(this.data.n)}`;
  }

  /** Returns the visible rows in the order of drawing: by loops, which take a tenth of the time of filter. */
  _visibleRows() {
    const { order } = this, shown = new Uint8Array(order.length), rows = new Uint32Array(order.length);
    for (let i = 0; i < shown.length; i++) shown[i] = this.isVisible(i) ? 1 : 0;
    let count = 0;
    for (let k = 0; k < order.length; k++) if (shown[order[k]]) rows[count++] = order[k];
    return rows.slice(0, count);
  }

  visibilityChanged() {
    this._filter();
    if (this.pinned >= 0 && !this.isVisible(this.pinned)) this.pinned = -1;
    this.hovered = -1;
    this.selection.update();
    this.invalidate();
  }

  /** Shows another scale of values, or another range of them, with the next frame. */
  rescale() {
    if (this.rescaling) return;
    this.rescaling = true;
    requestAnimationFrame(() => {
      this.rescaling = false;
      this.legend.paint();
      this.visibilityChanged();
      this._paint();
    });
  }

  /** Shows a category, and points of a kind (see hiddenKinds), if they are hidden. */
  reveal(category, kind) {
    const one = this.hidden.delete(category), other = this.hiddenKinds.delete(kind);
    if (!one && !other) return;
    this.legend.update();
    this.visibilityChanged();
  }

  /** Colours the points by another column, and shows all of them. */
  colourBy(k) {
    const { data } = this;
    if (k === data.column) return;
    chooseColumn(data, k);
    this.scale = ValueScale.of(this);
    this.hidden.clear();
    this.pointed = -1;
    this.counts = this._count();
    this.order = this._shuffle();
    this.legend.fill();
    this.search.again();
    this.visibilityChanged();
    this._paint();
    this.say("Coloured by " + data.columns[k].name);
  }

  setFound(rows) {
    this.found = rows;
    this.standing = undefined;
    this.invalidate();
  }

  pointAt(category) {
    if (category === this.pointed) return;
    this.pointed = category;
    this.standing = undefined;
    this.invalidate();
  }

  select(rows) {
    this.selection.rows = rows;
    this.standing = undefined;
    this.selection.update();
    this._layoutSide(rows !== null);
    if (rows) this.say(points(rows.length) + " selected");
    this.invalidate();
  }

  /**
   * Returns the visible rows that stand out while the others fade, or null: the
   * rows of the class pointed at, else the found rows, else the selected rows.
   */
  standingOut() {
    if (this.standing !== undefined) return this.standing;
    const { category } = this.data;
    const among = (rows) => {
      const marked = new Uint8Array(this.data.n);
      for (const i of rows) marked[i] = 1;
      return this.visible.filter((i) => marked[i]);
    };
    let out = null;
    if (this.pointed >= 0 && !this.hidden.has(this.pointed)) out = this.visible.filter((i) => category[i] === this.pointed);
    else if (this.found) out = among(this.found);
    else if (this.selection.rows) out = among(this.selection.rows);
    this.standing = out;
    return out;
  }

  /** Moves the slider, and that of the rows so far down. */
  setPlace(t, down = 0) {
    Object.assign(this.camera, { t, down });
    this.hovered = -1;
    this.player.update();
    this.invalidate();
  }

  /** Keeps the tip at a row, which is made visible and brought into sight. */
  goTo(row) {
    const { category, held } = this.data;
    this.reveal(category ? category[row] : undefined, held ? held[row] : undefined);
    if (this.scale && !this.scale.has(row)) this.scale.reset();
    this.pinned = row;
    this.hovered = -1;
    const { camera } = this;
    const xy = this.places.current(camera.frame());
    const [px, py] = camera.toScreen(xy[2 * row], xy[2 * row + 1]);
    const margin = 30;
    if (px < margin || py < margin || px > camera.width - margin || py > camera.height - margin) {
      camera.x = xy[2 * row];
      camera.y = xy[2 * row + 1];
    }
    this._sayRow(row);
    this.invalidate();
  }

  /** Goes to the next of the points found, which it makes visible, or else of those selected. */
  nextFound(by) {
    const rows = this.found ?? this.selection.visible();
    if (!rows.length) return;
    const at = rows.indexOf(this.pinned);
    this.goTo(rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : (at + by + rows.length) % rows.length]);
  }

  /** Selects what was found, or else what is in sight. */
  selectShown() {
    if (this.found) {
      const rows = this.found.filter((i) => this.isVisible(i));
      return this.select(rows.length ? rows : null);
    }
    const { camera } = this;
    const [x0, y0] = camera.toWorld(0, 0), [x1, y1] = camera.toWorld(camera.width, camera.height);
    this._selectInside([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], false);
  }

  _selectInside(polygon, add) {
    let rows = this.places.inside(this.camera.frame(), this.visible, polygon);
    if (add && this.selection.rows) rows = Uint32Array.from(new Set([...this.selection.rows, ...rows]));
    rows.sort();
    this.select(rows.length ? rows : null);
    if (!rows.length) this.say("No points selected");
  }

  setLassoing(on) {
    this.lassoing = on;
    byId("lasso").setAttribute("aria-pressed", String(on));
    byId("stage").classList.toggle("lasso", on);
    this.hovered = -1;
    this.invalidate();
  }

  /** Tells users of a screen reader. */
  say(text) { byId("said").textContent = text; }

  _sayRow(row) { this.say([this.labelOf(row), oneLine(this.data.names?.[row] ?? ""), "row " + row].filter(Boolean).join(", ")); }

  /* Theme ------------------------------------------------------------------ */

  // A page opened from a file may be refused storage.
  _storedTheme() {
    try { return localStorage.getItem("cne-theme"); } catch { return null; }
  }

  _applyTheme(choice) {
    const dark = choice === "dark" || choice !== "light" && this.systemDark.matches;
    this.dark = dark ? 1 : 0; // index of inks
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    showIcon(byId("theme"), dark ? "light" : "dark");
    byId("theme").setAttribute("aria-label", dark ? "Light theme" : "Dark theme");
    const style = getComputedStyle(document.documentElement);
    this.inks = Object.fromEntries(["ink", "ground", "accent"].map((name) => [name, style.getPropertyValue("--" + name).trim()]));
    this.ground = [1, 3, 5].map((k) => parseInt(this.inks.ground.slice(k, k + 2), 16) / 255);
  }

  _colours() {
    const { n, classes, category, none, single } = this.data, { scale } = this;
    // Red, green, blue and a byte that keeps each at a multiple of 4, where graphics cards read fast.
    const out = new Uint32Array(n), bytes = new Uint8Array(out.buffer);
    const word = (ink) => new Uint32Array(Uint8Array.from([1, 3, 5, 7], (k) => parseInt(ink[this.dark].slice(k, k + 2) || "0", 16)).buffer)[0];
    const grey = word(none);
    const palette = Uint32Array.from(classes ? [...classes.map((c) => word(c.ink)), grey] : scale ? scale.inks.map(word) : [word(single)]);
    if (classes) for (let i = 0; i < n; i++) out[i] = palette[category[i]];
    else if (scale) for (let i = 0; i < n; i++) out[i] = Number.isNaN(scale.at[i]) ? grey : palette[scale.step(scale.at[i])];
    else out.fill(palette[0]);
    return bytes;
  }

  setTheme(theme) {
    try { localStorage.setItem("cne-theme", theme); } catch { /* then it lasts as long as the page */ }
    this._repaint(theme);
  }

  _repaint(theme) {
    this._applyTheme(theme);
    this.legend.paint();
    this.selection.update();
    this._paint();
  }

  /** Gives the points their colours. */
  _paint() {
    this.rgbx = this._colours();
    this.renderer.setColours(this.rgbx);
    this.tip.row = this.point.row = -1; // their colours are those from before
    this.invalidate();
  }

  /* Drawing ---------------------------------------------------------------- */

  invalidate() {
    this.pace.stop();
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this._draw();
    });
  }

  /** Diameter of n points in CSS pixels: their discs together would fill 40 % of the stage. */
  diameter(n = this.data.n) {
    const { width, height, zoom } = this.camera;
    const d = Math.sqrt((0.4 * width * height) / n * 4 / Math.PI);
    return within(within(d, 1.5, 9) * this.sizeFactor * Math.max(1, zoom) ** 0.4, 0.8, 26);
  }

  /**
   * Diameter of held-out points and width of their rims in CSS pixels, as in a
   * picture (layers in internal/plot): the fewer they are, the more they stand
   * out, and of very many the rims are thinner, lest they darken everything.
   */
  heldOut() {
    const n = Math.max(1, this.upper.length), all = this.diameter();
    const diameter = within(0.5 * this.diameter(n), 1.3 * all, 3 * all);
    const { width, height, zoom } = this.camera;
    const rim = Math.min(2, diameter / 6, (0.05 * width * height * zoom ** 2) / (n * Math.PI * diameter));
    return { diameter, rim: rim < 0.1 ? 0 : rim };
  }

  opacity() {
    const o = within(1.35 - 0.15 * Math.log10(this.data.n), 0.35, 0.9);
    // As points part from each other, they need not be seen through.
    return 0.92 - (0.92 - o) / Math.sqrt(Math.max(1, this.camera.zoom));
  }

  /**
   * Returns how crowded the points are in the two views, or null if they are not very many,
   * and a function of what it takes to draw points of a diameter in CSS pixels accordingly.
   */
  _crowding(frame) {
    if (!this.crowds) return [null, () => ({})];
    const lists = this.upper ? [this.lower, this.upper] : [this.lower];
    const crowds = [frame.from, frame.to].map((view) => this.crowds.of(view, lists));
    const [a, b] = crowds.map((c) => c.busiest / crowdSteps);
    return [crowds, (diameter) => {
      const crowd = Math.log2(Math.PI / 4 * (diameter / frame.scale) ** 2);
      return { crowd, busiest: Math.max(0, crowd + (1 - frame.mixing) * a + frame.mixing * b) };
    }];
  }

  /** Returns what Pace draws: the points in a frame, with so many pixels per CSS pixel. */
  picture(frame, ratio) {
    const { camera } = this;
    const layers = [];
    const standing = this.standingOut();
    const diameter = this.diameter() * ratio, contrast = 1 / this.opacityFactor, opacity = this.opacity();
    const plain = opacity ** contrast;
    const [crowds, crowding] = this._crowding(frame);
    const away = { diameter, opacity: plain * 0.6, fade: this.dark ? 0.8 : 0.82 };
    const all = this.crowds ? { diameter, opacity, contrast, ...crowding(this.diameter()) } : { diameter, opacity: plain };
    if (this.upper) {
      const held = this.heldOut();
      const large = held.diameter * ratio;
      // So many that they have no rims are a crowd of their own.
      const above = this.crowds && !held.rim
        ? { ...all, diameter: large, ...crowding(held.diameter) }
        : { diameter: large, opacity: 1, rim: held.rim * ratio };
      layers.push({ rows: this.lower, style: standing ? away : { ...all, fade: 0.5 } });
      layers.push({ rows: this.upper, style: standing ? { ...away, diameter: large } : above });
    } else {
      layers.push({ rows: this.lower, style: standing ? away : all });
    }
    if (standing) layers.push({ rows: standing, style: { diameter: diameter * 1.25, opacity: Math.max(plain, 0.85) } });
    const width = Math.round(camera.width * ratio), height = Math.round(camera.height * ratio);
    return { width, height, ground: this.ground, frame, colours: this.rgbx, crowds, layers };
  }

  /** Draws what has changed; at once: all points, however many there are. */
  _draw(atOnce = false) {
    const { renderer } = this;
    if (renderer.gl.isContextLost()) return;
    const ratio = Math.min(devicePixelRatio || 1, 2), frame = this.camera.frame();
    const picture = this.picture(frame, ratio);
    this.pace.draw(picture, atOnce);
    renderer.keep(picture.layers.map((layer) => layer.rows));
    this._mark(frame, ratio);
    this._scaleBar();
    if (this.settled) this.outside.update(frame);
    this.link.later();
    this.drawn = (this.drawn ?? 0) + 1;
  }

  /** Draws, and returns red, green and blue at a place of the stage. */
  pixel(x, y) {
    this._draw(true);
    const { gl } = this.renderer;
    const ratio = this.renderer.canvas.width / this.camera.width;
    const out = new Uint8Array(4);
    gl.readPixels(Math.floor(x * ratio), this.renderer.canvas.height - 1 - Math.floor(y * ratio), 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, out);
    return Array.from(out.subarray(0, 3));
  }

  /** Returns where a row is on the stage in a frame of the camera, in CSS pixels. */
  placeOf(row, frame) {
    const xy = this.places.current(frame);
    return this.camera.toScreen(xy[2 * row], xy[2 * row + 1], frame.scale);
  }

  /** Draws what lies above the points and belongs to the picture: thumbnails, lines to neighbours, names, rings. */
  paintOver(g, frame) {
    const { ink, ground } = this.inks;
    this.thumbnails?.paint(g, frame);
    this.point.paint(g, frame);
    if (this.settled) this.mapNames.paint(g, frame);
    for (const row of new Set([this.pinned, this.hovered])) {
      if (row < 0 || this.thumbnails?.ring(g, row)) continue;
      const [x, y] = this.placeOf(row, frame);
      g.beginPath();
      g.arc(x, y, this.diameter() / 2 + 3, 0, 2 * Math.PI);
      g.fillStyle = this.inkOfRow(row);
      g.fill();
      stroke(g, ground, 4);
      stroke(g, ink, 1.75);
    }
  }

  /** Draws what lies above the points, and the tip and the lasso. */
  _mark(frame, ratio) {
    const { camera } = this;
    const canvas = byId("marks");
    const width = Math.round(camera.width * ratio), height = Math.round(camera.height * ratio);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, camera.width, camera.height);
    this.paintOver(g, frame);
    this.point.show(this.pinned);
    this.legend.mark(this.hovered);
    // The panel of a point says more than the tip.
    const shown = this.hovered >= 0 || byId("point").offsetParent ? this.hovered : this.pinned;
    if (shown >= 0) {
      const [x, y] = this.placeOf(shown, frame);
      const outside = x < 0 || y < 0 || x > camera.width || y > camera.height;
      this.tip.show(outside ? -1 : shown, x, y, (this.thumbnails?.of(shown)?.w ?? 0) / 2);
    } else {
      this.tip.show(-1);
    }

    if (this.line) {
      const { ground, accent } = this.inks;
      g.beginPath();
      for (const [x, y] of this.line) g.lineTo(...camera.toScreen(x, y, frame.scale));
      g.closePath();
      g.globalAlpha = 0.12;
      g.fillStyle = accent;
      g.fill("evenodd");
      g.globalAlpha = 1;
      g.lineJoin = "round";
      stroke(g, ground, 4);
      stroke(g, accent, 2);
    }
  }

  /** Returns the length of the scale bar in units of the embedding, and its text. */
  scaleLength() { return roundLength(within(this.camera.width * 0.2, 50, 150) / this.camera.pixelsPerUnit()); }

  _scaleBar() {
    const { length, text } = this.scaleLength();
    byId("scale-bar").style.width = length * this.camera.pixelsPerUnit() + "px";
    byId("scale-text").textContent = text;
  }

  /* Start ------------------------------------------------------------------ */

  start() {
    const { canvas } = this.renderer;
    const fill = () => {
      this.renderer.setPositions(this.views.map((v) => v.positions));
      this.renderer.setColours(this.rgbx);
    };
    fill();
    canvas.addEventListener("webglcontextlost", (e) => e.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.renderer.begin();
      this.pace.forget();
      fill();
      this.invalidate();
    });
    this.tip = new Tip(this);
    this.point = new PointPanel(this);
    this.thumbnails = this.pictures ? new Thumbnails(this) : null;
    this.legend = new Legend(this);
    this.player = new Player(this);
    this.search = new Search(this);
    this.pointers = new Pointers(this, canvas);
    this.outside = new Outside(this);
    this.exporter = new Exporter(this);
    this.link = new Link(this);
    this._connect();
    this.sideWanted = !this.narrow.matches;
    this._layoutSide(false);
    this.narrow.addEventListener("change", () => {
      this.sideWanted = !this.narrow.matches;
      this._layoutSide(false);
    });
    new ResizeObserver(() => this._resize()).observe(byId("stage"));
    this._resize();
    this.setPlace(0);
    byId("title").title = this.data.title;
    byId("loading").remove();
    showHint();
    // What takes a look at all points comes after the first picture.
    requestAnimationFrame(() => setTimeout(() => { this.settled = true; this.invalidate(); }));
  }

  _resize() {
    const box = byId("stage").getBoundingClientRect();
    this.camera.width = Math.max(1, box.width);
    this.camera.height = Math.max(1, box.height);
    this.player.layout();
    // At once: the canvas would be stretched until the next frame.
    this._draw();
  }

  /** Shows the side panel if it is wanted and has something to show. */
  _layoutSide(wanted) {
    this.sideWanted = this.sideWanted || wanted;
    const has = this.legend.any || this.selection.rows !== null || !byId("point").hidden;
    const open = this.sideWanted && has;
    document.body.classList.toggle("no-side", !open);
    byId("side-open").hidden = !has;
    byId("side-open").setAttribute("aria-expanded", String(open));
  }

  toggleSide() {
    this.sideWanted = document.body.classList.contains("no-side");
    if (!this.sideWanted && byId("side").contains(document.activeElement)) byId("side-open").focus();
    this._layoutSide(false);
  }

  /** Opens or closes a card under the tools: "settings" or "save". */
  toggleCard(name, open = byId(name).hidden) {
    const card = byId(name), button = byId(name + "-open");
    // Keys go on from where the card was opened, not from the top of the page.
    if (!open && card.contains(document.activeElement)) button.focus();
    card.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    if (!open) return;
    for (const other of cards) if (other !== name) this.toggleCard(other, false);
    if (name === "save") this.exporter.opened();
  }

  _zoomBy(factor) {
    this.camera.zoomAt(this.camera.width / 2, this.camera.height / 2, factor);
    this._moved();
  }

  home() {
    this.camera.home();
    this._moved();
  }

  /** Draws what another place of the camera shows; the pointer is no longer where it was among the points. */
  _moved() {
    this.hovered = -1;
    this.invalidate();
  }

  _connect() {
    const click = (id, run) => byId(id).addEventListener("click", run);
    click("zoom-in", () => this._zoomBy(1.6));
    click("zoom-out", () => this._zoomBy(1 / 1.6));
    click("zoom-fit", () => this.home());
    click("lasso", () => this.setLassoing(!this.lassoing));
    click("theme", () => this.setTheme(this.dark ? "light" : "dark"));
    click("side-open", () => this.toggleSide());
    click("side-close", () => this.toggleSide());
    click("help-open", () => byId("help").showModal());
    click("help-close", () => byId("help").close());
    byId("help").addEventListener("click", (e) => { if (e.target === byId("help")) byId("help").close(); });
    for (const name of cards) click(name + "-open", () => this.toggleCard(name));
    document.addEventListener("pointerdown", (e) => {
      for (const name of cards) if (!e.target.closest(`#${name}, #${name}-open`)) this.toggleCard(name, false);
    });
    byId("size").addEventListener("input", (e) => { this.sizeFactor = 4 ** e.target.value; this.invalidate(); });
    byId("opacity").addEventListener("input", (e) => { this.opacityFactor = 8 ** e.target.value; this.invalidate(); });
    this.systemDark.addEventListener("change", () => {
      if (!this._storedTheme()) this._repaint(null);
    });
    document.addEventListener("keydown", (e) => this._key(e));
  }

  _key(event) {
    if (event.ctrlKey || event.metaKey || event.isComposing || byId("help").open) return;
    const { target } = event;
    const inText = target.matches("input[type=text]");
    if (event.key === "Escape") {
      this._escape(inText ? target : null);
      return;
    }
    if (inText || target.matches("select") || event.altKey) return;
    const own = target.matches("input[type=range]:not(#slider, #rows)"); // it has its own meaning of arrows
    const several = this.views.length > 1;
    const step = (by) => (event.shiftKey ? this.player.nudge(0.05 * by) : this.player.step(by));
    const pan = (dx, dy) => { this.camera.pan(60 * dx, 60 * dy); this._moved(); };
    const sliding = target.matches("#slider"), rows = target.matches("#rows"); // all arrows move a slider
    const row = (by) => this.player.stepRow(by), grid = this.data.rows > 1;
    const arrows = {
      ArrowLeft: () => (rows ? row(-1) : several ? step(-1) : pan(1, 0)),
      ArrowRight: () => (rows ? row(1) : several ? step(1) : pan(-1, 0)),
      ArrowUp: () => (sliding ? step(1) : grid ? row(-1) : pan(0, 1)),
      ArrowDown: () => (sliding ? step(-1) : grid ? row(1) : pan(0, -1)),
      Home: () => several && this.player.go(0),
      End: () => several && this.player.go(this.views.length - 1),
    };
    const keys = {
      "+": () => this._zoomBy(1.3), "=": () => this._zoomBy(1.3), "-": () => this._zoomBy(1 / 1.3), "0": () => this.home(),
      a: () => pan(1, 0), d: () => pan(-1, 0), w: () => pan(0, 1), s: () => pan(0, -1),
      "/": () => { byId("query").focus(); byId("query").select(); },
      n: () => this.nextFound(1), p: () => this.nextFound(-1),
      l: () => this.setLassoing(!this.lassoing),
      m: () => this.mapNames.toggle(),
      x: () => this.selectShown(),
      e: () => this.exporter.csv(),
      c: () => this.toggleSide(),
      t: () => this.setTheme(this.dark ? "light" : "dark"),
      o: () => this.toggleCard("settings"),
      f: () => { byId("more").open = !byId("more").open; },
      v: () => { this.toggleCard("save"); if (!byId("save").hidden) byId("save-png").focus(); },
      "?": () => byId("help").showModal(),
    };
    let run = keys[event.key.length === 1 ? event.key.toLowerCase() : ""] ?? (own ? undefined : arrows[event.key]);
    if (event.key === " " && several && !target.matches("button, summary, input[type=checkbox]")) run = () => this.player.toggle();
    if (!run) return;
    event.preventDefault();
    run();
  }

  /** Takes back what was done last, one thing at a time. */
  _escape(field) {
    if (field) {
      field.value = "";
      field.dispatchEvent(new Event("input"));
      field.blur();
    } else if (cards.some((name) => !byId(name).hidden)) cards.forEach((name) => this.toggleCard(name, false));
    else if (byId("more").open) byId("more").open = false;
    else if (this.line) this.pointers.cancel();
    else if (this.lassoing) this.setLassoing(false);
    else if (this.pinned >= 0) this.pinned = -1;
    else if (this.found) this.search.clear();
    else if (this.selection.rows) this.select(null);
    else if (this.scale?.narrowed) this.scale.reset();
    else if (this.player.playing) this.player.stop();
    this.invalidate();
  }

  /* Pointing ---------------------------------------------------------------- */

  /** Returns the visible row nearest to a place of the stage, within so many pixels, or −1. */
  rowAt(px, py, radius) {
    const pictured = this.thumbnails?.rowAt(px, py) ?? -1;
    if (pictured >= 0) return pictured;
    const frame = this.camera.frame();
    const [x, y] = this.camera.toWorld(px, py, frame.scale);
    return this.places.nearest(frame, this.visible, x, y, (radius + this.diameter() / 2) / frame.scale);
  }

  hover(px, py) {
    const row = this.rowAt(px, py, 8);
    byId("stage").classList.toggle("pointing", row >= 0);
    if (row === this.hovered) return;
    this.hovered = row;
    this.invalidate();
  }

  unhover() {
    if (this.hovered < 0) return;
    this.hovered = -1;
    this.invalidate();
  }

  pin(px, py, radius) {
    this.pinned = this.rowAt(px, py, radius);
    if (this.pinned >= 0) this._sayRow(this.pinned);
    this.invalidate();
  }

  finishLasso(add) {
    const { line } = this;
    this.line = null;
    if (line?.length > 2) this._selectInside(line, add);
    this.invalidate();
  }
}

let data = null;
let app = null;
let complete = false; // all has been read

/** Reads the data and shows them. */
async function begin() {
  let renderer, missing;
  // Graphics begin, in a process of their own, while the browser reads the points.
  try {
    renderer = new Renderer(byId("points"));
    renderer.warmUp();
  } catch (error) {
    missing = error.message;
  }
  data = await readData();
  if (missing) {
    byId("loading").textContent = missing + " Another browser, or this one with its graphics acceleration on, shows the points.";
    document.body.classList.add("no-side", "no-points");
    return;
  }
  app = new App(data, renderer);
  app.start();
  app.link.begin(false);
  data.rest = readRest(data);
  await data.rest;
  byId("column").disabled = byId("column-search").disabled = false;
  app.link.begin(true);
  app.search.again();
  app.tip.row = app.point.row = -1; // more is known of them now
  app.invalidate();
  complete = true;
}

begin().catch((error) => {
  // Points that are there already can do without what comes behind them.
  const [place, what] = app ? [byId("without"), "Names and further columns"] : [byId("loading"), "This page"];
  place.textContent = what + " cannot be shown: " + error.message;
  place.hidden = false;
  throw error;
});

// What is going on, for tests and for the curious: none of it can be set.
window.cne = Object.freeze({
  get settled() { return app?.settled ?? false; }, // the next picture has names
  get complete() { return complete; },
  get views() { return data?.views.map((v) => v.name); },
  get t() { return app?.camera.t; },
  get playing() { return app?.player.playing; },
  get drawn() { return app?.drawn; },
  get whole() { return app?.pace.whole; }, // whether all points are shown
  get visible() { return app?.visible.length; },
  get standing() { return app?.standingOut()?.length ?? null; },
  get hovered() { return app?.hovered; },
  get pinned() { return app?.pinned; },
  /** The rows that lines lead to from the point shown. */
  get neighbors() { return app?.point.drawn; },
  /** The rows whose pictures are on the map. */
  get thumbnails() { return app?.thumbnails?.placed.map((p) => p.row) ?? []; },
  get selection() { return app?.selection.rows ? Array.from(app.selection.visible()) : null; },
  get column() { return data?.columns[data.column]?.name; },
  /** The scale of values: its kind, the range shown, and the counts of the histogram. */
  get values() { return app?.scale && { kind: app.scale.kind, low: app.scale.low, high: app.scale.high, range: app.scale.range, bins: Array.from(app.scale.bins) }; },
  get theme() { return app?.dark ? "dark" : "light"; },
  get camera() { return app && { x: app.camera.x, y: app.camera.y, zoom: app.camera.zoom, scale: app.camera.scale(), perUnit: app.camera.pixelsPerUnit() }; },
  /** The names on the map that are drawn, with their places and boxes in pixels of the stage. */
  get names() { return app?.mapNames.drawn ?? []; },
  /** Where a row is on the stage, in CSS pixels from its upper left corner. */
  place(row) {
    return app.placeOf(row, app.camera.frame());
  },
  /** Draws at once and returns the red, green and blue at a place of the stage. */
  pixel(x, y) {
    return app.pixel(x, y);
  },
});
