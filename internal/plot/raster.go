package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"cne/internal/kind"
	"cne/internal/selection"
)

// maxPixels bounds the memory for an image, at 8 bytes each.
const maxPixels = 200_000_000

// checkPixels fails if the layout has more pixels than maxPixels.
func (l *layout) checkPixels(dpi int) {
	n := l.width / 72 * l.height / 72 * float64(dpi) * float64(dpi)
	need(n <= maxPixels, "%.3g × %.3g inches at %d DPI: got %.3g pixels, want at most %.3g", l.width/72, l.height/72, dpi, n, float64(maxPixels))
}

// writePNG draws the layout at that many pixels per inch.
func (l *layout) writePNG(w io.Writer, dpi int) error {
	l.checkPixels(dpi)
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(l.width), vg.Length(l.height)), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(color.White))
	img := c.Image()
	if len(l.layers) > 0 { // charts have none
		points := image.NewRGBA(img.Bounds())
		l.rasterise(points, float64(dpi)/72)
		draw.Draw(img, img.Bounds(), points, image.Point{}, draw.Over)
	}
	l.furnish(vgdraw.New(c))
	encoder := png.Encoder{CompressionLevel: png.BestSpeed} // half the time, and some 5 % more bytes
	return encoder.Encode(w, img)
}

// rasterise sets the points as anti-aliased discs, or draws them by density; dots
// is the number of pixels per printer's point.
func (l *layout) rasterise(img *image.RGBA, dots float64) {
	bottom := float64(img.Rect.Dy())
	for _, layer := range l.layers {
		if layer.dense {
			for _, above := range layer.densities(dots, img.Rect.Dy()) {
				draw.Draw(img, above.Rect, above, above.Rect.Min, draw.Over)
			}
			continue
		}
		r := max(0.5, layer.diameter/2*dots) // a smaller disc would vanish between pixels
		rim := layer.outline * dots
		for i := range layer.x {
			x, y := layer.x[i]*dots, bottom-layer.y[i]*dots
			c := layer.colours[layer.colour[i]]
			if rim > 0 {
				disc(img, x, y, r, shade(c), layer.alpha)
			}
			disc(img, x, y, r-rim, c, layer.alpha)
		}
	}
}

// disc lays a disc of radius r, in pixels, over the image; pixel (i, j) is the
// square from (i, j) to (i+1, j+1). A pixel on the rim is covered in proportion
// to the distance of its centre from the rim.
func disc(img *image.RGBA, x, y, r float64, c color.NRGBA, alpha float64) {
	b := img.Rect
	x0, x1 := max(b.Min.X, int(math.Floor(x-r-0.5))), min(b.Max.X, int(math.Ceil(x+r+0.5)))
	y0, y1 := max(b.Min.Y, int(math.Floor(y-r-0.5))), min(b.Max.Y, int(math.Ceil(y+r+0.5)))
	for j := y0; j < y1; j++ {
		dy := float64(j) + 0.5 - y
		for i := x0; i < x1; i++ {
			dx := float64(i) + 0.5 - x
			cover := min(1, r+0.5-math.Sqrt(dx*dx+dy*dy))
			if cover <= 0 {
				continue
			}
			a := cover * alpha
			p := img.Pix[img.PixOffset(i, j):][:4:4]
			p[0] = over(p[0], c.R, a)
			p[1] = over(p[1], c.G, a)
			p[2] = over(p[2], c.B, a)
			p[3] = over(p[3], 0xff, a)
		}
	}
}

// over blends one channel, premultiplied, with a new colour of that opacity.
func over(old, new uint8, alpha float64) uint8 {
	return uint8(float64(old)*(1-alpha) + float64(new)*alpha + 0.5)
}

// writeSVG has gonum's canvas write title, legend and scale bar, and puts the
// background and the points before them.
//
// Points drawn by density are images with that many pixels per inch.
func (l *layout) writeSVG(w io.Writer, dpi int) error {
	points := l.svgPoints(dpi)
	c := vgsvg.New(vg.Length(l.width), vg.Length(l.height))
	l.furnish(vgdraw.New(c))
	var b bytes.Buffer
	kind.Got(c.WriteTo(&b))
	// A reader without the font would take one with serifs.
	document := strings.ReplaceAll(b.String(), "font-family:Liberation Sans;", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
	start := strings.Index(document, "<svg")
	start += strings.IndexByte(document[start:], '>') + 1
	_, err := io.WriteString(w, document[:start]+"\n"+points+document[start:])
	return err
}

// svgPoints writes each point as a line of length 0 with round ends. It takes a fifth of
// the space of a circle. The lines of one path are drawn as one shape, so a path holds
// points of one colour from a small part of the order of drawing only: colours still mix.
func (l *layout) svgPoints(dpi int) string {
	var b strings.Builder
	b.WriteString("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	for _, layer := range l.layers {
		if !layer.dense {
			layer.writeSVG(&b, l.height)
			continue
		}
		l.checkPixels(dpi)
		layer.writeSVGDensity(&b, l.height, dpi)
	}
	return b.String()
}

// writeSVG writes the layer of a picture of that height. A rim is a wider line below the
// line of the point's colour.
func (l *layer) writeSVG(b *strings.Builder, height float64) {
	const maxParts = 64
	least := selection.If(l.outline > 0, 1, 16) // mean number of points in a path, where a rim lies under all points
	fmt.Fprintf(b, "<g fill=\"none\" stroke-linecap=\"round\" stroke-width=\"%s\" stroke-opacity=\"%s\">\n", short(l.diameter), short(l.alpha))
	n := len(l.x)
	parts := min(maxParts, max(1, n/(least*len(l.colours))))
	paths := make([][]byte, len(l.colours))
	for part := range parts {
		for i := part * n / parts; i < (part+1)*n/parts; i++ {
			d := append(paths[l.colour[i]], 'M')
			d = append(d, short(l.x[i])...)
			d = append(d, ' ')
			d = append(d, short(height-l.y[i])...)
			paths[l.colour[i]] = append(d, "h0"...)
		}
		for k, d := range paths {
			switch colour := hex(l.colours[k]); {
			case len(d) == 0:
			case l.outline > 0:
				fmt.Fprintf(b, "<path stroke=\"%s\" d=\"%s\"/>\n", hex(shade(l.colours[k])), d)
				fmt.Fprintf(b, "<path stroke=\"%s\" stroke-width=\"%s\" d=\"%s\"/>\n", colour, short(l.diameter-2*l.outline), d)
			default:
				fmt.Fprintf(b, "<path stroke=\"%s\" d=\"%s\"/>\n", colour, d)
			}
			paths[k] = d[:0]
		}
	}
	b.WriteString("</g>\n")
}

// short writes a number with up to two decimals, a hundredth of a printer's point.
func short(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
