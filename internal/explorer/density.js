// How crowded the points are. If there are very many (about.dense), points in crowded places
// are drawn fainter: structure shows there, too, instead of the points drawn last.

const crowdSteps = 6; // per factor of two

class Crowds {
  constructor(views) {
    this.views = views;
    this.forget();
  }

  /** Forgets which points were visible. */
  forget() { this.known = new Map(); }

  /**
   * Returns of the points of a view
   *   levels   of each row, crowdSteps times the logarithm to base 2 of how many points there
   *            are around it in a square with sides of 1; 0 for rows that are not in a list or
   *            far outside the frame
   *   busiest  the level that all but a hundredth of the points in the first list do not exceed
   * The points of each list of rows are counted by themselves.
   */
  of(view, lists) {
    let crowd = this.known.get(view);
    if (!crowd) {
      const levels = new Uint8Array(this.views[view].positions.length / 2);
      for (const rows of lists) this._count(this.views[view], rows, levels);
      crowd = { levels, busiest: this._busiest(levels, lists[0]) };
      this.known.set(view, crowd);
    }
    return crowd;
  }

  /** Sets the levels of rows by a grid of counts, smoothed with weights 1, 2 and 1 along both axes. */
  _count({ positions: xy, low, high }, rows, levels) {
    const cells = within(Math.round(Math.sqrt(rows.length / 4)), 16, 512), width = cells + 2;
    const counts = new Float32Array(width * width), smooth = new Float32Array(width * width);
    // Around the cells there is a margin of empty ones.
    const span = within(Math.max(...high, -low[0], -low[1]), 1, 1.5), scale = cells / (2 * span);
    // Memory is read in order, which takes a third of the time that the order of rows takes.
    const ours = new Uint8Array(levels.length), of = new Uint32Array(levels.length);
    for (let k = 0; k < rows.length; k++) ours[rows[k]] = 1;
    for (let i = 0; i < ours.length; i++) {
      if (ours[i] === 0) continue;
      const x = xy[2 * i], y = xy[2 * i + 1];
      if (x < -span || x > span || y < -span || y > span) continue;
      of[i] = (1 + Math.min(cells - 1, (y + span) * scale | 0)) * width + 1 + Math.min(cells - 1, (x + span) * scale | 0);
      counts[of[i]]++;
    }
    for (let c = 1; c < counts.length - 1; c++) smooth[c] = (counts[c - 1] + 2 * counts[c] + counts[c + 1]) / 4;
    const level = new Uint8Array(counts.length);
    for (let c = width; c < counts.length - width; c++) {
      if (!counts[c]) continue;
      const density = (smooth[c - width] + 2 * smooth[c] + smooth[c + width]) / 4 * scale ** 2;
      level[c] = within(Math.round(crowdSteps * Math.log2(density)), 0, 255);
    }
    for (let i = 0; i < ours.length; i++) if (ours[i] === 1) levels[i] = level[of[i]];
  }

  _busiest(levels, rows) {
    const counts = new Uint32Array(256);
    for (let k = 0; k < rows.length; k++) counts[levels[rows[k]]]++;
    let level = 255;
    for (let above = counts[level]; level > 0 && above <= rows.length / 100; above += counts[level]) level--;
    return level;
  }
}
