package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// writeSVG has gonum's canvas write title, legend and scale bar, and puts the
// background and the points before them.
//
// Points drawn by density are images with that many pixels per inch.
func (l *layout) writeSVG(w io.Writer, dpi int) error {
	points, err := l.svgPoints(dpi)
	if err != nil {
		return err
	}
	c := vgsvg.New(vg.Length(l.width), vg.Length(l.height))
	canvas := draw.New(c)
	for _, f := range l.furniture {
		f(canvas)
	}
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	// A reader without the font would take one with serifs.
	document := strings.ReplaceAll(b.String(), "font-family:Liberation Sans;", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
	start := strings.Index(document, "<svg")
	start += strings.IndexByte(document[start:], '>') + 1
	_, err = io.WriteString(w, document[:start]+"\n"+points+document[start:])
	return err
}

// svgPoints writes each point as a line of length 0 with round ends. It takes a fifth of
// the space of a circle. The lines of one path are drawn as one shape, so a path holds
// points of one colour from a small part of the order of drawing only: colours still mix.
func (l *layout) svgPoints(dpi int) (string, error) {
	var b strings.Builder
	b.WriteString("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	for _, layer := range l.layers {
		if !layer.dense {
			layer.writeSVG(&b, l.height)
			continue
		}
		if err := l.checkPixels(dpi); err != nil {
			return "", err
		}
		if err := layer.writeSVGDensity(&b, l.height, dpi); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// writeSVG writes the layer of a picture of that height. A rim is a wider line below the
// line of the point's colour.
func (l *layer) writeSVG(b *strings.Builder, height float64) {
	const maxParts = 64
	least := 16 // mean number of points in a path
	if l.outline > 0 {
		least = 1 // in one path, a point's rim lies under all points
	}
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
