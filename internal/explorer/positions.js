// Where points are at the moment, and which of them is near.

class Places {
  constructor(views) {
    this.views = views;
    this.stamp = "";
    this.xy = null;
  }

  /**
   * Returns the positions of all points in a frame of the camera, x and y
   * alternating; they are made anew only if the slider has moved.
   */
  current(frame) {
    const stamp = [frame.from, frame.to, frame.mixing].join();
    if (stamp === this.stamp) return this.xy;
    this.stamp = stamp;
    this.grid = null;
    const a = this.views[frame.from].positions, b = this.views[frame.to].positions;
    const wa = 1 - frame.mixing, wb = frame.mixing;
    if (!this.xy) this.xy = new Float32Array(a.length);
    const xy = this.xy;
    for (let i = 0; i < xy.length; i++) xy[i] = wa * a[i] + wb * b[i];
    return xy;
  }

  /** Forgets which points were visible. */
  forget() { this.grid = null; }

  /** Sorts visible rows into the cells of a grid. */
  _sort(rows) {
    const cells = within(Math.round(Math.sqrt(rows.length / 2)), 1, 512);
    const xy = this.xy;
    const starts = new Uint32Array(cells * cells + 1);
    const cell = (v) => within(Math.floor((v + 1) / 2 * cells), 0, cells - 1);
    const of = new Uint32Array(rows.length);
    for (let k = 0; k < rows.length; k++) {
      const i = rows[k];
      of[k] = cell(xy[2 * i + 1]) * cells + cell(xy[2 * i]);
      starts[of[k] + 1]++;
    }
    for (let c = 0; c < cells * cells; c++) starts[c + 1] += starts[c];
    const sorted = new Uint32Array(rows.length);
    const next = starts.slice();
    for (let k = 0; k < rows.length; k++) sorted[next[of[k]]++] = rows[k];
    this.grid = { cells, cell, starts, sorted };
  }

  /** Returns which of the visible rows is nearest to x, y, or −1 if none is within the radius. */
  nearest(frame, visible, x, y, radius) {
    const xy = this.current(frame);
    if (!this.grid) this._sort(visible);
    const { cells, cell, starts, sorted } = this.grid;
    let best = -1, least = radius * radius;
    for (let cy = cell(y - radius); cy <= cell(y + radius); cy++) {
      for (let c = cy * cells + cell(x - radius); c <= cy * cells + cell(x + radius); c++) {
        for (let k = starts[c]; k < starts[c + 1]; k++) {
          const i = sorted[k];
          const dx = xy[2 * i] - x, dy = xy[2 * i + 1] - y;
          const d = dx * dx + dy * dy;
          if (d < least || d === least && i < best) { least = d; best = i; }
        }
      }
    }
    return best;
  }

  /** Returns the visible rows from x0 to x1 and from y0 to y1, or null if there are more than so many. */
  inBox(frame, visible, x0, y0, x1, y1, most) {
    const xy = this.current(frame);
    if (!this.grid) this._sort(visible);
    const { cells, cell, starts, sorted } = this.grid;
    const rows = [];
    for (let cy = cell(y0) * cells; cy <= cell(y1) * cells; cy += cells) {
      const end = starts[cy + cell(x1) + 1];
      for (let k = starts[cy + cell(x0)]; k < end; k++) {
        const i = sorted[k];
        if (xy[2 * i] < x0 || xy[2 * i] > x1 || xy[2 * i + 1] < y0 || xy[2 * i + 1] > y1) continue;
        if (rows.length === most) return null;
        rows.push(i);
      }
    }
    return rows;
  }

  /**
   * Returns the rows that lie within a polygon, [[x, y], …], by the
   * even-odd rule: what a line that crosses itself encloses twice is outside.
   */
  inside(frame, rows, polygon) {
    const xy = this.current(frame);
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const [x, y] of polygon) {
      x0 = Math.min(x0, x); x1 = Math.max(x1, x);
      y0 = Math.min(y0, y); y1 = Math.max(y1, y);
    }
    // A long line has thousands of edges, but few are as high as a point.
    const strips = 512;
    const strip = (y) => within(Math.floor((y - y0) / (y1 - y0 || 1) * strips), 0, strips - 1);
    const edges = Array.from({ length: strips }, () => []); // ax, ay, bx and by of those that touch a strip
    for (let a = polygon.length - 1, b = 0; b < polygon.length; a = b++) {
      const [ax, ay] = polygon[a], [bx, by] = polygon[b];
      for (let s = strip(Math.min(ay, by)); s <= strip(Math.max(ay, by)); s++) edges[s].push(ax, ay, bx, by);
    }
    return rows.filter((i) => {
      const x = xy[2 * i], y = xy[2 * i + 1];
      if (x < x0 || x > x1 || y < y0 || y > y1) return false;
      const near = edges[strip(y)];
      let odd = false;
      for (let k = 0; k < near.length; k += 4) {
        const ax = near[k], ay = near[k + 1], bx = near[k + 2], by = near[k + 3];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
      }
      return odd;
    });
  }
}
