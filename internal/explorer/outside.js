// Buttons at the edges of the stage: how many points lie beyond, outside the frame. A click
// brings them into sight.

const leastHint = 1.5; // the zoom from which on most points are out of sight anyway

class Outside {
  constructor(app) {
    this.app = app;
    this.known = ""; // of what far is
    this.sides = ["left", "right", "below", "above"].map((name, k) => {
      const side = { name, axis: k >> 1, sign: k % 2 ? 1 : -1, far: null, n: 0, button: byId("outside-" + name) };
      side.button.addEventListener("click", () => this._reach(side));
      return side;
    });
  }

  /** Shows the buttons for a frame of the camera. Points are counted once they are at rest. */
  update(frame) {
    const { camera, visible } = this.app;
    const view = frame.mixing ? frame.to : frame.from, rest = frame.mixing === 0 || frame.mixing === 1;
    const size = frame.sizes[frame.mixing ? 1 : 0], of = [view, size].join();
    const known = rest && this.known === of && this.visible === visible;
    clearTimeout(this.timer);
    if (rest && !known) {
      this.timer = setTimeout(() => {
        this._find(this.app.views[view], size);
        Object.assign(this, { known: of, visible });
        this.update(frame);
      }, 100);
    }
    for (const side of this.sides) {
      const n = known && camera.zoom < leastHint ? this._beyond(side) : 0;
      if (n === side.n) continue;
      const { name, axis, sign, button } = side, text = grouped(n);
      side.n = n;
      button.hidden = n === 0;
      button.textContent = axis ? (sign > 0 ? "▲ " : "▼ ") + text : sign > 0 ? text + " ▶" : "◀ " + text;
      button.title = `${points(n)} ${axis ? name : "to the " + name}; show ${n === 1 ? "it" : "them"}`;
      button.setAttribute("aria-label", button.title);
    }
  }

  /** Finds how far out on each side the visible points outside the frame are. */
  _find({ positions, half, unit, low, high }, size) {
    const { visible } = this.app;
    for (const side of this.sides) {
      const { axis, sign } = side, bound = half[axis] / unit * (1 + 1e-6), far = [];
      if ((sign < 0 ? -low[axis] : high[axis]) > bound) {
        for (let k = 0; k < visible.length; k++) {
          const v = sign * positions[2 * visible[k] + axis];
          if (v > bound) far.push(v * size);
        }
      }
      side.far = Float32Array.from(far).sort();
    }
  }

  /** Returns how far out the middle of the stage is, and from there the edge. */
  _sight({ axis, sign }) {
    const { camera } = this.app;
    return axis ? [sign * camera.y, camera.height / 2 / camera.scale()] : [sign * camera.x, camera.width / 2 / camera.scale()];
  }

  /** Returns how many points are out of sight. */
  _beyond(side) {
    const { far } = side, [middle, half] = this._sight(side);
    return far.length - firstFrom(far, middle + half);
  }

  /** Brings the points of a side into sight, next to what is in sight. */
  _reach(side) {
    const { app, app: { camera } } = this, { axis, sign, far } = side;
    const [middle, half] = this._sight(side);
    const wanted = 0.53 * (far[far.length - 1] - middle + half); // half, with a margin
    camera.zoom *= half / wanted;
    camera[axis ? "y" : "x"] = sign * (middle - half + wanted);
    byId("points").focus(); // the button goes
    app.invalidate();
  }
}
