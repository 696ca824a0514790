// Reads what the page holds. "about" is JSON (see the type of that name in
// page.go); larger things are blocks of base64 in elements of their own, which
// are dropped once they have been read.

const byId = (id) => document.getElementById(id);

/** Returns the bytes that base64 text stands for. */
function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** Returns the text of a block and drops the block. */
function takeText(name) {
  const element = byId("data-" + name);
  const text = element.textContent;
  element.remove();
  return text;
}

/** Returns the bytes of a block, alone in their buffer, and drops the block. */
async function takeBytes(name) {
  const text = takeText(name), packed = "deflate:";
  if (!text.startsWith(packed)) return bytesOf(text);
  if (typeof DecompressionStream === "undefined") throw new Error("This browser cannot unpack the data of so many points.");
  const unpacked = new Blob([bytesOf(text.slice(packed.length))]).stream().pipeThrough(new DecompressionStream("deflate"));
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

/** Waits until the browser has read the whole page: what stands behind the scripts is there then. */
async function wholePage() {
  if (document.readyState === "loading") await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
}

/**
 * Returns the data of the page: what "about" says, and
 *   views[k].positions  Float32Array, x and y of row i at 2i and 2i+1, from −1 to 1
 *   columns             all by which points can be coloured, each of
 *     name
 *     classes           null for values
 *     category          of each row, an index of classes; classes.length means none; null without classes
 *     scale             what the values range over (values of "about"); null for classes
 *     values            Float64Array, NaN means none; null for classes
 *   column              the number of the column by which they are coloured; it and what it has
 *                       (classes, category, scale, values) is set by chooseColumn
 *   held                Uint8Array of 0 and 1; null if the points are all of one kind
 *   names               array of strings, or null; hasNames tells whether there are some
 * Names, and category and values of columns but the first, are null until readRest has read them.
 */
async function readData() {
  const data = JSON.parse(takeText("about"));
  for (const [k, view] of data.views.entries()) {
    view.positions = new Float32Array((await takeBytes("view-" + k)).buffer);
  }
  data.held = null;
  if (data.heldOut) {
    const bits = await takeBytes("held-out");
    data.held = Uint8Array.from({ length: data.n }, (_, i) => (bits[i >> 3] >> (i & 7)) & 1);
  }
  for (const column of data.columns) {
    Object.assign(column, { classes: column.classes ?? null, scale: column.values ?? null, category: null, values: null });
  }
  if (data.columns.length) await readColumn(data, 0);
  data.hasNames = data.names;
  data.names = null;
  chooseColumn(data, 0);
  return data;
}

/** Reads what readData has left. */
async function readRest(data) {
  await wholePage();
  for (let k = 1; k < data.columns.length; k++) await readColumn(data, k);
  if (data.hasNames) data.names = new TextDecoder().decode(await takeBytes("names")).split("\n");
}

/** Reads the classes or values of a column. */
async function readColumn(data, k) {
  const column = data.columns[k], bytes = await takeBytes("column-" + k);
  if (column.classes) column.category = wholesOf(bytes.buffer, 0, bytes.length / data.n);
  else column.values = valuesOf(bytes, column.scale, data.n);
}

/** Has the points be those of a column, or of none if there is no such. */
function chooseColumn(data, k) {
  const { classes = null, category = null, scale = null, values = null } = data.columns[k] ?? {};
  Object.assign(data, { column: k, classes, category, scale, values });
}
