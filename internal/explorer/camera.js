// What part of the embedding is seen, and at which place of the slider.
//
// Positions of each view go from −1 to 1 in its own frame, which 99 % of the points fill,
// and beyond it outside. The camera moves in these units, so that views of very different
// size take the same room while one morphs into the other. Screen coordinates are CSS
// pixels, y downwards.

const mostZoom = 4000; // further, float32 runs out of digits
const leastZoom = 0.2; // of a frame that has all points

/** Returns v, or the nearest limit. */
const within = (v, low, high) => Math.min(high, Math.max(low, v));

class Camera {
  /** The views are so many rows of a grid. */
  constructor(views, rows) {
    this.views = views;
    this.across = views.length / rows;
    this.t = 0;             // place of the slider, a view or between two of a row
    this.down = 0;          // from the view to that below, from 0 to 1; then t is a view
    this.reach = Math.max(1, ...views.flatMap((v) => [...v.low, ...v.high].map(Math.abs))); // of the farthest point
    this.width = this.height = 1; // of the canvas
    this.home();
  }

  /** Shows the frame. */
  home() {
    this.x = this.y = 0;    // what is in the middle
    this.zoom = 1;          // 1: the frame just fits
  }

  /** Returns the view to the left or above, that to the right or below, and the place between. */
  between() {
    if (this.down) return { from: this.t, to: this.t + this.across, mixing: this.down };
    const from = within(Math.floor(this.t), 0, Math.max(0, this.views.length - 2));
    const to = Math.min(from + 1, this.views.length - 1);
    return { from, to, mixing: to === from ? 0 : this.t - from };
  }

  /** The view that is nearest. */
  get near() {
    const { from, to, mixing } = this.between();
    return mixing < 0.5 ? from : to;
  }

  /** The row, or a place between two, and its first view. */
  get row() { return Math.floor(this.t / this.across) + this.down; }
  get first() { return this.across * Math.floor(this.t / this.across); }

  /** Returns what the renderer needs to place points. */
  frame() {
    const { from, to, mixing } = this.between();
    return {
      from, to, mixing, x: this.x, y: this.y, scale: this.scale(), width: this.width, height: this.height,
    };
  }

  /** Pixels per unit of position. */
  scale() {
    const margin = within(0.05 * Math.min(this.width, this.height), 14, 36);
    const w = Math.max(1, this.width - 2 * margin), h = Math.max(1, this.height - 2 * margin);
    // Points that coincide have no extent; a box of half the room suits them.
    const fit = ({ half, unit }) => Math.min(w / (2 * half[0] / unit), h / (2 * half[1] / unit), Math.max(w, h));
    const { from, to, mixing } = this.between();
    const base = (1 - mixing) * fit(this.views[from]) + mixing * fit(this.views[to]);
    return base * this.zoom;
  }

  /** Pixels per unit of the embedding, for the scale bar. */
  pixelsPerUnit() {
    const { from, to, mixing } = this.between();
    const unit = Math.exp((1 - mixing) * Math.log(this.views[from].unit) + mixing * Math.log(this.views[to].unit));
    return this.scale() / unit;
  }

  toScreen(x, y, scale = this.scale()) {
    return [this.width / 2 + (x - this.x) * scale, this.height / 2 - (y - this.y) * scale];
  }

  toWorld(px, py, scale = this.scale()) {
    return [this.x + (px - this.width / 2) / scale, this.y - (py - this.height / 2) / scale];
  }

  /** Moves the points by so many pixels. */
  pan(dx, dy) {
    const scale = this.scale();
    this._moveTo(this.x - dx / scale, this.y + dy / scale);
  }

  /** Zooms by a factor; what is at px, py stays there. */
  zoomAt(px, py, factor) {
    const [x, y] = this.toWorld(px, py);
    this.zoom = within(this.zoom * factor, leastZoom / this.reach, mostZoom);
    const [nx, ny] = this.toWorld(px, py);
    this._moveTo(this.x + x - nx, this.y + y - ny);
  }

  _moveTo(x, y) {
    const limit = 1 + this.reach;
    this.x = within(x, -limit, limit);
    this.y = within(y, -limit, limit);
  }
}

/** Returns the longest length of 1, 2 or 5 times a power of ten up to a limit, and its text. */
function roundLength(limit) {
  for (let exponent = Math.floor(Math.log10(limit)) + 1; ; exponent--) {
    for (const mantissa of [5, 2, 1]) {
      const text = mantissa + "e" + exponent;
      const length = Number(text);
      if (length > limit) continue;
      const plain = length >= 1e-4 && length < 1e6;
      return { length, text: plain ? String(length) : text };
    }
  }
}
