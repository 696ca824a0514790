// Package explorer writes embeddings as one HTML file that shows them in a browser. The
// page has pan and zoom, and a slider that morphs between several embeddings of the same
// points. It shows the picture of the point under the pointer, its neighbours in the
// data, and names on the map. It has a legend that hides classes and values, search, and
// a lasso, and exports the view as a picture or a link. The file needs nothing else,
// neither a server nor a network, and its Content-Security-Policy forbids all other
// resources.
//
// # How it is made
//
// The page is page.html with style.css and the scripts that scripts lists, all embedded
// in the program without a build step. Data follow as blocks of base64 in script elements
// of a type that no browser runs. Positions are relative to the frame that 99 % of the
// points fill (plot.FrameOf). A coordinate is a whole number of 24 bits on a grid over
// all points: 6 bytes per point and embedding, 8 in base64. A step is 1.2e-7 of half the
// frame, like a step of float32 near 1; with 16 bits the grid would be visible when
// zoomed in. Where outliers make the grid coarse, coordinates are float32. Neither is
// compressed. Only the highest bytes could be, and this would save 2 % and take longer to
// read. Names and columns of many points are compressed, values exactly as they are
// (columns.go). All columns except the first come after the scripts, so the scripts show
// the points before the columns are read. Images are in atlases of 512 each, and a
// browser decodes only the atlases that it needs. Atlases are JPEG, or PNG with few grey
// levels; for MNIST this takes half as much as all 256 levels.
//
// From 50 000 points on, points in crowded places are drawn fainter (density.js): the
// joint opacity of overlapping points grows with the logarithm of their number. Their
// number depends on the zoom, so zooming in shows full colours. From 200 000 points
// on, a moving picture shows as many of them as the browser draws in time, and all of them
// at rest (pace.js).
//
// The points are drawn by a small renderer for WebGL 2 (render.js) rather than by a
// library. An alternative is regl-scatterplot 1.16.0, the best maintained library that
// draws 70 000 points at once. Its transitions between two sets of positions run by the
// clock (transition, transitionDuration, transitionEasing), so no slider can hold or
// scrub them. It keeps positions in float textures (OES_texture_float, EXT_float_blend),
// and phones may lack these. It adds 111 kB and six packages, but has no legend, search
// or scale bar. Here a morph is two vertex buffers and one uniform.
package explorer

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"cne/data"
	"cne/data/images"
	"cne/data/neighbors"
	"cne/internal/kind"
	"cne/internal/plot"
	"cne/internal/selection"
)

// Errors about a Page are of the same kinds as those about pictures: ErrInput for no views, or
// fields that do not fit each other, and ErrNotFinite for a coordinate that is NaN or infinite,
// or a value that is infinite.
var ErrInput, ErrNotFinite = plot.ErrInput, plot.ErrNotFinite

// A Page shows one or several embeddings of the same points. All fields but
// Views may be left at their zero values. The same Page gives the same bytes.
type Page struct {
	// Title is the heading; "Embedding" by default.
	Title string

	// Views are the embeddings, at least one, all of the same number n of points in the same
	// order. If there are several, a slider morphs between neighbours in this order. With
	// Rows above 1 they are a grid, row by row, and a second slider changes the row.
	Views []View
	Rows  int

	// Slider names the quantity that differs between the views, such as "s" or "epoch". It
	// is unused for a single view.
	Slider string

	// The points have the same colours as in plot.Scatter. The scale of Values starts linear.
	// If the middle 90 % of the values would have less than a tenth of it, it starts
	// logarithmic. (Above 100 000 rows it looks at evenly spaced rows.)
	plot.Colouring

	// Columns are further data about the rows. The page starts with Classes or Values, if
	// any, under the name "label". It can instead colour the points by each of these
	// columns.
	Columns []Column

	// Names[i], if Names is not nil, is shown for row i by hovering and searching, next
	// to its class and number. It may have several lines.
	Names []string

	// Neighbors, if not nil, are the nearest neighbours in the data of each row, nearest
	// first; after the last of a row, Index is -1. Dist2 is unused. The page has the first
	// NeighborsShown of them.
	Neighbors *neighbors.Neighbors

	// AutoLabels labels the regions of each view by the words that distinguish the Names
	// of their points. It needs Names.
	AutoLabels bool

	// HeldOut[i] reports that row i was held out of training, as in plot.Scatter.
	HeldOut []bool

	// Images, if not nil, has the picture of each row. The more there are, the smaller they
	// are embedded: see the package's documentation.
	Images *images.Set
}

// A Column has data to colour points by.
type Column struct {
	Name string
	plot.Colouring
}

// A View is one embedding of the points of a Page.
type View struct {
	// Name distinguishes it from the others, such as "s = 0.5".
	Name string
	// Embedding is n×d. If d is not 2, it is drawn as by plot.Scatter.
	Embedding *data.Matrix
	// Facts are shown with the view.
	Facts []Fact
}

// A Fact is a figure about an embedding, such as its kNN recall. The page explains the
// name by Meaning, if not empty; facts of the same name share the first one's Meaning.
type Fact struct{ Name, Value, Meaning string }

// Write writes the page as HTML in UTF-8. Errors of w are returned. Other errors wrap
// ErrInput or ErrNotFinite, and nothing is written.
func (p *Page) Write(w io.Writer) (err error) {
	defer kind.Catch(&err)
	return page.Execute(w, p.content())
}

//go:embed page.html style.css *.js
var files embed.FS

// scripts are the scripts of the page, in this order: one program in one scope.
var scripts = []string{
	"data.js", "density.js", "render.js", "pace.js", "camera.js", "positions.js", "images.js", "names.js", "panels.js", "search.js",
	"select.js", "pointers.js", "outside.js", "points.js", "export.js", "link.js", "values.js", "help.js", "main.js",
}

var page = template.Must(template.ParseFS(files, "page.html"))

// content is the template's data.
type content struct {
	Title  string
	Policy string
	Style  string
	Script string
	About  string  // JSON
	Blocks []block // data too large for the template

	Later []block // needed only after the start: pictures, names, further columns
}

// A block is a piece of data, in a script element that is not run.
type block struct {
	id      string
	before  string // the base64
	content []byte
}

// bytesPerPart makes a text of 65 536 characters. Chromium takes several times as long to read
// longer ones.
const bytesPerPart = 48 << 10

// Parts yields the elements of the block, each an ID (the block's, then with .1, .2 and
// so on) and base64, the first after b.before.
func (b block) Parts() iter.Seq2[string, string] {
	return func(yield func(id, text string) bool) {
		id, before, part := b.id, b.before, 0
		for at := 0; at == 0 || at < len(b.content); at += bytesPerPart {
			text := before + base64.StdEncoding.EncodeToString(b.content[at:min(len(b.content), at+bytesPerPart)])
			if !yield(id, text) {
				return
			}
			part++
			id, before = b.id+"."+strconv.Itoa(part), ""
		}
	}
}

// about describes the blocks to the scripts. Its fields are described where data.js reads
// them.
type about struct {
	Title   string        `json:"title"`
	Slider  string        `json:"slider"`
	Rows    int           `json:"rows"`
	N       int           `json:"n"`
	Views   []aboutView   `json:"views"`
	Single  ink           `json:"single"`
	None    ink           `json:"none"`
	NoLabel string        `json:"noLabel"`
	Columns []aboutColumn `json:"columns"`
	Names   bool          `json:"names"`
	HeldOut bool          `json:"heldOut"`
	Dense   bool          `json:"dense"` // so many points that they cover each other
	Images  *aboutImages  `json:"images,omitempty"`

	Neighbors int               `json:"neighbors"`          // of each point
	Meanings  map[string]string `json:"meanings,omitempty"` // of facts, by their names
}

// An ink is a colour on a light ground and on a dark one, as #rrggbb.
type ink [2]string

type aboutView struct {
	Name   string      `json:"name"`
	Note   string      `json:"note,omitempty"`
	Facts  [][2]string `json:"facts"`
	Centre [2]float64  `json:"centre"` // of the frame, in units of the embedding
	Half   [2]float64  `json:"half"`   // the frame's half width and height in them
	Unit   float64     `json:"unit"`   // length of a position of 1 in them
	Low    [2]float64  `json:"low"`    // lower left position of the box around all points
	High   [2]float64  `json:"high"`   // upper right one

	Labels []aboutLabel `json:"labels,omitempty"`
}

// An aboutColumn has classes or values; the block of column k is column-k.
type aboutColumn struct {
	Name    string       `json:"name"`
	Classes []aboutClass `json:"classes,omitempty"`
	Values  *aboutValues `json:"values,omitempty"`
}

type aboutClass struct {
	Number int32  `json:"number"`
	Name   string `json:"name"`
	Ink    ink    `json:"ink"`
}

type aboutValues struct {
	valueCoding
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Dates bool    `json:"dates"`
	Inks  []ink   `json:"inks"` // at equal steps from Low to High
	Ticks []tick  `json:"ticks"`
}

type tick struct {
	Value float64 `json:"value"`
	Text  string  `json:"text"`
}

func inkOf(c color.NRGBA) ink {
	d := plot.OnDark(c)
	return ink{fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B), fmt.Sprintf("#%02x%02x%02x", d.R, d.G, d.B)}
}

// content makes everything that the page holds. It fails as kind.Need does.
func (p *Page) content() *content {
	places := p.check()
	title := cmp.Or(plot.Printable(p.Title), "Embedding")
	a := about{
		Title: title, Slider: plot.Printable(p.Slider), Rows: max(1, p.Rows), N: p.Views[0].Embedding.N, Dense: p.Views[0].Embedding.N >= plot.DenseFrom,
		Single: inkOf(plot.ClassColour(0)),
		// Grey on a dark ground must be as inconspicuous as on a light one.
		None: ink{inkOf(plot.UnlabeledColour())[0], "#454a52"}, NoLabel: plot.NoLabel,
		Meanings: map[string]string{},
	}
	c := &content{Title: title}
	var words *texts
	if p.AutoLabels {
		words = newTexts(p.Names)
	}
	for k, v := range p.Views {
		about, positions := normalized(places[k].xy)
		if words != nil {
			about.Labels = words.labels(about, places[k].xy)
		}
		about.Name, about.Note, about.Facts = plot.Printable(v.Name), places[k].note, [][2]string{}
		for _, f := range v.Facts {
			name := plot.Printable(f.Name)
			about.Facts = append(about.Facts, [2]string{name, plot.Printable(f.Value)})
			if a.Meanings[name] == "" && f.Meaning != "" {
				a.Meanings[name] = plot.Printable(f.Meaning)
			}
		}
		a.Views = append(a.Views, about)
		c.add("view-"+strconv.Itoa(k), positions)
	}
	a.Columns = c.addColumns(p.columns())
	if slices.Contains(p.HeldOut, true) && slices.Contains(p.HeldOut, false) {
		a.HeldOut = true
		c.add("held-out", bits(p.HeldOut))
	}
	if p.Names != nil {
		a.Names = true
		c.Later = append(c.Later, packedBlock("names", []byte(strings.Join(selection.Map(p.Names, printableLines), nameSeparator))))
	}
	if p.Neighbors != nil {
		a.Neighbors = c.addNeighbors(p.Neighbors)
	}
	if p.Images != nil {
		atlases, about := encodeImages(p.Images)
		a.Images = about
		for k, atlas := range atlases {
			c.Later = append(c.Later, block{id: "atlas-" + strconv.Itoa(k), content: atlas})
		}
	}
	c.About = string(kind.Got(json.Marshal(a)))
	c.inline()
	return c
}

// inline puts style and scripts in, and lets the browser run nothing else.
func (c *content) inline() {
	read := func(name string) string {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the program was built without it
		}
		return string(text)
	}
	var script strings.Builder
	script.WriteString("\n\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		script.WriteString(read(name))
	}
	script.WriteString("})();\n")
	c.Style, c.Script = "\n"+read("style.css"), script.String()
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	c.Policy = "default-src 'none'; script-src " + hash(c.Script) + "; style-src " + hash(c.Style) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
}

func (c *content) add(id string, content []byte) {
	c.Blocks = append(c.Blocks, block{id: id, content: content})
}

// places are where the points of a view are drawn.
type places struct {
	xy   []float64
	note string
}

// need fails, as kind.Need does, with an error that wraps ErrInput, unless ok.
func need(ok bool, format string, args ...any) {
	if !ok {
		kind.Check(fmt.Errorf("%w: %s", ErrInput, fmt.Sprintf(format, args...)))
	}
}

// check returns the places of the points. It fails if the page cannot be shown.
func (p *Page) check() (out []places) {
	need(len(p.Views) > 0, "views: got none")
	need(p.Rows >= 0 && len(p.Views)%max(1, p.Rows) == 0, "views: got %d, want as many in each of %d rows", len(p.Views), p.Rows)
	for k, v := range p.Views {
		name := fmt.Sprintf("view %d (counted from 0)", k)
		if v.Name != "" {
			name = fmt.Sprintf("view %q", v.Name)
		}
		s := plot.Scatter{Embedding: v.Embedding, Colouring: p.Colouring, HeldOut: p.HeldOut}
		xy, note, err := s.Plane()
		kind.Checkf(err, "%s: %w", name, err)
		n := p.Views[0].Embedding.N
		need(v.Embedding.N == n, "%s: got %d points, want %d as in the first view", name, v.Embedding.N, n)
		out = append(out, places{xy, note})
	}
	n := p.Views[0].Embedding.N
	for _, c := range p.Columns {
		need(c.Classes != nil || c.Values != nil, "column %q: got neither classes nor values", c.Name)
		err := c.Check(n)
		kind.Checkf(err, "column %q: %w", c.Name, err)
	}
	need(p.Names == nil || len(p.Names) == n, "names: got %d, want %d, one for each point", len(p.Names), n)
	if p.Neighbors != nil {
		checkNeighbors(p.Neighbors, n)
	}
	need(!p.AutoLabels || p.Names != nil, "automatic labels: got no names of the points to make them of")
	if im := p.Images; im != nil {
		need(im.N == n, "images: got %d, want %d, one for each point in order", im.N, n)
		need(im.H > 0 && im.W > 0 && (im.C == 1 || im.C == 3) && len(im.Pixels)%n == 0 && len(im.Pixels)/n == im.H*im.W*im.C,
			"images: got %d bytes, want %d images of %d×%d pixels with %d values each", len(im.Pixels), n, im.W, im.H, im.C)
	}
	return out
}

// coarsest bounds the extent of an axis of the grid of positions, in halves of the frame.
const coarsest = 16

// normalized returns the frame of the points and their positions in it. Positions are from −1
// to 1 along its longer side, and beyond for points outside. Points that coincide are in
// the middle of a frame one unit wide. Each position is a number of 24 bits on a grid
// from Low to High: first the lowest byte of the x of all points, then the next of all,
// then y. If the grid were too coarse, positions are float32, x and y alternating, the
// lowest byte first.
func normalized(xy []float64) (aboutView, []byte) {
	low, high := plot.FrameOf(xy)
	var v aboutView
	for k := range 2 {
		v.Centre[k], v.Half[k] = low[k]/2+high[k]/2, high[k]/2-low[k]/2
	}
	v.Unit = cmp.Or(max(v.Half[0], v.Half[1]), 0.5)
	const farthest = 1e18 // what float32 can be multiplied by
	position := func(i int) float64 { return max(-farthest, min((xy[i]-v.Centre[i%2])/v.Unit, farthest)) }
	v.Low = [2]float64{position(0), position(1)}
	v.High = v.Low
	for i := range xy {
		v.Low[i%2], v.High[i%2] = min(v.Low[i%2], position(i)), max(v.High[i%2], position(i))
	}
	n := len(xy) / 2
	if max(v.High[0]-v.Low[0], v.High[1]-v.Low[1]) > coarsest {
		out := make([]byte, 0, 8*n)
		for i := range xy {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(position(i))))
		}
		return v, out
	}
	out := make([]byte, 0, 6*n)
	for k := range 2 {
		steps := (1<<24 - 1) / max(v.High[k]-v.Low[k], math.SmallestNonzeroFloat32)
		out = appendPlanes(out, n, 3, func(i int) uint64 { return uint64(math.Round((position(2*i+k) - v.Low[k]) * steps)) })
	}
	return v, out
}

// bits packs booleans, the first in the lowest bit.
func bits(of []bool) []byte {
	out := make([]byte, (len(of)+7)/8)
	for i, b := range of {
		if b {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

// nameSeparator stands between the names in their block. Printable removes it from names.
const nameSeparator = "\x1e"

var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// printableLines is plot.Printable for each line of a text.
func printableLines(text string) string {
	lines := selection.Map(strings.Split(lineBreaks.Replace(text), "\n"), plot.Printable)
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// Bounds of the neighbours of a page. A million take about 3 MB.
const (
	mostNeighbors   = 10 // of a point
	fewestNeighbors = 3
	allNeighbors    = 1_000_000
)

// NeighborsShown returns how many neighbours a page of n points can have for each point: 10
// up to 100 000 points, fewer up to 333 333, and 0 above.
func NeighborsShown(n int) int {
	if k := min(mostNeighbors, allNeighbors/max(1, n)); k >= fewestNeighbors {
		return k
	}
	return 0
}

// checkNeighbors fails for neighbours that do not fit n points.
func checkNeighbors(nb *neighbors.Neighbors, n int) {
	need(nb.N == n && nb.K > 0 && len(nb.Index) == n*nb.K,
		"neighbours: got %d rows for %d points with %d neighbours each, want %d points with at least 1", len(nb.Index), nb.N, nb.K, n)
	for e, j := range nb.Index {
		if i := e / nb.K; j < -1 || int(j) >= n || int(j) == i {
			need(false, "neighbours: row %d, neighbour %d (both counted from 0): got %d, want another row from 0 to %d, or -1 for none", i, e%nb.K, j, n-1)
		}
	}
}

// addNeighbors adds the block of the neighbours, and returns how many a point has. The block
// has their rows, or the number of points for none, as appendPlanes writes them.
func (c *content) addNeighbors(nb *neighbors.Neighbors) int {
	k, width := min(nb.K, NeighborsShown(nb.N)), widthFor(nb.N)
	if k == 0 {
		return 0
	}
	out := appendPlanes(nil, nb.N*k, width, func(e int) uint64 {
		if j := nb.Of(e / k)[e%k]; j >= 0 {
			return uint64(j)
		}
		return uint64(nb.N)
	})
	c.Later = append(c.Later, packedBlock("neighbors", out))
	return k
}
