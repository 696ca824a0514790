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
const takeBytes = (name) => bytesOf(takeText(name));

/**
 * Returns the data of the page: what "about" says, and
 *   views[k].positions  Float32Array, x and y of row i at 2i and 2i+1, from −1 to 1
 *   scale               what the values range over, or null (values of "about")
 *   category            of each row, an index of classes; classes.length means none; null without classes
 *   values              Float64Array, NaN means none; null without values
 *   held                Uint8Array of 0 and 1; null if the points are all of one kind
 *   names               array of strings, or null
 */
function readData() {
  const about = JSON.parse(takeText("about"));
  const data = { ...about, classes: about.classes ?? null, scale: about.values ?? null };
  data.views.forEach((view, k) => {
    view.positions = new Float32Array(takeBytes("view-" + k).buffer);
  });
  data.category = null;
  if (data.classes) {
    const bytes = takeBytes("classes");
    const width = bytes.length / data.n;
    data.category = width === 1 ? bytes : width === 2 ? new Uint16Array(bytes.buffer) : new Uint32Array(bytes.buffer);
  }
  data.values = data.scale ? new Float64Array(takeBytes("values").buffer) : null;
  data.held = null;
  if (about.heldOut) {
    const bits = takeBytes("held-out");
    data.held = Uint8Array.from({ length: data.n }, (_, i) => (bits[i >> 3] >> (i & 7)) & 1);
  }
  data.names = about.names ? JSON.parse(takeText("names")) : null;
  return data;
}
