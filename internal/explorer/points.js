// What there is about single points: their neighbours in the data, their pictures on the
// map, and the panel of the point that was clicked.

const nearInTip = 5;

/** Returns a text of several lines in one. */
const oneLine = (text) => text.replace(/\s*\n\s*/g, " ");

/** The neighbours of points in the data, and the panel of one point. */
class PointPanel {
  constructor(app) {
    this.app = app;
    this.row = -1;    // which the panel shows
    this.drawn = [];  // the neighbours that lines lead to
    byId("point-clear").addEventListener("click", () => {
      app.pinned = -1;
      byId("points").focus();
      app.invalidate();
    });
    byId("near-select").addEventListener("click", () => app.select(Uint32Array.from([this.row, ...this.of(this.row)]).sort()));
    byId("near").addEventListener("keydown", (e) => this._key(e));
    // Its arrows scroll the text, not the map.
    byId("point-name").addEventListener("keydown", (e) => { if (/^(Arrow|Page|Home|End| )/.test(e.key)) e.stopPropagation(); });
  }

  /** Returns the rows of the neighbours of a row in the data, nearest first. */
  of(row) {
    const { near, neighbors, n } = this.app.data;
    if (!near || row < 0) return [];
    return Array.from(near.subarray(neighbors * row, neighbors * (row + 1))).filter((i) => i < n);
  }

  /** Puts a neighbour into an element of a list: a dot, what it is, its row. */
  fill(element, row) {
    const { app } = this;
    const dot = make("span", "dot");
    dot.style.background = app.inkOfRow(row);
    element.append(dot, make("span", "name", oneLine(app.data.names?.[row] ?? "") || app.labelOf(row)), make("span", "number", "row " + row));
    return element;
  }

  /** Draws lines from the point that is pointed at, or was clicked, to its neighbours. */
  paint(g, frame) {
    const { app } = this;
    const row = app.hovered >= 0 ? app.hovered : app.pinned;
    this.drawn = this.of(row).filter((i) => app.isVisible(i));
    if (!this.drawn.length) return;
    const xy = app.places.current(frame);
    const to = (i) => app.camera.toScreen(xy[2 * i], xy[2 * i + 1], frame.scale);
    const [x, y] = to(row);
    const alpha = (k) => 0.9 - 0.55 * k / app.data.neighbors;
    for (const [k, i] of this.drawn.entries()) {
      g.beginPath();
      g.moveTo(x, y);
      g.lineTo(...to(i));
      for (const [colour, width, part] of [[app.inks.ground, 3, 0.7], [app.inks.ink, 1.25, 1]]) {
        g.globalAlpha = part * alpha(k);
        g.strokeStyle = colour;
        g.lineWidth = width;
        g.stroke();
      }
    }
    g.globalAlpha = 1;
    for (const i of this.drawn) {
      if (app.thumbnails?.ring(g, i)) continue;
      const [px, py] = to(i);
      for (const [colour, r] of [[app.inks.ground, 3.5], [app.inks.ink, 2.25], [app.inkOfRow(i), 1.25]]) {
        g.beginPath();
        g.arc(px, py, app.diameter() / 2 + r - 1, 0, 2 * Math.PI);
        g.fillStyle = colour;
        g.fill();
      }
    }
  }

  /** Shows the panel of a row, or none for −1. */
  show(row) {
    if (row === this.row) return;
    const { app } = this;
    const { data } = app;
    const focused = byId("near").contains(document.activeElement);
    // What the tip says already is not worth a panel.
    const any = row >= 0 && Boolean(data.columns.length || data.hasNames || app.pictures || data.neighbors);
    this.row = row;
    byId("point").hidden = !any;
    app._layoutSide(false);
    if (!any) return;
    describe(app, "point", row);
    const text = byId("point-name");
    text.scrollTop = 0;
    text.tabIndex = text.scrollHeight > text.clientHeight ? 0 : -1;
    const near = this.of(row);
    byId("point-near").hidden = !near.length;
    byId("near").replaceChildren(...near.map((i) => {
      const button = make("button"), item = make("li");
      button.type = "button";
      if (app.pictures) {
        const canvas = make("canvas");
        button.append(canvas);
        app.pictures.draw(canvas, i).catch(() => canvas.remove());
      }
      this.fill(button, i);
      button.addEventListener("click", () => app.goTo(i));
      item.append(button);
      return item;
    }));
    byId("point").scrollTop = 0;
    if (focused) byId("near").querySelector("button")?.focus();
  }

  _key(event) {
    const buttons = Array.from(byId("near").querySelectorAll("button"));
    const k = buttons.indexOf(document.activeElement);
    const to = { ArrowDown: k + 1, ArrowUp: k - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (k < 0 || to === undefined) return;
    buttons[within(to, 0, buttons.length - 1)].focus();
    event.preventDefault();
    event.stopPropagation();
  }
}

const mostThumbnails = 250; // in sight; with more, points are only dots
const keptThumbnails = 2000;
const thumbnailGap = 2;

/** The pictures of points at their places on the map, where there are few. */
class Thumbnails {
  constructor(app) {
    this.app = app;
    this.on = true;
    this.tiles = new Map(); // from a row to its ImageBitmap, or null if it is not there yet; the one used last at the end
    this.wanted = new Set(); // rows whose pictures are still to be cut out
    this.busy = false;
    this.placed = []; // { row, x, y, w, h } of what is drawn
    this.marked = { standing: null, rows: null };
    for (const id of ["pictures", "pictures-label"]) byId(id).hidden = false;
    byId("pictures").addEventListener("change", (e) => {
      this.on = e.target.checked;
      app.invalidate();
    });
  }

  /** Height or width of a picture in CSS pixels, whichever is larger. */
  _size() { return Math.round(within(4 * this.app.diameter(), 20, 64)); }

  /** Draws the pictures of the points in sight, if they are few enough. */
  paint(g, frame) {
    this.placed = [];
    const { app } = this;
    const { camera, places } = app;
    const moving = frame.mixing > 0 && frame.mixing < 1; // which sorts all points anew for each picture
    if (!this.on || moving && app.data.n > 1e5) return;
    const size = this._size();
    // A little more than the stage, so that pictures at its edge stay while it is moved.
    const [x0, y1] = camera.toWorld(-size, -size, frame.scale), [x1, y0] = camera.toWorld(camera.width + size, camera.height + size, frame.scale);
    const rows = places.inBox(frame, app.visible, x0, y0, x1, y1, mostThumbnails);
    if (!rows) return;
    const { width, height } = app.data.images;
    const w = size * width / Math.max(width, height), h = size * height / Math.max(width, height);
    const xy = places.current(frame);
    // Always in the same order, so that a picture does not give way to another from frame to frame.
    for (const row of rows.sort((a, b) => a - b)) {
      const [px, py] = camera.toScreen(xy[2 * row], xy[2 * row + 1], frame.scale);
      const x = px - w / 2, y = py - h / 2;
      if (this.placed.every((p) => Math.abs(p.x - x) > w + 2 * thumbnailGap || Math.abs(p.y - y) > h + 2 * thumbnailGap)) this.placed.push({ row, x, y, w, h });
    }
    this._want(this.placed.filter((p) => p.x < camera.width && p.y < camera.height && p.x > -w && p.y > -h).map((p) => p.row));
    const standing = this._standing();
    for (const p of this.placed) {
      const tile = this.tiles.get(p.row);
      if (!tile) continue;
      const lit = p.row === app.hovered || p.row === app.pinned;
      g.globalAlpha = standing && !standing[p.row] && !lit ? 0.25 : 1;
      this._frame(g, p, thumbnailGap, app.inkOfRow(p.row));
      g.imageSmoothingQuality = "high";
      g.drawImage(tile, p.x, p.y, w, h);
    }
    g.globalAlpha = 1;
  }

  _frame(g, { x, y, w, h }, by, colour) {
    g.fillStyle = colour;
    g.fillRect(x - by, y - by, w + 2 * by, h + 2 * by);
  }

  /** Returns where the picture of a row is drawn; undefined if it is not. */
  of(row) { return this.placed.find((p) => p.row === row && this.tiles.get(row)); }

  /** Rings the picture of a row, and returns whether it is there. */
  ring(g, row) {
    const { ink, ground } = this.app.inks;
    const p = this.of(row);
    if (!p) return false;
    for (const [colour, by] of [[ink, 5], [ground, 3], [this.app.inkOfRow(row), thumbnailGap]]) this._frame(g, p, by, colour);
    g.drawImage(this.tiles.get(row), p.x, p.y, p.w, p.h);
    return true;
  }

  /** Returns the row whose picture is at a place of the stage, or −1. */
  rowAt(px, py) {
    return this.placed.find((p) => this.tiles.get(p.row) && px >= p.x && px <= p.x + p.w && py >= p.y && py <= p.y + p.h)?.row ?? -1;
  }

  /** Returns for each row whether it stands out; null if none does. */
  _standing() {
    const standing = this.app.standingOut();
    if (this.marked.standing !== standing) {
      const rows = standing && new Uint8Array(this.app.data.n);
      for (const i of standing ?? []) rows[i] = 1;
      this.marked = { standing, rows };
    }
    return this.marked.rows;
  }

  /** Has the pictures of rows made, and forgets those not seen for long. */
  _want(rows) {
    this.wanted.clear();
    for (const row of rows) {
      const tile = this.tiles.get(row);
      if (tile === undefined) this.wanted.add(row);
      else this.tiles.delete(row), this.tiles.set(row, tile);
    }
    for (const [row, tile] of this.tiles) {
      if (this.tiles.size <= keptThumbnails) break;
      tile?.close();
      this.tiles.delete(row);
    }
    if (this.wanted.size && !this.busy) this._cut();
  }

  /** Cuts the wanted pictures out of their atlases, one atlas at a time. */
  async _cut() {
    this.busy = true;
    const { pictures } = this.app;
    const { perAtlas, width, height, tileHeight } = this.app.data.images;
    while (this.wanted.size) {
      const k = Math.floor(this.wanted.values().next().value / perAtlas);
      const rows = Array.from(this.wanted).filter((row) => Math.floor(row / perAtlas) === k);
      for (const row of rows) {
        this.wanted.delete(row);
        this.tiles.set(row, null);
      }
      try {
        const atlas = await pictures.atlas(k);
        const tiles = await Promise.all(rows.map((row) => createImageBitmap(atlas, 0, (row % perAtlas) * tileHeight, width, height)));
        rows.forEach((row, i) => this.tiles.set(row, tiles[i]));
      } catch { /* they stay dots */ }
      this.app.invalidate();
    }
    this.busy = false;
  }
}
