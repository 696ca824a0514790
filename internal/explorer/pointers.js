// What mouse, pen and fingers do on the stage.

/** Mouse, pen and fingers on the stage. */
class Pointers {
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
    this.down = new Map(); // from the id of a pointer that is down to its place
    this.drawnTo = null;   // the last place of the lasso
    this.mode = "";        // what they do: "press", "pan", "pinch", "lasso"
    canvas.addEventListener("pointerdown", (e) => this._start(e));
    canvas.addEventListener("pointermove", (e) => this._move(e));
    canvas.addEventListener("pointerup", (e) => this._end(e));
    canvas.addEventListener("pointercancel", (e) => this._end(e));
    canvas.addEventListener("pointerleave", () => { if (!this.down.size) app.unhover(); });
    canvas.addEventListener("wheel", (e) => this._wheel(e), { passive: false });
    canvas.addEventListener("dblclick", (e) => {
      if (app.lassoing) return;
      app.camera.zoomAt(...this._place(e), e.shiftKey ? 0.5 : 2);
      app.invalidate();
    });
  }

  _place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  _start(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    this.canvas.setPointerCapture?.(event.pointerId);
    const place = this._place(event);
    this.down.set(event.pointerId, place);
    this.app.unhover();
    if (this.down.size === 2) {
      this.app.line = null; // two fingers zoom, whatever one was doing
      this.mode = "pinch";
    } else if (this.down.size === 1) {
      this.origin = place;
      this.mode = "press";
      if (this.app.lassoing || event.shiftKey) {
        this.mode = "lasso";
        this.app.line = [];
        this._lengthen(this.app.line, place);
      }
    }
  }

  _move(event) {
    const { app } = this;
    const place = this._place(event);
    const before = this.down.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch" && !app.lassoing) app.hover(...place);
      return;
    }
    if (this.mode === "press" && Math.hypot(place[0] - this.origin[0], place[1] - this.origin[1]) > (event.pointerType === "mouse" ? 3 : 8)) {
      this.mode = "pan";
      byId("stage").classList.add("dragging");
    }
    if (this.mode === "pan") {
      app.camera.pan(place[0] - before[0], place[1] - before[1]);
    } else if (this.mode === "lasso") {
      const { line } = app;
      if (line) {
        // All places between two frames, so that a quick line stays round.
        for (const e of event.getCoalescedEvents?.() ?? []) this._lengthen(line, this._place(e));
        this._lengthen(line, place);
      }
    } else if (this.mode === "pinch" && this.down.size === 2) {
      const other = [...this.down].find(([id]) => id !== event.pointerId)[1];
      const distance = (p) => Math.max(10, Math.hypot(p[0] - other[0], p[1] - other[1]));
      app.camera.pan((place[0] - before[0]) / 2, (place[1] - before[1]) / 2);
      app.camera.zoomAt((place[0] + other[0]) / 2, (place[1] + other[1]) / 2, distance(place) / distance(before));
    }
    this.down.set(event.pointerId, place);
    if (this.mode !== "press") app.invalidate();
  }

  /** Adds a place to the lasso, unless the last is as good: each costs a test of every point. */
  _lengthen(line, place) {
    if (line.length && Math.hypot(place[0] - this.drawnTo[0], place[1] - this.drawnTo[1]) < 2) return;
    this.drawnTo = place;
    line.push(this.app.camera.toWorld(...place));
  }

  _end(event) {
    if (!this.down.delete(event.pointerId)) return;
    // The finger that is left after a pinch goes on moving the points.
    if (this.mode === "pinch" && this.down.size === 1) this.mode = "pan";
    if (this.down.size) return;
    const { app } = this;
    const { mode } = this;
    this.mode = "";
    byId("stage").classList.remove("dragging");
    if (event.type === "pointercancel") return this.cancel();
    if (mode === "lasso") {
      app.finishLasso(event.ctrlKey || event.metaKey);
    } else if (mode === "press") {
      const finger = event.pointerType === "touch";
      app.pin(...this._place(event), finger ? 22 : 8);
    }
  }

  /** Forgets a line that is being drawn. */
  cancel() {
    this.app.line = null;
    this.mode = "";
    this.down.clear();
    this.app.invalidate();
  }

  _wheel(event) {
    event.preventDefault();
    const { app } = this;
    // Lines and pages, where a browser counts in these, as pixels. A pinch on a
    // touchpad comes as a wheel with Ctrl, in small steps.
    const pixels = event.deltaY * [1, 18, 300][event.deltaMode];
    app.camera.zoomAt(...this._place(event), Math.exp(-within(pixels, -240, 240) * (event.ctrlKey ? 0.01 : 0.0022)));
    app.hovered = -1;
    app.invalidate();
  }
}
