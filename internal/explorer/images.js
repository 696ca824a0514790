// The pictures of points. They lie in atlases, one below the other; an atlas is
// decoded when one of its pictures is asked for, and the last few are kept.

const keptAtlases = 12;

class Pictures {
  /** about is aboutImages of images.go. */
  constructor(about) {
    this.about = about;
    this.atlases = new Map(); // from a number to the promise of an ImageBitmap, the one used last at the end
  }

  _atlas(k) {
    const atlas = this.atlases.get(k) || this._decode(k);
    this.atlases.delete(k);
    this.atlases.set(k, atlas);
    if (this.atlases.size > keptAtlases) {
      const [oldest, bitmap] = this.atlases.entries().next().value;
      this.atlases.delete(oldest);
      bitmap.then((b) => b.close(), () => {});
    }
    return atlas;
  }

  async _decode(k) {
    await wholePage();
    return createImageBitmap(new Blob([bytesOf(takeTexts("atlas-" + k, true))], { type: this.about.type }));
  }

  /** Draws the picture of a row into a canvas that then has its size. */
  async draw(canvas, row) {
    const { perAtlas, width, height, tileHeight } = this.about;
    canvas.dataset.row = row;
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const context = canvas.getContext("2d");
    // Decoding takes a while; until then nothing is better than the picture of another row.
    context.clearRect(0, 0, width, height);
    const atlas = await this._atlas(Math.floor(row / perAtlas));
    if (canvas.dataset.row !== String(row)) return; // another was asked for meanwhile
    context.drawImage(atlas, 0, (row % perAtlas) * tileHeight, width, height, 0, 0, width, height);
  }
}
