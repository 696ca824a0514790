package plot

import (
	"cmp"
	"image"
	"image/color"
	"io"
	"math"
	"time"
	"unicode/utf8"

	"cne/internal/selection"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"
)

// mostDiscs is the largest number of points that a PDF holds as discs; more are an image.
const mostDiscs = 20_000

func init() { // the same picture is the same bytes
	fpdf.SetDefaultCreationDate(time.Unix(0, 0))
	fpdf.SetDefaultModificationDate(time.Unix(0, 0))
	fpdf.SetDefaultCatalogSort(true)
}

// A pdfCanvas is gonum's canvas, which takes the bytes of text for characters of
// Windows-1252, and fails for fonts that are bold or no plain TrueType, as the system's may
// be. Other characters and fonts are drawn as outlines. It writes an arc as a path of its own
// within another, which PDF does not allow: stray dots are seen.
type pdfCanvas struct{ *vgpdf.Canvas }

// A straightColor is a colour for gonum's canvas, which takes what RGBA returns for a colour
// that its opacity does not darken.
type straightColor color.NRGBA

func (c straightColor) RGBA() (r, g, b, a uint32) {
	return 0x101 * uint32(c.R), 0x101 * uint32(c.G), 0x101 * uint32(c.B), 0x101 * uint32(c.A)
}

func (c pdfCanvas) SetColor(clr color.Color) {
	c.Canvas.SetColor(straightColor(color.NRGBAModel.Convert(cmp.Or[color.Color](clr, color.Black)).(color.NRGBA)))
}

// Fill draws arcs as four curves each.
func (c pdfCanvas) Fill(path vg.Path) {
	var p vg.Path
	for _, s := range path {
		if s.Type != vg.ArcComp {
			p = append(p, s)
			continue
		}
		step := s.Angle / 4
		arm := 4. / 3 * math.Tan(step/4)
		// beside is an end of a curve, or for a side of 1 or −1 the control point after or before it.
		beside := func(i, side float64) vg.Point {
			sin, cos := math.Sincos(s.Start + i*step)
			return s.Pos.Add(vg.Point{X: vg.Length(cos - side*arm*sin), Y: vg.Length(sin + side*arm*cos)}.Scale(s.Radius))
		}
		p.Line(beside(0, 0))
		for i := 0.; i < 4; i++ {
			p.CubeTo(beside(i, 1), beside(i+1, -1), beside(i+1, 0))
		}
	}
	c.Canvas.Fill(p)
}

func (c pdfCanvas) FillString(face font.Face, at vg.Point, text string) {
	coded, rest := make([]byte, 0, len(text)), text
	for i, r := range text {
		b, ok := charmap.Windows1252.EncodeRune(r)
		if rest = text[i:]; !ok || face.Font.Typeface != sans || face.Font.Weight != 0 {
			break
		}
		coded, rest = append(coded, b), ""
	}
	if len(coded) > 0 {
		c.Canvas.FillString(face, at, string(coded))
	}
	if rest == "" {
		return
	}
	at.X += face.Width(text[:len(text)-len(rest)])
	first, size := utf8.DecodeRuneInString(rest)
	c.outline(face, at, first)
	at.X += face.Width(rest[:size])
	c.FillString(face, at, rest[size:])
}

// outline fills the outline of a character, if the font has it.
func (c pdfCanvas) outline(face font.Face, at vg.Point, r rune) {
	var b sfnt.Buffer
	i, err := face.Face.GlyphIndex(&b, r)
	if err != nil {
		return
	}
	units := face.Face.UnitsPerEm()
	segments, err := face.Face.LoadGlyph(&b, i, fixed.I(int(units)), nil)
	if err != nil {
		return
	}
	point := func(p fixed.Point26_6) vg.Point {
		scale := face.Font.Size / vg.Length(units) / 64
		return vg.Point{X: at.X + vg.Length(p.X)*scale, Y: at.Y - vg.Length(p.Y)*scale}
	}
	var p vg.Path
	for _, s := range segments {
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			p.Move(point(s.Args[0]))
		case sfnt.SegmentOpLineTo:
			p.Line(point(s.Args[0]))
		case sfnt.SegmentOpQuadTo:
			p.QuadTo(point(s.Args[0]), point(s.Args[1]))
		case sfnt.SegmentOpCubeTo:
			p.CubeTo(point(s.Args[0]), point(s.Args[1]), point(s.Args[2]))
		}
	}
	c.Fill(p)
}

// writePDF draws the layout with embedded fonts. Points drawn by density, and more than
// mostDiscs, are an image with that many pixels per inch.
func (l *layout) writePDF(w io.Writer, dpi int) error {
	discs, dense := 0, false
	for _, layer := range l.layers {
		discs, dense = discs+len(layer.x), dense || layer.dense
	}
	c := pdfCanvas{vgpdf.New(vg.Length(l.width), vg.Length(l.height))}
	if dense || discs > mostDiscs {
		l.checkPixels(dpi)
		dots := float64(dpi) / 72
		img := image.NewRGBA(image.Rect(0, 0, int(math.Ceil(l.width*dots)), int(math.Ceil(l.height*dots))))
		selection.Fill(img.Pix, 0xff) // readers darken the edges of a transparent image
		l.rasterise(img, dots)
		size := vg.Point{X: vg.Length(img.Rect.Dx()), Y: vg.Length(img.Rect.Dy())}.Scale(vg.Length(1 / dots))
		c.Push()
		c.Translate(vg.Point{Y: size.Y})
		c.Scale(1, -1) // gonum's canvas draws images upside down
		c.DrawImage(vg.Rectangle{Max: size}, img)
		c.Pop()
	} else {
		for _, layer := range l.layers {
			layer.writeDiscs(c)
		}
	}
	l.furnish(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}

// writeDiscs draws each point, and its rim below it.
func (l *layer) writeDiscs(c vg.Canvas) {
	disc := func(i int, r float64) {
		var p vg.Path
		x, y := vg.Length(l.x[i]), vg.Length(l.y[i])
		p.Move(vg.Point{X: x + vg.Length(r), Y: y})
		p.Arc(vg.Point{X: x, Y: y}, vg.Length(r), 0, 2*math.Pi)
		p.Close()
		c.Fill(p)
	}
	for i := range l.x {
		colour := l.colours[l.colour[i]]
		colour.A = uint8(math.Round(255 * l.alpha))
		if l.outline > 0 {
			rim := shade(colour)
			rim.A = colour.A
			c.SetColor(rim)
			disc(i, l.diameter/2)
		}
		c.SetColor(colour)
		disc(i, l.diameter/2-l.outline)
	}
}
