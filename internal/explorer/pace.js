// Draws pictures of so many points that a frame has no time for all. While a picture changes,
// each frame shows a sample of the points. Once it is at rest all are drawn, a part at a time,
// out of sight, and shown when the last is there. Fewer points are drawn at once.

const pacedFrom = 200000; // points
const frameTime = 20;     // milliseconds for the points of a frame
const restTime = 150;     // milliseconds from the last change on
const pieces = 32;        // of a list that make a sample

class Pace {
  constructor(renderer) {
    this.renderer = renderer;
    this.budget = 20000; // points that a frame has time for, as measured
    this.forget();
  }

  /** Forgets what has been drawn. */
  forget() {
    this.stop();
    this.picture = null; // drawn last
    this.done = 0; // points of the picture that are drawn out of sight
    this.whole = false; // whether the canvas shows all points
  }

  /** Interrupts drawing until draw is called again. */
  stop() { clearTimeout(this.timer); }

  /**
   * Draws a picture: width and height of the canvas, its ground, a frame of the camera, crowds
   * of the two views or null, and layers, each a list of rows and the style for drawing them.
   * at once: all points.
   */
  draw(picture, atOnce) {
    const { renderer } = this;
    const n = picture.layers.reduce((sum, { rows }) => sum + rows.length, 0);
    this.stop();
    if (atOnce || n < pacedFrom) {
      this._begin(picture);
      for (const { rows, style } of picture.layers) renderer.draw(rows, style);
      Object.assign(this, { picture, whole: true, n });
      return;
    }
    if (!this.picture || !this._alike(this.picture, picture)) {
      Object.assign(this, { picture, whole: false, n, done: 0 });
      this._sample();
    }
    if (!this.whole) this.timer = setTimeout(() => this._more(), this.done ? 0 : restTime);
  }

  /** Returns whether two pictures are the same. */
  _alike(a, b) {
    const lists = ({ colours, crowds, layers }) => [colours, ...crowds ?? [], ...layers.map((l) => l.rows)];
    const text = ({ width, height, ground, frame, layers }) => JSON.stringify([width, height, ground, frame, layers.map((l) => l.style)]);
    const others = lists(b);
    return text(a) === text(b) && lists(a).length === others.length && lists(a).every((list, k) => list === others[k]);
  }

  _begin({ width, height, ground, frame, crowds }) {
    this.renderer.clear(width, height, ground);
    this.renderer.place(frame);
    if (crowds) this.renderer.setCrowds(...crowds);
  }

  /** Draws as many points as a frame has time for, as strong together as all would be. */
  _sample() {
    const { renderer, picture: { layers } } = this;
    // Few points that lie above many are all drawn.
    const counts = [];
    let drawn = 0;
    for (let k = layers.length - 1; k >= 0; k--) {
      counts[k] = Math.min(layers[k].rows.length, Math.floor((this.budget - drawn) / (k + 1)));
      drawn += counts[k];
    }
    this._timed(drawn, () => {
      this._begin(this.picture);
      layers.forEach(({ rows, style }, k) => {
        const share = counts[k] / rows.length, larger = within(share ** -0.25, 1, 2.5), fewer = Math.log2(share * larger ** 2);
        const thinned = { ...style, diameter: style.diameter * larger };
        if (style.busiest) Object.assign(thinned, { crowd: style.crowd + fewer, busiest: Math.max(0, style.busiest + fewer) });
        // A piece is random, as the order is, but for points without a colour, which come first.
        for (let p = 0; p < pieces; p++) {
          renderer.draw(rows, thinned, Math.floor(p * rows.length / pieces), Math.floor((p + 1) * counts[k] / pieces) - Math.floor(p * counts[k] / pieces));
        }
      });
    });
    this.whole = drawn === this.n;
  }

  /** Draws the next part of all points out of sight, and shows them after the last. */
  _more() {
    const { renderer, picture } = this;
    if (renderer.gl.isContextLost()) return;
    let skip = this.done, left = Math.min(2 * this.budget, this.n - this.done);
    renderer.aside(picture.width, picture.height);
    this._timed(left, () => {
      if (!this.done) this._begin(picture);
      for (const { rows, style } of picture.layers) {
        const count = within(rows.length - skip, 0, left);
        renderer.draw(rows, style, skip, count);
        skip = Math.max(0, skip - rows.length);
        left -= count;
        this.done += count;
      }
    });
    this.whole = this.done === this.n;
    renderer.show(this.whole);
    if (!this.whole) this.timer = setTimeout(() => this._more(), 0);
  }

  /** Draws so many points and learns from the time it takes. */
  _timed(count, draw) {
    const begun = performance.now();
    draw();
    this.renderer.finish();
    const fits = count * frameTime / Math.max(0.5, performance.now() - begun);
    this.budget = Math.round(Math.max(5000, within(fits, this.budget / 2, 2 * this.budget)));
  }
}
