// What there is about single points: their neighbours in the data, the panel of the point
// that was clicked, and their pictures on the map.

const nearInTip = 5;

/** Returns a text of several lines in one. */
const oneLine = (text) => text.replace(/\s*\n\s*/g, " ");

/** The neighbours of points in the data, and the panel of one point. */
class PointPanel {
  constructor(app) {
    this.app = app;
    this.row = -1;   // which the panel shows
    this.drawn = []; // the neighbours that lines lead to
    byId("point-clear").addEventListener("click", () => {
      app.pinned = -1;
      byId("points").focus();
      app.invalidate();
    });
    byId("near").addEventListener("keydown", (e) => stepThrough(e, Array.from(byId("near").querySelectorAll("button"))));
    // Its arrows scroll the text, not the map.
    byId("point-name").addEventListener("keydown", (e) => { if (/^(Arrow|Page|Home|End| )/.test(e.key)) e.stopPropagation(); });
  }

  /** Returns the rows of the neighbours of a row in the data, nearest first. */
  of(row) {
    const { near, neighbors, n } = this.app.data;
    return near && row >= 0 ? Array.from(near.subarray(neighbors * row, neighbors * (row + 1))).filter((i) => i < n) : [];
  }

  /** Puts a neighbour into an element of a list: a dot, what it is, its row. */
  fill(element, row) {
    const { app } = this;
    element.append(app.dot(row), make("span", "name", oneLine(app.data.names?.[row] ?? "") || app.labelOf(row)), make("span", "number", "row " + row));
    return element;
  }

  /** Draws lines from the point that is pointed at, or was clicked, to its neighbours. */
  paint(g, frame) {
    const { app } = this;
    const row = app.hovered >= 0 ? app.hovered : app.pinned;
    const place = (i) => app.placeOf(i, frame);
    this.drawn = this.of(row).filter((i) => app.isVisible(i));
    for (const [k, i] of this.drawn.entries()) {
      g.globalAlpha = 0.9 - 0.55 * k / app.data.neighbors;
      g.beginPath();
      g.moveTo(...place(row));
      g.lineTo(...place(i));
      for (const [colour, width] of [[app.inks.ground, 3], [app.inks.ink, 1.25]]) Object.assign(g, { strokeStyle: colour, lineWidth: width }).stroke();
    }
    g.globalAlpha = 1;
    for (const i of this.drawn) {
      if (app.thumbnails?.ring(g, i)) continue;
      g.beginPath();
      g.arc(...place(i), app.diameter() / 2 + 1, 0, 2 * Math.PI);
      g.strokeStyle = app.inks.ink;
      g.lineWidth = 2;
      g.stroke();
      g.fillStyle = app.inkOfRow(i);
      g.fill();
    }
  }

  /** Shows the panel of a row, or none for −1. */
  show(row) {
    if (row === this.row) return;
    const { app } = this;
    const { data } = app;
    const focused = byId("near").contains(document.activeElement);
    this.row = row;
    // What the tip says already is not worth a panel.
    byId("point").hidden = row < 0 || !(data.columns.length || data.hasNames || app.pictures || data.neighbors);
    app._layoutSide(false);
    if (byId("point").hidden) return;
    describe(app, "point", row);
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
      button.addEventListener("click", () => app.goTo(i));
      item.append(this.fill(button, i));
      return item;
    }));
    const text = byId("point-name");
    text.tabIndex = text.scrollHeight > text.clientHeight ? 0 : -1;
    text.scrollTop = byId("point").scrollTop = 0;
    if (focused) byId("near").querySelector("button")?.focus();
  }
}

const mostThumbnails = 250; // in sight; with more, points are only dots
const keptThumbnails = 2000;
const cutAtOnce = 8;

/** The pictures of points at their places on the map, where there are few. */
class Thumbnails {
  constructor(app) {
    this.app = app;
    this.on = true;
    this.tiles = new Map(); // from a row to a canvas, the one used last at the end
    this.cutting = 0;       // canvases that are still empty
    this.placed = [];       // { row, x, y, w, h, tile } of what is drawn
    byId("pictures").hidden = byId("pictures-label").hidden = false;
    byId("pictures").addEventListener("change", (e) => {
      this.on = e.target.checked;
      app.invalidate();
    });
  }

  /** Draws the pictures of the points in sight, if they are few enough. */
  paint(g, frame) {
    const { app } = this;
    const { camera } = app;
    this.placed = [];
    // On the way between views, all points are sorted anew for each picture.
    if (!this.on || frame.mixing % 1 && app.data.n > 1e5) return;
    const { width, height } = app.data.images;
    const size = Math.round(within(2.5 * app.diameter(), 20, 64)) / Math.max(width, height), w = size * width, h = size * height;
    // A little more than the stage, so that pictures at its edge stay while it is moved.
    const [x0, y1] = camera.toWorld(-w, -h, frame.scale), [x1, y0] = camera.toWorld(camera.width + w, camera.height + h, frame.scale);
    const rows = app.places.inBox(frame, app.visible, x0, y0, x1, y1, mostThumbnails);
    const standing = app.standingOut(), gap = 4, places = [];
    if (standing !== this.standing) Object.assign(this, { standing, bright: standing && new Set(standing) });
    // Always in the same order, so that a picture does not give way to another from frame to frame.
    for (const row of rows?.sort((a, b) => a - b) ?? []) {
      const [px, py] = app.placeOf(row, frame), x = px - w / 2, y = py - h / 2;
      if (places.some((p) => Math.abs(p.x - x) < w + gap && Math.abs(p.y - y) < h + gap)) continue;
      places.push({ row, x, y, w, h, tile: this._tile(row) });
    }
    this.placed = places.filter((p) => p.tile);
    for (const p of this.placed) {
      g.globalAlpha = standing && !this.bright.has(p.row) ? 0.25 : 1;
      this._draw(g, p, [[app.inkOfRow(p.row), 2]]);
    }
    g.globalAlpha = 1;
  }

  /** Draws a picture in frames of some colours and widths. */
  _draw(g, { tile, x, y, w, h }, frames) {
    for (const [colour, by] of frames) {
      g.fillStyle = colour;
      g.fillRect(x - by, y - by, w + 2 * by, h + 2 * by);
    }
    g.imageSmoothingQuality = "high";
    g.drawImage(tile, x, y, w, h);
  }

  /** Returns where the picture of a row is drawn; undefined if it is not. */
  of(row) { return this.placed.find((p) => p.row === row); }

  /** Rings the picture of a row, and returns whether it is there. */
  ring(g, row) {
    const p = this.of(row), { ink, ground } = this.app.inks;
    if (p) this._draw(g, p, [[ink, 5], [ground, 3], [this.app.inkOfRow(row), 2]]);
    return Boolean(p);
  }

  /** Returns the row whose picture is at a place of the stage, or −1. */
  rowAt(px, py) { return this.placed.find((p) => px >= p.x && px <= p.x + p.w && py >= p.y && py <= p.y + p.h)?.row ?? -1; }

  /** Returns the picture of a row, or has it made, a few at a time. */
  _tile(row) {
    let tile = this.tiles.get(row);
    if (!tile) {
      if (this.cutting === cutAtOnce) return null;
      tile = make("canvas");
      this.cutting++;
      const done = (ready) => {
        tile.ready = ready;
        this.cutting--;
        this.app.invalidate();
      };
      this.app.pictures.draw(tile, row).then(() => done(true), () => done(false));
    }
    this.tiles.delete(row);
    this.tiles.set(row, tile);
    if (this.tiles.size > keptThumbnails) this.tiles.delete(this.tiles.keys().next().value);
    return tile.ready ? tile : null;
  }
}
