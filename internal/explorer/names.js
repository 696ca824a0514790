// Names on the map: names of the classes, each where its points are densest, or the
// automatic labels of regions (see topics.go).

const mostNames = 60;      // that are drawn
const namedClasses = 1000; // the largest; others have no name on the map
const levelZooms = [0, 1, 2.2]; // the least zoom of labels of a level

/** Returns a text in one or two lines; the second may be shortened. */
function wrapped(text) {
  const words = text.split(" ");
  let first = words.shift();
  while (words.length && first.length + words[0].length < 16) first += " " + words.shift();
  return [first, words.join(" ")].filter(Boolean).map((line) => {
    const letters = Array.from(line);
    return letters.length > 24 ? letters.slice(0, 23).join("").trimEnd() + "…" : line;
  });
}

class MapNames {
  constructor(app) {
    this.app = app;
    this.sizes = new Map(); // from a text and its font to its lines and size in pixels
    this.family = getComputedStyle(document.body).fontFamily;
    const { columns, views } = app.data;
    this.kinds = ["none"];
    if (columns.some((c) => c.classes?.length > 1)) this.kinds.unshift("classes");
    if (views.some((v) => v.labels)) this.kinds.unshift("automatic");
    const choice = byId("naming");
    choice.append(...this.kinds.map((kind) => new Option(kind)));
    choice.hidden = byId("naming-label").hidden = this.kinds.length < 2;
    choice.addEventListener("change", () => this.choose(choice.value));
    this.kind = this.shown = this.kinds[0];
    this.forget();
  }

  /** Forgets which points were visible, and what they are coloured by. */
  forget() {
    this.known = new Map(); // from a view to the places of its classes
    this.stamp = "";
  }

  choose(kind) {
    if (kind !== "none") this.shown = kind;
    this.kind = byId("naming").value = kind;
    this.stamp = "";
    this.app.invalidate();
  }

  /** Hides the names, or shows them again. */
  toggle() {
    this.choose(this.kind === "none" ? this.shown : "none");
    if (this.kinds.length > 1) this.app.say(this.kind === "none" ? "Names hidden" : "Names shown");
  }

  /**
   * Returns where the visible points of each class are densest in a view, the largest
   * classes first: { category, x, y, w, h }, with half the width and height of that place.
   */
  _places(view) {
    const { app, app: { data: { n, category, classes }, visible, views } } = this, xy = views[view].positions;
    const counts = new Uint32Array(classes.length + 1), all = visible.length === n;
    for (let i = 0; i < n; i++) if (all || app.isVisible(i)) counts[category[i]]++;
    const starts = new Uint32Array(counts.length + 1);
    for (let c = 0; c < counts.length; c++) starts[c + 1] = starts[c] + counts[c];
    const next = starts.slice(), sorted = new Uint32Array(visible.length);
    for (let i = 0; i < n; i++) if (all || app.isVisible(i)) sorted[next[category[i]]++] = i;
    const named = classes.map((_, c) => c).filter((c) => counts[c]).sort((a, b) => counts[b] - counts[a]);
    const grid = new Uint32Array(50 * 50);
    return named.slice(0, namedClasses).map((c) => {
      grid.fill(0);
      const rows = sorted.subarray(starts[c], starts[c + 1]);
      const cells = within(Math.ceil(Math.sqrt(rows.length)), 8, 24), w = cells + 2; // with a margin of empty ones
      const column = (v) => 1 + within(Math.floor((v + 1) / 2 * cells), 0, cells - 1);
      for (const i of rows) grid[column(xy[2 * i + 1]) * w + column(xy[2 * i])]++;
      let best = 0, most = 0;
      for (let at = w + 1; at < w * w - w; at++) {
        if (!grid[at]) continue;
        const corners = grid[at - w - 1] + grid[at - w + 1] + grid[at + w - 1] + grid[at + w + 1];
        const sum = 4 * grid[at] + 2 * (grid[at - w] + grid[at - 1] + grid[at + 1] + grid[at + w]) + corners;
        if (sum > most) { most = sum; best = at; }
      }
      const near = rows.filter((i) => Math.abs(column(xy[2 * i]) - best % w) <= 1 && Math.abs(column(xy[2 * i + 1]) - Math.floor(best / w)) <= 1);
      const mean = (k) => near.reduce((sum, i) => sum + xy[2 * i + k], 0) / near.length;
      const x = mean(0), y = mean(1), reach = (k, middle) => near.reduce((most, i) => Math.max(most, Math.abs(xy[2 * i + k] - middle)), 0);
      return { category: c, x, y, w: reach(0, x), h: reach(1, y) };
    });
  }

  /** Returns what is to be named in a frame, that which comes first in the way of others first. */
  _wanted({ from, to, mixing }) {
    const { app } = this;
    const { data } = app;
    if (this.kind === "none") return [];
    if (data.classes?.length > 1 && this.kind === "classes") {
      for (const view of [from, to]) if (!this.known.has(view)) this.known.set(view, this._places(view));
      const a = this.known.get(from), b = this.known.get(to);
      const wa = 1 - mixing, wb = mixing;
      const at = new Map(b.map((p) => [p.category, p]));
      const names = a.map((p) => {
        const q = at.get(p.category), mixed = (key) => wa * p[key] + wb * q[key];
        return { category: p.category, text: data.classes[p.category].name, level: 1, alpha: 1, x: mixed("x"), y: mixed("y"), w: mixed("w"), h: mixed("h") };
      });
      const { pointed } = app;
      if (pointed < 0 || app.hidden.has(pointed)) return names;
      for (const name of names) if (name.category !== pointed) name.alpha = 0.25;
      return names.sort((p, q) => q.alpha - p.alpha);
    }
    // The labels of two views are unrelated, and fade on the way.
    const near = mixing < 0.5 ? from : to;
    const alpha = within(Math.abs(1 - 2 * mixing) * 1.5 - 0.5, 0, 1);
    return (alpha && app.views[near].labels || []).filter((l) => app.camera.zoom >= levelZooms[l.level])
      .map((l) => ({ ...l, alpha }));
  }

  _font(level) { return `${level ? 500 : 650} ${[15, 13, 12][level]}px ${this.family}`; }

  /** Returns the lines of a name, and its size in pixels. */
  _measure(g, { text, level }) {
    const key = level + text;
    let size = this.sizes.get(key);
    if (!size) {
      g.font = this._font(level);
      const lines = wrapped(text);
      const line = [18, 16, 15][level];
      size = { lines, line, width: Math.max(...lines.map((l) => g.measureText(l).width)), height: lines.length * line };
      this.sizes.set(key, size);
    }
    return size;
  }

  /**
   * Returns the names that have room, wherever the camera is, so that none comes or goes
   * while it moves: with left and top in pixels from the origin of the positions.
   */
  _laidOut(g, frame) {
    const { app } = this;
    const stamp = [frame.from, frame.to, frame.mixing, frame.scale, app.camera.zoom, app.pointed, app.diameter()].join();
    if (stamp === this.stamp) return this.laid;
    this.stamp = stamp;
    this.laid = [];
    const dot = app.diameter() / 2, wanted = this._wanted(frame).map((name) => ({ ...name, ...this._measure(g, name) }));
    // Classes that their names would hide; the names of all are beside these.
    const small = wanted.filter((name) => name.h * frame.scale + dot < 1.25 * name.height).map(({ category, x, y, w, h }) => {
      const [halfWidth, halfHeight] = [w * frame.scale + dot, h * frame.scale + dot];
      return { category, left: x * frame.scale - halfWidth, top: -y * frame.scale - halfHeight, width: 2 * halfWidth, height: 2 * halfHeight };
    });
    for (const name of wanted) {
      const own = name.category === undefined ? undefined : small.find((box) => box.category === name.category);
      const { width, height } = name, x = name.x * frame.scale, y = -name.y * frame.scale;
      const places = own ? [[x - width / 2, own.top + own.height + 2], [x - width / 2, own.top - height - 4],
        [own.left + own.width + 5, y - height / 2], [own.left - width - 5, y - height / 2]] : [[x - width / 2, y - height / 2]];
      const free = places.map(([left, top]) => ({ ...name, left, top })).filter((p) => !this.laid.some((other) => overlap(p, other)));
      const best = free.find((p) => small.length > mostNames || !small.some((box) => box !== own && covers(p, box))) || free[0];
      if (best) this.laid.push(best);
    }
    return this.laid;
  }

  /** Draws the names that are in sight. */
  paint(g, frame) {
    const { app } = this;
    const dx = frame.width / 2 - frame.x * frame.scale, dy = frame.height / 2 + frame.y * frame.scale;
    const inSight = [];
    for (const name of this._laidOut(g, frame)) {
      const x = name.x * frame.scale + dx, y = -name.y * frame.scale + dy;
      if (x < 0 || y < 0 || x > frame.width || y > frame.height) continue;
      // At the edge, a name moves inwards.
      const left = within(name.left + dx, 4, Math.max(4, frame.width - name.width - 4));
      const top = within(name.top + dy, 4, Math.max(4, frame.height - name.height - 4));
      inSight.push({ ...name, left, top, x, y, moved: left !== name.left + dx || top !== name.top + dy });
    }
    const drawn = [];
    for (const name of inSight.sort((a, b) => b.alpha - a.alpha || a.moved - b.moved)) {
      if (drawn.length < mostNames && !drawn.some((other) => (name.moved || other.moved) && overlap(name, other))) drawn.push(name);
    }
    g.textAlign = "center";
    g.textBaseline = "middle";
    g.lineJoin = "round";
    for (const name of drawn) {
      g.font = this._font(name.level);
      g.globalAlpha = name.alpha;
      const middle = name.left + name.width / 2, bottom = name.top + name.height - 1;
      if (name.category !== undefined) {
        g.fillStyle = app.inks.ground;
        g.fillRect(name.left - 2, bottom - 2, name.width + 4, 5);
        g.fillStyle = app.ink(name.category);
        g.fillRect(name.left, bottom - 0.5, name.width, 2);
      }
      name.lines.forEach((line, k) => {
        const y = name.top + (k + 0.5) * name.line;
        g.strokeStyle = app.inks.ground;
        g.lineWidth = 4;
        g.strokeText(line, middle, y);
        g.fillStyle = app.inks.ink;
        g.fillText(line, middle, y);
      });
    }
    g.globalAlpha = 1;
    this.drawn = drawn.map(({ text, x, y, left, top, width, height, alpha }) => ({ text, x, y, alpha, box: [left, top, left + width, top + height] }));
  }
}

/** Reports whether two boxes have a part in common. */
function covers(a, b) {
  return a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
}

/** Reports whether two names would touch each other. */
function overlap(a, b) {
  return Math.abs(a.left + a.width / 2 - b.left - b.width / 2) < (a.width + b.width) / 2 + 6 &&
    Math.abs(a.top + a.height / 2 - b.top - b.height / 2) < (a.height + b.height) / 2 + 2;
}
