package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"io"
	"math"
	"slices"

	"cne/data"
)

// GIF is the format of an Animation.
const GIF Format = "gif"

// An Animation shows the development of an embedding: a sequence of embeddings of the
// same points, each drawn as a Scatter. The same Animation gives the same bytes.
type Animation struct {
	// Scatter holds what the frames have in common. Embedding is not used. DPI is 120 by
	// default; the picture is then 600 pixels high. Alpha is 1 by default, since mixed
	// colours make large files; for points drawn by density it is a Scatter's default, and
	// the palette includes mixed colours. Points of more than two coordinates are projected
	// to the plane of the first two principal axes of the last frame.
	Scatter Scatter

	// Frames are the embeddings in their order, 1 to 1000.
	Frames []Frame

	// FramesPerSecond is the speed, up to 50; 10 by default. A frame stays for at most 655
	// seconds, the limit of GIF. The last frame stays for at least two seconds before the
	// animation repeats.
	FramesPerSecond float64

	// Follow makes the axes follow the points, smoothed over some frames before and after. An
	// embedding that grows then always fills the picture, and the scale bar shows its size.
	// By default all frames have the same axes.
	Follow bool
}

// A Frame is one picture of an Animation.
type Frame struct {
	Embedding *data.Matrix // all frames have the same numbers of points and coordinates
	Caption   string       // stands after the title
}

const (
	frameDPI     = 120
	maxFrames    = 1000
	maxShown     = 1_000_000_000 // pixels of all frames, each a byte until the file is written
	maxSpeed     = 50            // frames per second: programs show faster ones slowly
	defaultSpeed = 10
	lastFrame    = 2 // seconds
	followFrames = 5 // before and after
)

// Save draws the animation into the file at path. path must end in .gif. It returns the
// errors of Scatter.Save.
func (a *Animation) Save(path string) error { return save(path, a.write) }

// Write draws the animation as a GIF. Errors of w are returned. Other errors wrap
// ErrInput or ErrNotFinite, and nothing is written.
func (a *Animation) Write(w io.Writer) error { return a.write(w, GIF) }

func (a *Animation) write(w io.Writer, format Format) error {
	if format != GIF {
		return fmt.Errorf("%w: got %q, want gif", ErrFormat, string(format))
	}
	scatters, err := a.scatters()
	if err != nil {
		return err
	}
	g := gif.GIF{}
	delay := int(min(math.MaxUint16, max(2, math.Round(100/cmp.Or(a.FramesPerSecond, defaultSpeed)))))
	var colours *quantiser
	var before *image.Paletted
	for i := range scatters {
		l, err := scatters[i].layout()
		if err != nil {
			return err
		}
		dpi := cmp.Or(a.Scatter.DPI, frameDPI)
		if n := l.pixels(dpi) * float64(len(scatters)); n > maxShown {
			return fmt.Errorf("%w: %d frames of %.3g × %.3g inches at %d DPI: got %.3g pixels, want at most %.3g", ErrInput, len(scatters), l.width/72, l.height/72, dpi, n, float64(maxShown))
		}
		c, err := l.draw(dpi)
		if err != nil {
			return err
		}
		if colours == nil {
			if colours, err = newPalette(scatters, l, dpi); err != nil {
				return err
			}
		}
		img := colours.paletted(c.Image())
		g.Image = append(g.Image, changes(before, img))
		g.Delay = append(g.Delay, delay)
		g.Disposal = append(g.Disposal, gif.DisposalNone)
		before = img
	}
	g.Delay[len(g.Delay)-1] = max(delay, 100*lastFrame)
	g.Config = image.Config{ColorModel: colours.palette, Width: before.Rect.Dx(), Height: before.Rect.Dy()}
	return gif.EncodeAll(w, &g)
}

// scatters returns the pictures of the frames.
func (a *Animation) scatters() ([]Scatter, error) {
	if len(a.Frames) == 0 || len(a.Frames) > maxFrames {
		return nil, fmt.Errorf("%w: frames: got %d, want 1 to %d", ErrInput, len(a.Frames), maxFrames)
	}
	if err := checkSizes([]size{{"FramesPerSecond", a.FramesPerSecond, maxSpeed}}); err != nil {
		return nil, err
	}
	list := make([]Scatter, len(a.Frames))
	last := a.Frames[len(a.Frames)-1].Embedding
	for i, f := range a.Frames {
		s := a.Scatter
		s.Embedding = f.Embedding
		if f.Embedding == nil || !s.dense() {
			s.Alpha = cmp.Or(s.Alpha, 1)
		}
		if s.Title != "" && f.Caption != "" {
			s.Title += ", "
		}
		s.Title += f.Caption
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("frame %d (counted from 0): %w", i, err)
		}
		if last != nil && (f.Embedding.N != last.N || f.Embedding.D != last.D) {
			return nil, fmt.Errorf("%w: frame %d (counted from 0): got %d points of %d coordinates, want as many as in the last frame", ErrInput, i, f.Embedding.N, f.Embedding.D)
		}
		list[i] = s
	}
	if err := projectFrames(list); err != nil {
		return nil, err
	}
	own := make([]bounds, len(list))
	for i := range list {
		xy, _, err := list[i].Plane()
		if err != nil {
			return nil, err
		}
		own[i] = list[i].frame(xy)
	}
	axes := together
	if a.Follow {
		axes = smoothly
	}
	for i, b := range axes(own) {
		list[i].bounds = &b
	}
	return list, nil
}

// projectFrames projects embeddings of more than two coordinates to the plane of the
// first two principal axes of the last embedding. The notes then say so.
func projectFrames(frames []Scatter) error {
	last := frames[len(frames)-1].Embedding
	if last.D <= 2 || last.N < 2 {
		return nil
	}
	components, note, err := fitPlane(last)
	if err != nil {
		return err
	}
	for i := range frames {
		flat := data.NewMatrix(last.N, 2)
		for k, v := range onPlane(components, frames[i].Embedding) {
			flat.X[k] = float32(v)
		}
		frames[i].Embedding, frames[i].note = flat, note
	}
	return nil
}

// together returns for each frame the bounds of all.
func together(own []bounds) []bounds {
	all := own[0]
	for _, b := range own {
		all = all.union(b)
	}
	return slices.Repeat([]bounds{all}, len(own))
}

// smoothly returns smoothed bounds for each frame. It first unites the bounds of near
// frames, and then takes the mean of the united bounds of near frames. Each of these
// contains the frame's own bounds, so no more points lie outside.
func smoothly(own []bounds) []bounds {
	near := func(list []bounds, i int) []bounds {
		return list[max(0, i-followFrames):min(len(list), i+followFrames+1)]
	}
	seen := make([]bounds, len(own))
	for i := range own {
		seen[i] = together(near(own, i))[0]
	}
	out := make([]bounds, len(own))
	for i := range out {
		list := near(seen, i)
		share := 1 / float64(len(list))
		for _, b := range list {
			out[i].x0 += share * b.x0
			out[i].x1 += share * b.x1
			out[i].y0 += share * b.y0
			out[i].y1 += share * b.y1
		}
		out[i] = out[i].union(own[i]) // except for rounding, it is within
	}
	return out
}

// A quantiser maps colours to the nearest of a palette.
type quantiser struct {
	palette color.Palette
	known   []uint8 // by 0xRRGGBB; 0 where it was not asked for yet
}

// unchanged is the index of the transparent colour in the palette.
const unchanged = 0

// newQuantiser returns a palette for pictures with these points: a transparent colour,
// greys for letters, and the colours of the points with some steps towards white for
// their rims.
func newQuantiser(layers []layer) *quantiser {
	const greys, most = 8, 120
	q := &quantiser{palette: color.Palette{color.NRGBA{}}, known: make([]uint8, 1<<24)}
	have := map[color.NRGBA]bool{}
	add := func(c color.NRGBA) {
		if !have[c] && len(q.palette) < 256 {
			have[c] = true
			q.palette = append(q.palette, c)
		}
	}
	white := color.NRGBA{0xff, 0xff, 0xff, 0xff}
	add(white)
	for i := range greys {
		add(mix(ink, white, float64(i)/greys))
	}
	var colours []color.NRGBA
	for _, l := range layers {
		colours = append(colours, l.colours...)
		if l.outline > 0 {
			for _, c := range l.colours {
				colours = append(colours, shade(c))
			}
		}
	}
	every := (len(colours) + most - 1) / most
	const steps = 4
	for step := range steps {
		for i := 0; i < len(colours); i += every {
			add(mix(colours[i], white, float64(step)/steps))
		}
	}
	return q
}

// paletted returns an opaque image in the colours of the palette.
func (q *quantiser) paletted(img image.Image) *image.Paletted {
	rgba := opaque(img)
	out := image.NewPaletted(rgba.Rect, q.palette)
	for i := range out.Pix {
		p := rgba.Pix[4*i:][:4:4]
		key := uint32(p[0])<<16 | uint32(p[1])<<8 | uint32(p[2])
		if q.known[key] == 0 {
			q.known[key] = q.nearest(color.NRGBA{p[0], p[1], p[2], 0xff})
		}
		out.Pix[i] = q.known[key]
	}
	return out
}

// opaque returns an opaque image as one whose upper left corner is at 0, 0.
func opaque(img image.Image) *image.RGBA {
	size := image.Rectangle{Max: img.Bounds().Size()}
	rgba := image.NewRGBA(size)
	draw.Draw(rgba, size, img, img.Bounds().Min, draw.Src)
	return rgba
}

// nearest returns the index of the nearest colour, except the transparent one.
func (q *quantiser) nearest(c color.NRGBA) uint8 {
	best, least := 0, math.MaxInt
	for i, p := range q.palette {
		p := p.(color.NRGBA)
		dr, dg, db := int(c.R)-int(p.R), int(c.G)-int(p.G), int(c.B)-int(p.B)
		if d := 3*dr*dr + 4*dg*dg + 2*db*db; i != unchanged && d < least { // weighted by how bright they look
			best, least = i, d
		}
	}
	return uint8(best)
}

// changes returns the part of an image that differs from the previous image, with the
// transparent colour for equal pixels. Most of a frame is legend and background, which
// stay the same. before may be nil.
func changes(before, now *image.Paletted) *image.Paletted {
	if before == nil {
		return now
	}
	part := image.Rectangle{}
	out := image.NewPaletted(now.Rect, now.Palette)
	for y := range now.Rect.Dy() {
		row := y * now.Stride
		for x := range now.Rect.Dx() {
			if now.Pix[row+x] != before.Pix[row+x] {
				out.Pix[row+x] = now.Pix[row+x]
				part = part.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	if part.Empty() {
		part = image.Rect(0, 0, 1, 1) // a frame has at least a pixel
	}
	return out.SubImage(part).(*image.Paletted)
}
