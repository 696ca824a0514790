// How crowded the points are. Of very many (about.dense) those in crowded places
// are drawn fainter, so that structure shows there, too, instead of the points
// that happen to be drawn last.

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
   *            are around it in a square with sides of 1; 0 for rows that are not in a list
   *   busiest  the level that all but a hundredth of the points in the first list do not exceed
   * The points of each list of rows are counted by themselves.
   */
  of(view, lists) {
    let crowd = this.known.get(view);
    if (!crowd) {
      const xy = this.views[view].positions;
      const levels = new Uint8Array(xy.length / 2);
      for (const rows of lists) this._count(xy, rows, levels);
      crowd = { levels, busiest: this._busiest(levels, lists[0]) };
      this.known.set(view, crowd);
    }
    return crowd;
  }

  /** Sets the levels of rows by a grid of counts, smoothed with weights 1, 2 and 1 along both axes. */
  _count(xy, rows, levels) {
    const cells = within(Math.round(Math.sqrt(rows.length / 4)), 16, 512), width = cells + 2;
    const counts = new Float32Array(width * width), smooth = new Float32Array(width * width);
    // Around the cells there is a margin of empty ones.
    const half = cells / 2, last = cells - 1;
    // Memory is read in order, which takes a third of the time that the order of rows takes.
    const ours = new Uint8Array(levels.length), of = new Uint32Array(levels.length);
    for (let k = 0; k < rows.length; k++) ours[rows[k]] = 1;
    for (let i = 0; i < ours.length; i++) {
      if (ours[i] === 0) continue;
      const x = Math.min(last, Math.max(0, (xy[2 * i] + 1) * half)) | 0, y = Math.min(last, Math.max(0, (xy[2 * i + 1] + 1) * half)) | 0;
      const cell = (y + 1) * width + x + 1;
      of[i] = cell;
      counts[cell]++;
    }
    for (let c = 1; c < counts.length - 1; c++) smooth[c] = (counts[c - 1] + 2 * counts[c] + counts[c + 1]) / 4;
    const perUnit = (cells / 2) ** 2;
    const level = new Uint8Array(counts.length);
    for (let c = width; c < counts.length - width; c++) {
      if (!counts[c]) continue;
      const density = (smooth[c - width] + 2 * smooth[c] + smooth[c + width]) / 4 * perUnit;
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
