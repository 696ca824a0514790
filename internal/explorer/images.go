package explorer

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"cne/data/images"
	"cne/internal/parallel"
	"cne/internal/selection"
)

// aboutImages says how the pictures lie in their atlases: one below the other,
// each at the top left of a tile.
type aboutImages struct {
	Type       string `json:"type"` // of an atlas
	PerAtlas   int    `json:"perAtlas"`
	Width      int    `json:"width"`  // of a picture
	Height     int    `json:"height"` //
	TileHeight int    `json:"tileHeight"`
}

// Bounds of an atlas. Browsers take no pictures of more than 16 384 pixels a
// side everywhere.
const (
	perAtlas      = 512
	highestAtlas  = 1 << 14
	largestSide   = 96 // of a picture in pixels
	smallestSide  = 8
	sampledImages = 2048 // sample to estimate the size of all
)

// Budgets in bytes for up to budgeted pictures, before base64 makes a third more of them;
// more pictures get in proportion, up to four times as much. In few grey levels, MNIST's
// 70 000 digits take 9 MB; JPEG may take more, because below it pictures are no longer
// recognised.
const (
	budgeted    = 70_000
	levelBudget = 7_000_000
	jpegBudget  = 12_000_000
)

// A coding is a way to store pictures.
type coding struct {
	levels  int // of grey, for PNG; 0 for JPEG
	quality int // of JPEG
	shrink  int // pixels a side that become one
}

// budget returns how many bytes n pictures may take.
func (c coding) budget(n int) int {
	budget := selection.If(c.levels > 0, levelBudget, jpegBudget)
	return budget * min(max(n, budgeted), 4*budgeted) / budgeted
}

// codings returns the codings for such pictures, the best first.
func codings(im *images.Set) []coding {
	shrink := max(1, (max(im.H, im.W)+largestSide-1)/largestSide)
	var out []coding
	for first := true; first || min(im.H, im.W)/shrink >= smallestSide; shrink *= 2 {
		if im.C == 1 && first {
			for _, levels := range []int{256, 64, 16} {
				out = append(out, coding{levels: levels, shrink: shrink})
			}
		}
		for _, quality := range []int{85, 75, 60, 50, 40, 30, 20} {
			out = append(out, coding{quality: quality, shrink: shrink})
		}
		first = false
	}
	return out
}

// encodeImages returns the pictures as atlases of the best coding that keeps to
// its budget, or of the last one.
func encodeImages(im *images.Set) ([][]byte, *aboutImages) {
	ways := codings(im)
	sample := evenly(im.N, min(im.N, sampledImages))
	best := ways[len(ways)-1]
	for _, way := range ways {
		size := 0
		for _, atlas := range way.encode(im, sample) {
			size += len(atlas)
		}
		if size*im.N/len(sample) <= way.budget(im.N) {
			best = way
			break
		}
	}
	w, h, _, tileHeight := best.tile(im)
	about := &aboutImages{Type: "image/jpeg", PerAtlas: best.perAtlas(im), Width: w, Height: h, TileHeight: tileHeight}
	if best.levels > 0 {
		about.Type = "image/png"
	}
	return best.encode(im, evenly(im.N, im.N)), about
}

// evenly returns many of n rows, evenly spread.
func evenly(n, many int) []int {
	rows := make([]int, many)
	for k := range rows {
		rows[k] = k * n / many
	}
	return rows
}

// tile returns the sizes of a picture and of its tile. For JPEG the tile consists of
// whole blocks, so pictures do not blur into each other.
func (c coding) tile(im *images.Set) (w, h, tileWidth, tileHeight int) {
	w, h = (im.W+c.shrink-1)/c.shrink, (im.H+c.shrink-1)/c.shrink
	block := 1
	if c.levels == 0 {
		block = 8
		if im.C == 3 {
			block = 16 // of colours, which JPEG halves
		}
	}
	up := func(n int) int { return (n + block - 1) / block * block }
	return w, h, up(w), up(h)
}

func (c coding) perAtlas(im *images.Set) int {
	_, _, _, tileHeight := c.tile(im)
	return max(1, min(perAtlas, highestAtlas/tileHeight))
}

// encode returns the atlases of the given rows of im.
func (c coding) encode(im *images.Set, rows []int) [][]byte {
	per := c.perAtlas(im)
	out := make([][]byte, (len(rows)+per-1)/per)
	parallel.For(len(out), 1, func(_, lo, hi int) {
		for k := lo; k < hi; k++ {
			out[k] = c.atlas(im, rows[k*per:min(len(rows), (k+1)*per)])
		}
	})
	return out
}

// atlas draws rows of im one below the other.
func (c coding) atlas(im *images.Set, rows []int) []byte {
	_, _, tileWidth, tileHeight := c.tile(im)
	box := image.Rect(0, 0, tileWidth, tileHeight*len(rows))
	var b bytes.Buffer
	var err error
	switch {
	case c.levels > 0:
		palette := make(color.Palette, c.levels)
		for l := range palette {
			palette[l] = color.Gray{uint8(l * 255 / (c.levels - 1))}
		}
		img := image.NewPaletted(box, palette)
		c.draw(im, rows, img.Stride, 1, func(at, _ int, v uint8) {
			img.Pix[at] = uint8((int(v)*(c.levels-1) + 127) / 255)
		})
		err = png.Encode(&b, img)
	case im.C == 1:
		img := image.NewGray(box)
		c.draw(im, rows, img.Stride, 1, func(at, _ int, v uint8) { img.Pix[at] = v })
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: c.quality})
	default:
		img := image.NewRGBA(box)
		c.draw(im, rows, img.Stride, 4, func(at, k int, v uint8) { img.Pix[at+k], img.Pix[at+3] = v, 0xff })
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: c.quality})
	}
	if err != nil {
		panic(err) // a buffer takes everything, and the sizes are bounded
	}
	return b.Bytes()
}

// draw calls set for every value of the tiles of rows: at is where the pixel begins in an
// image of that stride and that many bytes per pixel, k the colour. Beyond its picture a
// tile repeats the last row and column.
func (c coding) draw(im *images.Set, rows []int, stride, pixel int, set func(at, k int, v uint8)) {
	w, h, tileWidth, tileHeight := c.tile(im)
	for t, row := range rows {
		pixels := im.Image(row)
		for y := range tileHeight {
			for x := range tileWidth {
				at := (t*tileHeight+y)*stride + x*pixel
				for k := range im.C {
					set(at, k, c.mean(im, pixels, min(x, w-1), min(y, h-1), k))
				}
			}
		}
	}
}

// mean returns colour k of the pixel x, y of the picture once shrunk.
func (c coding) mean(im *images.Set, pixels []byte, x, y, k int) uint8 {
	if c.shrink == 1 {
		return pixels[(y*im.W+x)*im.C+k]
	}
	sum, n := 0, 0
	for i := y * c.shrink; i < min(im.H, (y+1)*c.shrink); i++ {
		for j := x * c.shrink; j < min(im.W, (x+1)*c.shrink); j++ {
			sum += int(pixels[(i*im.W+j)*im.C+k])
			n++
		}
	}
	return uint8((sum + n/2) / n)
}
