// The lasso, and what it has selected.

const mostPictures = 24;
const mostClasses = 6;

class Selection {
  constructor(app) {
    this.app = app;
    this.rows = null; // in increasing order, or null
    byId("selection-clear").addEventListener("click", () => app.select(null));
  }

  /** Returns what is selected and visible, in increasing order. */
  visible() { return this.rows ? this.rows.filter((i) => this.app.isVisible(i)) : new Uint32Array(0); }

  /** Shows the panel for what is selected. */
  update() {
    const rows = this.visible();
    byId("selection").hidden = this.rows === null;
    if (this.rows === null) return;
    byId("selection-count").textContent = points(rows.length) + (rows.length < this.rows.length ? ` of ${grouped(this.rows.length)}, the others are hidden` : "");
    byId("download").disabled = rows.length === 0;
    this._listClasses(rows);
    this._showPictures(rows);
  }

  _listClasses(rows) {
    const { app } = this;
    const list = byId("selection-classes");
    list.replaceChildren();
    if (!app.data.classes || !rows.length) return;
    const counts = new Map();
    for (const i of rows) counts.set(app.data.category[i], (counts.get(app.data.category[i]) ?? 0) + 1);
    const sorted = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const shown = sorted.length > mostClasses ? sorted.slice(0, mostClasses - 1) : sorted;
    const add = (colour, name, n) => {
      const item = make("li");
      const dot = make("span", "dot"), bar = make("span", "share");
      dot.style.background = bar.style.background = colour;
      bar.style.width = (100 * n) / rows.length + "%";
      item.append(dot, make("span", "name", name), make("span", "number", grouped(n)), bar);
      list.append(item);
    };
    for (const [category, n] of shown) add(app.ink(category), app.nameOf(category), n);
    const rest = sorted.slice(shown.length);
    if (rest.length) add("var(--soft)", rest.length + " other classes", rest.reduce((sum, [, n]) => sum + n, 0));
  }

  /** Shows some of the pictures, evenly from all. */
  _showPictures(rows) {
    const { app } = this;
    const box = byId("selection-images");
    box.hidden = !app.pictures || !rows.length;
    box.replaceChildren();
    if (box.hidden) return;
    const count = Math.min(mostPictures, rows.length);
    for (let k = 0; k < count; k++) {
      const row = rows[Math.floor((k * rows.length) / count)];
      const button = make("button");
      button.type = "button";
      button.title = "row " + row + (app.labelOf(row) === "" ? "" : ", " + app.labelOf(row));
      button.setAttribute("aria-label", button.title);
      const canvas = make("canvas");
      button.append(canvas);
      button.addEventListener("click", () => app.goTo(row));
      box.append(button);
      app.pictures.draw(canvas, row).catch(() => button.remove());
    }
  }
}
