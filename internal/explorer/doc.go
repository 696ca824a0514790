// Package explorer writes embeddings as one HTML file that shows them in a
// browser: pan and zoom, a slider that morphs between several embeddings of the
// same points, the picture of the point under the pointer, a legend that hides
// classes, search, and a lasso that gives row numbers. The file needs nothing
// else, neither a server nor a network, and its Content-Security-Policy forbids
// whatever it does not hold itself.
//
// # How it is made
//
// The page is page.html with style.css and the scripts that scripts lists, all
// embedded in the program and put in as they are: there is no build step, and
// what the browser runs is what stands in this folder. Data follow as blocks
// of base64 in script elements of a type that no browser runs. Positions are
// float32, 8 bytes per point and embedding, relative to the frame of their
// embedding: whole numbers of 16 bits would be half as long and show their
// grid as soon as somebody zooms in. Names and columns of many points are
// compressed, values exactly as they are (columns.go), and but for the first
// column they stand behind the scripts, which show the points before. Images are atlases of 512 each, of which
// a browser decodes only those that somebody points at: PNG of few grey levels,
// which for MNIST takes half of what all 256 take, or JPEG.
//
// From 50 000 points on, which would cover each other, those in crowded places
// are drawn fainter (crowds.js): as many as lie over each other there are
// together as opaque as the logarithm of their number tells. How many these are
// depends on the zoom, so that points near by are as strong as few are.
//
// The points are drawn by a small renderer for WebGL 2 (render.js) rather than
// by a library. Looked at was regl-scatterplot 1.16.0, the best kept of those
// that draw 70 000 points at once: its transitions between two sets of
// positions run by the clock (transition, transitionDuration,
// transitionEasing), so that no slider can hold or scrub them; it keeps
// positions in float textures (OES_texture_float, EXT_float_blend), which
// phones need not have; and it brings 111 kB and six packages, but neither
// legend, search nor scale bar. Here a morph is two vertex buffers and one
// uniform.
package explorer
