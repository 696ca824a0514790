// Draws points with WebGL 2. There is a vertex buffer of positions for each
// view; a morph between two of them binds both and mixes them by a uniform, so
// it costs what standing still costs. Lists of rows say what is drawn, and in
// which order: each drawing takes one of these index buffers.

const vertexShader = `#version 300 es
  in vec2 from;        // positions in the view to the left and to the right
  in vec2 to;
  in vec3 colour;
  in float crowdFrom;  // levels of density.js in the two views
  in float crowdTo;
  uniform float mixing;    // where between the two, from 0 to 1
  uniform vec2 centre;     // what is in the middle of the canvas
  uniform vec2 zoom;       // from there to clip coordinates
  uniform float diameter;  // in pixels
  uniform float opacity;   // of a point by itself
  uniform float crowd;     // from the logarithm of points per unit to that of points per disc
  uniform float busiest;   // the latter in the busiest places; 0: crowds make no difference
  uniform float contrast;  // the exponent of what comes out
  out vec3 fill;
  out float strength;

  // So many points over each other are together as opaque as their logarithm tells
  // on a scale up to the busiest places, but no more than if each were drawn as if
  // it were by itself; this gives what one of them contributes.
  float inCrowd() {
    const float steps = ${crowdSteps.toFixed(1)};
    float discs = crowd + mix(crowdFrom, crowdTo, mixing) / steps;
    if (busiest <= 0.0 || discs <= 0.0) return opacity;
    float n = exp2(discs);
    float together = min(1.0 - pow(1.0 - opacity, n), mix(opacity, 0.97, min(1.0, discs / busiest)));
    // Fainter ones would be lost in the 8 bits of a pixel.
    return max(1.0 - pow(1.0 - together, 1.0 / n), 0.04);
  }

  void main() {
    gl_Position = vec4((mix(from, to, mixing) - centre) * zoom, 0.0, 1.0);
    gl_PointSize = diameter + 1.0; // half a pixel around, for a soft edge
    fill = colour;
    strength = pow(inCrowd(), contrast);
  }`;

const fragmentShader = `#version 300 es
  precision highp float;
  in vec3 fill;
  in float strength;
  uniform float diameter;
  uniform float fade;    // how far the colour goes towards the ground
  uniform float rim;     // width of the rim, 0 for none
  uniform vec3 ground;
  out vec4 pixel;
  void main() {
    float r = length(gl_PointCoord - 0.5) * (diameter + 1.0);
    float cover = clamp(diameter * 0.5 + 0.5 - r, 0.0, 1.0) * strength;
    if (cover <= 0.0) discard;
    vec3 c = mix(fill, ground, fade);
    if (rim > 0.0) {
      // The rim is dark on a light ground, and light on a dark one.
      vec3 edge = ground.r > 0.5 ? c * 0.35 : mix(c, vec3(1.0), 0.75);
      c = mix(c, edge, clamp(r - (diameter * 0.5 - rim) + 0.5, 0.0, 1.0));
    }
    pixel = vec4(c * cover, cover);
  }`;

class Renderer {
  /** Throws if the browser has no WebGL 2. */
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: false });
    if (!gl) throw new Error("This browser offers no WebGL 2.");
    this.gl = gl;
    this.lists = new Map(); // from a list of rows to its buffer
    this.begin();
  }

  /** Makes what a lost context has taken. */
  begin() {
    const gl = this.gl;
    const shader = (type, source) => {
      const s = gl.createShader(type);
      gl.shaderSource(s, source);
      gl.compileShader(s);
      return s;
    };
    const program = gl.createProgram();
    gl.attachShader(program, shader(gl.VERTEX_SHADER, vertexShader));
    gl.attachShader(program, shader(gl.FRAGMENT_SHADER, fragmentShader));
    ["from", "to", "colour", "crowdFrom", "crowdTo"].forEach((name, k) => gl.bindAttribLocation(program, k, name));
    gl.linkProgram(program);
    // Lost again already: there will be another beginning.
    if (gl.isContextLost()) return;
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
      throw new Error("WebGL 2 does not work here: " + gl.getProgramInfoLog(program));
    }
    gl.useProgram(program);
    this.at = {};
    for (const name of ["mixing", "centre", "zoom", "diameter", "opacity", "crowd", "busiest", "contrast", "fade", "rim", "ground"]) {
      this.at[name] = gl.getUniformLocation(program, name);
    }
    for (let k = 0; k < 3; k++) gl.enableVertexAttribArray(k);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.largest = gl.getParameter(gl.ALIASED_POINT_SIZE_RANGE)[1] - 1;
    this.lists.clear();
    this.crowds = new Map(); // from levels of a view to their buffer
    this.positions = null;
    this.colours = null;
    this.hidden = null; // a framebuffer
  }

  /** Draws a point out of sight: the first one takes long, and the browser does not wait for it. */
  warmUp() {
    const levels = new Uint8Array(4);
    this.setPositions([new Float32Array(2)]);
    this.setColours(new Uint8Array(4));
    this.place({ from: 0, to: 0, mixing: 0, x: 9, y: 9, scale: 1, width: 1, height: 1 });
    this.setCrowds({ levels }, { levels });
    this.draw(new Uint32Array(1), { diameter: 1, opacity: 1 });
    for (const k of [3, 4]) this.gl.disableVertexAttribArray(k); // until setCrowds, if at all
    this.gl.flush();
  }

  /** Gives the positions of each view. */
  setPositions(views) {
    this.positions = views.map((xy) => this._buffer(this.gl.ARRAY_BUFFER, xy));
  }

  /** Gives the colours: red, green, blue and an unused byte of each row. */
  setColours(rgbx) {
    if (this.colours) this.gl.deleteBuffer(this.colours);
    this.colours = this._buffer(this.gl.ARRAY_BUFFER, rgbx);
  }

  _buffer(target, content) {
    const gl = this.gl;
    const buffer = gl.createBuffer();
    gl.bindBuffer(target, buffer);
    gl.bufferData(target, content, gl.STATIC_DRAW);
    return buffer;
  }

  /** Sets size in device pixels, and clears to the ground, [r, g, b] from 0 to 1. */
  clear(width, height, ground) {
    const { gl, canvas } = this;
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    gl.viewport(0, 0, width, height);
    gl.clearColor(...ground, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform3f(this.at.ground, ...ground);
  }

  /** Says where things are for what is drawn next: see frame in camera.js. */
  place(frame) {
    const { gl, at } = this;
    const attribute = (k, buffer, width, type, normalised) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.vertexAttribPointer(k, width, type, normalised, 0, 0);
    };
    attribute(0, this.positions[frame.from], 2, gl.FLOAT, false);
    attribute(1, this.positions[frame.to], 2, gl.FLOAT, false);
    attribute(2, this.colours, 4, gl.UNSIGNED_BYTE, true);
    gl.uniform1f(at.mixing, frame.mixing);
    gl.uniform2f(at.centre, frame.x, frame.y);
    gl.uniform2f(at.zoom, (2 * frame.scale) / frame.width, (2 * frame.scale) / frame.height);
  }

  /** Gives what density.js says of the two views, for what is drawn next. */
  setCrowds(from, to) {
    const { gl } = this;
    [from.levels, to.levels].forEach((levels, k) => {
      if (!this.crowds.has(levels)) this.crowds.set(levels, this._buffer(gl.ARRAY_BUFFER, levels));
      gl.bindBuffer(gl.ARRAY_BUFFER, this.crowds.get(levels));
      gl.enableVertexAttribArray(3 + k);
      gl.vertexAttribPointer(3 + k, 1, gl.UNSIGNED_BYTE, false, 0, 0);
    });
    for (const [levels, buffer] of this.crowds) {
      if (levels === from.levels || levels === to.levels) continue;
      gl.deleteBuffer(buffer);
      this.crowds.delete(levels);
    }
  }

  /** Draws points of a list of rows (Uint32Array), which must not change later: count from the first on. */
  draw(rows, { diameter, opacity, contrast = 1, crowd = 0, busiest = 0, fade = 0, rim = 0 }, first = 0, count = rows.length) {
    if (!count) return;
    const { gl, at } = this;
    let buffer = this.lists.get(rows);
    if (buffer) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffer);
    } else {
      buffer = this._buffer(gl.ELEMENT_ARRAY_BUFFER, rows);
      this.lists.set(rows, buffer);
    }
    gl.uniform1f(at.diameter, Math.min(diameter, this.largest));
    gl.uniform1f(at.opacity, opacity);
    gl.uniform1f(at.contrast, contrast);
    gl.uniform1f(at.crowd, crowd);
    gl.uniform1f(at.busiest, busiest);
    gl.uniform1f(at.fade, fade);
    gl.uniform1f(at.rim, rim);
    gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 4 * first);
  }

  /** Has what is drawn next not be seen until show. */
  aside(width, height) {
    const { gl } = this;
    if (!this.hidden) this.hidden = Object.assign(gl.createFramebuffer(), { colours: gl.createRenderbuffer() });
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.hidden);
    if (this.hidden.width === width && this.hidden.height === height) return;
    Object.assign(this.hidden, { width, height });
    gl.bindRenderbuffer(gl.RENDERBUFFER, this.hidden.colours);
    gl.renderbufferStorage(gl.RENDERBUFFER, gl.RGBA8, width, height);
    gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, this.hidden.colours);
  }

  /** Has what is drawn next be seen, and, if it is complete, what was not. */
  show(complete) {
    const { gl, hidden: { width, height } } = this;
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
    if (complete) gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  /** Waits until all is drawn. */
  finish() {
    const { gl } = this;
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  }

  /** Frees the buffers of lists that are not among those in use. */
  keep(used) {
    for (const [rows, buffer] of this.lists) {
      if (used.includes(rows)) continue;
      this.gl.deleteBuffer(buffer);
      this.lists.delete(rows);
    }
  }
}
