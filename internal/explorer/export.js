// What can be taken out of a page: the selection as a table, the view as a picture, and
// the view as the fragment of the page's address (link.js).

const largePicture = 4;          // pixels per CSS pixel of a large picture
const mostInSVG = 50000;         // points
const csvRows = 20000;           // of a selection that are joined at a time
const scaleWidth = 170;          // of the scale of values beside a picture, in CSS pixels

/** Has the browser save parts of a file. */
function save(parts, type, name) {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Returns text as a field of CSV (RFC 4180). */
const csvField = (text) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);

/** Returns text for XML. */
const xmlText = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** Returns a length with two decimals at most. */
const short = (v) => String(Math.round(100 * v) / 100);

class Exporter {
  constructor(app) {
    this.app = app;
    byId("save-png").addEventListener("click", () => this._finish(this.png(devicePixelRatio || 1)));
    byId("save-large").addEventListener("click", () => this._finish(this.png(largePicture)));
    byId("save-svg").addEventListener("click", () => this._finish(this.svg()));
    byId("save-link").addEventListener("click", () => this._finish(this._copy()));
    byId("save").addEventListener("keydown", (e) => stepThrough(e, Array.from(byId("save").querySelectorAll("button:enabled"))));
    byId("download").addEventListener("click", () => this.csv());
  }

  /** The view that is shown, or the nearer of two. */
  get _view() { return this.app.views[this.app.camera.near]; }

  /** Returns a file's name: the title of the page, and what the file is. */
  _name(what, extension) {
    const clean = (text) => text.replace(/[^\p{L}\p{N}=.+-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80);
    return ([this.app.data.title, this._view.name, what].map(clean).filter(Boolean).join("-") || "embedding") + extension;
  }

  /* The selection ----------------------------------------------------------- */

  /** Saves the selected rows with all that the page knows of them, as CSV. */
  async csv() {
    const { app, app: { data } } = this, { centre, unit, positions } = this._view;
    const rows = app.selection.visible();
    if (!rows.length) return;
    await data.rest; // further columns may still be read
    // Positions have steps (see frame in page.go): digits below them would mean nothing.
    const exponent = Math.ceil(Math.log10(unit * app.camera.reach * 2 ** -23));
    const place = (i, axis) => Number(Math.round((centre[axis] + unit * positions[2 * i + axis]) / 10 ** exponent) + "e" + exponent);
    const head = ["row", ...(data.names ? ["name"] : []), ...data.columns.map((c) => c.name), ...(data.held ? ["held out"] : []), "x", "y"];
    const parts = [head.map(csvField).join(",") + "\n"];
    for (let at = 0; at < rows.length; at += csvRows) {
      parts.push(Array.from(rows.subarray(at, at + csvRows), (i) => {
        const fields = [String(i)];
        if (data.names) fields.push(csvField(data.names[i]));
        for (const { classes, category, values } of data.columns) {
          fields.push(classes ? csvField(classes[category[i]]?.name ?? "") : Number.isNaN(values[i]) ? "" : String(values[i]));
        }
        if (data.held) fields.push(String(Boolean(data.held[i])));
        fields.push(place(i, 0), place(i, 1));
        return fields.join(",") + "\n";
      }).join(""));
    }
    save(parts, "text/csv", this._name("selection", ".csv"));
    app.say(points(rows.length) + " saved");
  }

  /* The view ------------------------------------------------------------------ */

  /** Says what cannot be saved, when the menu opens. */
  opened() {
    const { app, app: { camera } } = this;
    const [x0, y1] = camera.toWorld(0, 0), [x1, y0] = camera.toWorld(camera.width, camera.height);
    const few = app.places.inBox(camera.frame(), app.visible, x0, y0, x1, y1, mostInSVG) !== null;
    byId("save-svg").disabled = !few;
    byId("save-why").textContent = `SVG is for up to ${points(mostInSVG)} in sight; zoom in, or hide some.`;
    byId("save-why").hidden = few;
  }

  /** Closes the menu once something is saved, unless there is something to tell about it. */
  async _finish(saved) {
    const problem = await saved;
    byId("save-why").textContent = problem;
    byId("save-why").hidden = problem === "";
    if (problem === "") this.app.toggleCard("save", false);
    this.app.say(problem || "Done");
  }

  /** Saves the view as PNG with so many pixels per CSS pixel, and returns what did not go as wanted. */
  async png(wanted) {
    const { app } = this;
    const { camera, renderer } = app, { gl } = renderer;
    if (gl.isContextLost()) return "The graphics are gone at the moment; try again";
    const most = Math.min(gl.getParameter(gl.MAX_RENDERBUFFER_SIZE), ...gl.getParameter(gl.MAX_VIEWPORT_DIMS));
    let ratio = Math.min(wanted, most / camera.width, most / camera.height);
    const frame = camera.frame(), canvas = make("canvas"), beside = app.scale ? scaleWidth : 0;
    // Nobody sees the canvas in this size: its own comes back before the browser shows it.
    app.pace.draw(app.picture(frame, ratio), true);
    // A browser may give less.
    if (gl.drawingBufferWidth < renderer.canvas.width) app.pace.draw(app.picture(frame, ratio *= gl.drawingBufferWidth / renderer.canvas.width), true);
    canvas.width = Math.round((camera.width + beside) * ratio);
    canvas.height = Math.round(camera.height * ratio);
    const g = canvas.getContext("2d");
    g.fillStyle = app.inks.ground;
    g.fillRect(0, 0, canvas.width, canvas.height);
    g.drawImage(renderer.canvas, 0, 0, Math.round(camera.width * ratio), canvas.height);
    app.pace.forget();
    app._draw();
    g.scale(ratio, ratio);
    this._paint(g, frame, beside);
    const blob = await new Promise((done) => canvas.toBlob(done));
    if (!blob) return "This browser makes no pictures as large as that";
    save([blob], "image/png", this._name(wanted === largePicture ? "large" : "", ".png"));
    return ratio < wanted ? `Saved with ${short(ratio)} times the pixels, the most that the graphics here can draw` : "";
  }

  /** Saves the view as SVG, and returns as png does. */
  async svg() {
    const { app, app: { camera } } = this;
    const frame = camera.frame(), beside = app.scale ? scaleWidth : 0, g = new SVGContext();
    const width = short(camera.width + beside), height = short(camera.height);
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">\n<title>${xmlText(app.data.title)}</title>\n<rect width="${width}" height="${height}" fill="${app.inks.ground}"/>\n`;
    const circles = app.picture(frame, 1).layers.flatMap((layer) => this._circles(frame, layer));
    this._paint(g, frame, beside);
    save([head, ...circles, ...g.out, "</svg>\n"], "image/svg+xml", this._name("", ".svg"));
    return "";
  }

  /** Returns the points of a layer that are in sight as circles; those in crowds are not fainter. */
  _circles(frame, { rows, style }) {
    const { app } = this;
    const { diameter, opacity, contrast = 1, fade = 0, rim = 0 } = style;
    const xy = app.places.current(frame);
    const mixed = (colour, to, part) => "#" + colour.map((c, k) => Math.round(c + (to[k] - c) * part).toString(16).padStart(2, "0")).join("");
    const ground = app.ground.map((c) => 255 * c), inks = new Map(); // from a colour to how it is drawn
    const ink = (i) => {
      const key = app.rgbx[4 * i] << 16 | app.rgbx[4 * i + 1] << 8 | app.rgbx[4 * i + 2];
      let known = inks.get(key);
      if (!known) {
        const rgb = Array.from(app.rgbx.subarray(4 * i, 4 * i + 3)), fill = mixed(rgb, ground, fade);
        known = rim ? `fill="${fill}" stroke="${app.dark ? mixed(rgb, [255, 255, 255], 0.75) : mixed(rgb, [0, 0, 0], 0.65)}"` : `fill="${fill}"`;
        inks.set(key, known);
      }
      return known;
    };
    const out = [`<g fill-opacity="${short(opacity ** contrast)}"${rim ? ` stroke-width="${short(rim)}"` : ""}>\n`], r = short((diameter - rim) / 2);
    for (const i of rows) {
      const [x, y] = app.camera.toScreen(xy[2 * i], xy[2 * i + 1], frame.scale);
      if (x < -diameter || y < -diameter || x > frame.width + diameter || y > frame.height + diameter) continue;
      out.push(`<circle cx="${short(x)}" cy="${short(y)}" r="${r}" ${ink(i)}/>\n`);
    }
    return [...out, "</g>\n"];
  }

  /** Draws what lies above the points, the scale bar and the scale of values; nothing is pointed at. */
  _paint(g, frame, beside) {
    const { app } = this;
    const { hovered } = app;
    app.hovered = -1;
    app.paintOver(g, frame);
    app.hovered = hovered;
    const { ink, ground } = app.inks, bottom = frame.height - 15;
    const { length, text } = app.scaleLength();
    const bar = length * app.camera.pixelsPerUnit();
    g.fillStyle = ground;
    g.fillRect(15, bottom - 4, bar + 2, 5);
    g.fillStyle = ink;
    g.fillRect(16, bottom - 3, bar, 3);
    this._write(g, text, 17, bottom - 13, ink);
    for (const { button, axis, sign, n } of app.outside.sides) {
      if (!n) continue;
      const width = g.measureText(button.textContent).width, middle = [frame.width / 2, frame.height / 2];
      this._write(g, button.textContent, axis ? middle[0] - width / 2 : sign < 0 ? 8 : frame.width - width - 8, axis ? middle[1] - sign * (middle[1] - 12) : middle[1], ink);
    }
    // What lies at the edge may reach beyond it.
    g.fillStyle = ground;
    g.fillRect(frame.width, 0, beside, frame.height);
    if (beside) this._paintScale(g, frame.width + 8);
  }

  _write(g, text, x, y, colour, most = Infinity) {
    g.font = `13px ${getComputedStyle(document.body).fontFamily}`;
    g.textAlign = "left";
    g.textBaseline = "middle";
    const letters = Array.from(text);
    while (letters.length > 1 && g.measureText(letters.join("")).width > most) letters.splice(-2, 2, "…");
    Object.assign(g, { strokeStyle: this.app.inks.ground, lineWidth: 3, lineJoin: "round" });
    g.strokeText(letters.join(""), x, y);
    g.fillStyle = colour;
    g.fillText(letters.join(""), x, y);
  }

  /** Draws the scale of values from some x on. */
  _paintScale(g, x) {
    const { app, app: { data, inks, scale } } = this, steps = 80, height = 160, bottom = 200;
    this._write(g, data.columns[data.column].name, x, 24, inks.ink, scaleWidth - 16);
    for (let k = 0; k < steps; k++) {
      g.fillStyle = scale.ink((k + 0.5) / steps, app.dark);
      g.fillRect(x, bottom - height * (k + 1) / steps, 12, height / steps + 0.5);
    }
    if (scale.narrowed) this._write(g, byId("range-text").textContent, x, bottom + 20, inks.ink, scaleWidth - 16);
    for (const { at, text } of scale.marks()) this._write(g, text, x + 20, bottom - height * at, inks.ink, scaleWidth - 36);
  }

  /* The link ----------------------------------------------------------------- */

  /** Copies the link, and returns as png does. */
  async _copy() {
    this.app.link.write();
    try {
      await navigator.clipboard.writeText(location.href); // there is none where the page came over HTTP
      return "";
    } catch {
      return "Copy the address of this page: it is the link.";
    }
  }
}

/** What the painters use of CanvasRenderingContext2D, writing elements of SVG into out. */
class SVGContext {
  constructor() {
    this.out = [];
    this.path = "";
    this.measure = make("canvas").getContext("2d");
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, lineJoin: "miter", globalAlpha: 1, font: "10px sans-serif", textAlign: "left", textBaseline: "alphabetic" });
  }

  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${short(x)} ${short(y)}`; }
  lineTo(x, y) { this.path += `${this.path ? "L" : "M"}${short(x)} ${short(y)}`; }

  /** Adds a whole circle. */
  arc(x, y, r) { this.path += `M${short(x - r)} ${short(y)}a${short(r)} ${short(r)} 0 1 0 ${short(2 * r)} 0a${short(r)} ${short(r)} 0 1 0 ${short(-2 * r)} 0Z`; }

  _alpha() { return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : ""; }
  _stroke() { return `fill="none" stroke="${this.strokeStyle}" stroke-width="${short(this.lineWidth)}" stroke-linejoin="${this.lineJoin}"${this._alpha()}`; }
  fill() { this.out.push(`<path d="${this.path}" fill="${this.fillStyle}"${this._alpha()}/>\n`); }
  stroke() { this.out.push(`<path d="${this.path}" ${this._stroke()}/>\n`); }
  fillRect(x, y, w, h) { this.out.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" fill="${this.fillStyle}"${this._alpha()}/>\n`); }
  fillText(text, x, y) { this._text(text, x, y, `fill="${this.fillStyle}"${this._alpha()}`); }
  strokeText(text, x, y) { this._text(text, x, y, this._stroke()); }

  _text(text, x, y, look) {
    const anchor = this.textAlign === "center" ? "middle" : "start";
    const [, weight = "400", size, family] = /^(?:(\d+) )?([\d.]+)px (.*)$/.exec(this.font);
    // Not all programs know dominant-baseline.
    if (this.textBaseline === "middle") y += 0.36 * size;
    this.out.push(`<text x="${short(x)}" y="${short(y)}" text-anchor="${anchor}" font-weight="${weight}" font-size="${size}" font-family="${xmlText(family)}" ${look}>${xmlText(text)}</text>\n`);
  }

  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  drawImage(canvas, x, y, w, h) {
    this.out.push(`<image x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(h)}" href="${canvas.toDataURL()}"/>\n`);
  }
}
