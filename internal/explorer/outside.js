// Buttons at the edges of the stage: how many points lie beyond, outside the frame. A click
// brings them into sight.

const leastHint = 1.5; // from this zoom on, most points are out of sight anyway

class Outside {
  constructor(app) {
    this.app = app;
    this.known = -1; // the view of far
    this.sides = ["left", "right", "below", "above"].map((name, k) => {
      const side = { name, axis: k >> 1, sign: k % 2 ? 1 : -1, far: null, n: 0, button: byId("outside-" + name) };
      side.button.addEventListener("click", () => this._reach(side));
      return side;
    });
  }

  /** Shows the buttons for a frame of the camera. Points are counted anew when other ones are shown. */
  update(frame) {
    const { camera, visible } = this.app;
    const view = frame.mixing ? frame.to : frame.from, rest = frame.mixing === 0 || frame.mixing === 1;
    if (rest && (this.known !== view || this.visible !== visible)) {
      for (const side of this.sides) this._find(side, this.app.views[view]);
      Object.assign(this, { known: view, visible });
    }
    for (const side of this.sides) {
      const n = rest && camera.zoom < leastHint ? side.far.length - firstFrom(side.far, this._edge(side)) : 0;
      if (n === side.n) continue;
      const { name, axis, sign, button } = side, text = grouped(n);
      side.n = n;
      button.hidden = n === 0;
      button.textContent = axis ? (sign > 0 ? "▲ " : "▼ ") + text : sign > 0 ? text + " ▶" : "◀ " + text;
      button.title = `${points(n)} ${axis ? name : "to the " + name}; show ${n === 1 ? "it" : "them"}`;
      button.setAttribute("aria-label", button.title);
    }
  }

  /** Finds how far out on a side the visible points outside the frame are. */
  _find(side, { positions, half, unit, low, high }) {
    const { axis, sign } = side, { app, app: { data: { n }, visible } } = this, all = visible.length === n, bound = half[axis] / unit * (1 + 1e-6), far = [];
    if ((sign < 0 ? -low[axis] : high[axis]) > bound) {
      for (let i = 0; i < n; i++) {
        const v = sign * positions[2 * i + axis];
        if (v > bound && (all || app.isVisible(i))) far.push(v);
      }
    }
    side.far = Float32Array.from(far).sort();
  }

  /** Returns how far out the edge of the stage is. */
  _edge({ axis, sign }) {
    const { camera } = this.app;
    return axis ? sign * camera.y + camera.height / 2 / camera.scale() : sign * camera.x + camera.width / 2 / camera.scale();
  }

  /** Brings the points of a side into sight, with the middle of the map where it is. */
  _reach({ axis, sign, far }) {
    const { app, app: { camera } } = this, middle = sign * (axis ? camera.y : camera.x);
    camera.zoom *= (axis ? camera.height : camera.width) / 2 / camera.scale() / (1.06 * (far[far.length - 1] - middle));
    byId("points").focus(); // the button goes
    app.invalidate();
  }
}
