package plot

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"math"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// maxPixels bounds the memory for an image, at 8 bytes each.
const maxPixels = 200_000_000

// checkPixels returns an error if the layout has more pixels than maxPixels.
func (l *layout) checkPixels(dpi int) error {
	if n := l.width / 72 * l.height / 72 * float64(dpi) * float64(dpi); n > maxPixels {
		return fmt.Errorf("%w: %.3g × %.3g inches at %d DPI: got %.3g pixels, want at most %.3g", ErrInput, l.width/72,
			l.height/72, dpi, n, float64(maxPixels))
	}
	return nil
}

// writePNG draws the layout at that many pixels per inch.
func (l *layout) writePNG(w io.Writer, dpi int) error {
	if err := l.checkPixels(dpi); err != nil {
		return err
	}
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(l.width), vg.Length(l.height)), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(color.White))
	img := c.Image()
	points := image.NewRGBA(img.Bounds())
	l.rasterise(points, float64(dpi)/72)
	draw.Draw(img, img.Bounds(), points, image.Point{}, draw.Over)
	canvas := vgdraw.New(c)
	for _, f := range l.furniture {
		f(canvas)
	}
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// rasterise sets the points as anti-aliased discs, or draws them by density; dots
// is the number of pixels per printer's point.
func (l *layout) rasterise(img *image.RGBA, dots float64) {
	bottom := float64(img.Rect.Dy())
	for _, layer := range l.layers {
		if layer.dense {
			for _, above := range layer.densities(dots, img.Rect.Dy()) {
				overlay(img, above)
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
