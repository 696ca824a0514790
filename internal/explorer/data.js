// Reads what the page holds. "about" is JSON (see the type of that name in
// page.go); larger things are blocks of base64 in elements of their own, which
// are dropped once they have been read.

const byId = (id) => document.getElementById(id);

/** Returns the bytes of texts in base64, joined in a buffer of their own. */
function bytesOf(texts) {
  const size = (text) => text.length / 4 * 3 - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
  const bytes = new Uint8Array(texts.reduce((sum, text) => sum + size(text), 0));
  let at = 0;
  for (const text of texts) {
    if (bytes.setFromBase64) {
      at += bytes.subarray(at).setFromBase64(text).written;
    } else {
      const raw = atob(text);
      for (let i = 0; i < raw.length; i++) bytes[at++] = raw.charCodeAt(i);
    }
  }
  return bytes;
}

/** Returns the texts of a block, one of each element that it has, and drops the block unless it is kept. */
function takeTexts(name, kept = false) {
  const texts = [];
  for (let element; (element = byId("data-" + name + (texts.length ? "." + texts.length : "")));) {
    texts.push(element.textContent);
    if (!kept) element.remove();
  }
  return texts;
}

/** Returns the bytes of a block, in a buffer of their own, and drops the block. */
async function takeBytes(name) {
  const texts = takeTexts(name), packed = "deflate:";
  if (!texts[0].startsWith(packed)) return bytesOf(texts);
  if (typeof DecompressionStream === "undefined") throw new Error("This browser cannot unpack the data of so many points.");
  texts[0] = texts[0].slice(packed.length);
  const unpacked = new Blob([bytesOf(texts)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

/** Returns whole numbers of 1, 2 or 4 bytes that begin at a byte of a buffer. */
function wholesOf(buffer, start, width) {
  return width === 1 ? new Uint8Array(buffer, start) : width === 2 ? new Uint16Array(buffer, start) : new Uint32Array(buffer, start);
}

/** Returns the values of n rows, NaN for none, from the bytes that encodeValues in columns.go writes. */
function valuesOf(bytes, { distinct, width }, n) {
  if (distinct) {
    const known = new Float64Array(bytes.buffer, 0, distinct), index = wholesOf(bytes.buffer, 8 * distinct, width);
    const values = new Float64Array(n);
    for (let i = 0; i < n; i++) values[i] = index[i] < distinct ? known[index[i]] : NaN;
    return values;
  }
  const whole = new Uint8Array(width * n);
  for (let k = 0, at = 0; k < width; k++) for (let i = 0; i < n; i++) whole[width * i + k] = bytes[at++];
  return width === 8 ? new Float64Array(whole.buffer) : Float64Array.from(new Float32Array(whole.buffer));
}

/** Returns the positions of n rows in a view from the bytes that frame in page.go writes. */
function positionsOf(bytes, { low, high }, n) {
  if (bytes.length === 8 * n) return new Float32Array(bytes.buffer);
  const xy = new Float32Array(2 * n);
  for (let k = 0; k < 2; k++) {
    const start = low[k], step = (high[k] - start) / 0xffffff;
    for (let i = 0, at = 3 * n * k; i < n; i++, at++) {
      xy[2 * i + k] = start + step * (bytes[at] | bytes[at + n] << 8 | bytes[at + 2 * n] << 16);
    }
  }
  return xy;
}

/** Waits until the browser has read the whole page: what stands behind the scripts is there then. */
async function wholePage() {
  if (document.readyState === "loading") await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
}

/**
 * Returns the data of the page: what "about" says, and
 *   views[k].positions  Float32Array, x and y of row i at 2i and 2i+1, from −1 to 1 within the frame
 *   columns             all that can colour the points, each of
 *     name
 *     classes           null for values
 *     category          of each row, an index of classes; classes.length means none; null without classes
 *     scale             what the values range over (values of "about"); null for classes
 *     values            Float64Array, NaN means none; null for classes
 *   column              the number of the column that colours them; chooseColumn sets it and what it
 *                       has (classes, category, scale, values)
 *   held                Uint8Array of 0 and 1; null if the points are all of one kind
 *   names               array of strings, or null; hasNames tells whether there are some
 *   near                rows of the nearest neighbours in the data, of row i from i·neighbors on, n for
 *                       none; null if there are none
 * Names, near, and category and values of columns but the first, are null until readRest has read them.
 */
async function readData() {
  while (!byId("data-begun")) await new Promise((done) => setTimeout(done, 5));
  const data = JSON.parse(takeTexts("about")[0]);
  for (const [k, view] of data.views.entries()) {
    view.positions = positionsOf(await takeBytes("view-" + k), view, data.n);
  }
  data.held = null;
  if (data.heldOut) {
    const bits = await takeBytes("held-out");
    data.held = new Uint8Array(data.n);
    for (let i = 0; i < data.n; i++) data.held[i] = (bits[i >> 3] >> (i & 7)) & 1;
  }
  for (const column of data.columns) {
    Object.assign(column, { classes: column.classes ?? null, scale: column.values ?? null, category: null, values: null });
  }
  if (data.columns.length) await readColumn(data, 0);
  data.hasNames = data.names;
  data.names = data.near = null;
  chooseColumn(data, 0);
  return data;
}

/** Reads what readData has left. */
async function readRest(data) {
  await wholePage();
  for (let k = 1; k < data.columns.length; k++) await readColumn(data, k);
  if (data.hasNames) data.names = new TextDecoder().decode(await takeBytes("names")).split("\x1e");
  if (data.neighbors) data.near = planesOf(await takeBytes("neighbors"), data.n * data.neighbors);
}

/** Returns the whole numbers of a block with first all lowest bytes, then all next ones. */
function planesOf(bytes, count) {
  const out = new Uint32Array(count);
  for (let k = 0, at = 0; at < bytes.length; k++) for (let i = 0; i < count; i++) out[i] |= bytes[at++] << (8 * k);
  return out;
}

/** Reads the classes or values of a column. */
async function readColumn(data, k) {
  const column = data.columns[k], bytes = await takeBytes("column-" + k);
  if (column.classes) column.category = wholesOf(bytes.buffer, 0, bytes.length / data.n);
  else column.values = valuesOf(bytes, column.scale, data.n);
}

/** Colours the points by a column, or by none if there is no such column. */
function chooseColumn(data, k) {
  const { classes = null, category = null, scale = null, values = null } = data.columns[k] ?? {};
  Object.assign(data, { column: k, classes, category, scale, values });
}
