// Command mosaic draws the images that a run of cne simclr pretrain has placed in the
// plane, where it has placed them: the plane is cut into square cells, and each shows the
// image that lies nearest to its middle.
//
//	go run ./mosaic [-cells N] [-tile PIXELS] RUN OUTPUT.png
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/image/draw"

	"cne/data"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/app/report"
	"cne/internal/atomicfile"
)

func main() {
	cells := flag.Int("cells", 32, "cells side by side, and one above the other")
	tile := flag.Int("tile", 24, "width and height of a cell in `pixels`")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./mosaic [-cells N] [-tile PIXELS] RUN OUTPUT.png")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 || *cells < 1 || *cells > 1000 || *tile < 1 || *tile > 1000 || *cells**tile > 20000 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), flag.Arg(0), flag.Arg(1), *cells, *tile); err != nil {
		fmt.Fprintln(os.Stderr, "mosaic:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder, output string, cells, tile int) error {
	c := report.PretrainedConfig(folder)
	if c == nil {
		return fmt.Errorf("%s: got no configuration, want the folder of a run of cne simclr pretrain", folder)
	}
	images, _, err := report.PretrainedImages(ctx, folder, c)
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	positions, err := file.Read(ctx, []string{filepath.Join(folder, "embedding.npy")}, file.Options{})
	if err != nil {
		return err
	}
	m, err := mosaic(positions.Points, images, cells, tile)
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	return atomicfile.Write(output, func(w io.Writer) error { return png.Encode(w, m) })
}

// mosaic draws cells×cells cells of tile×tile pixels.
func mosaic(positions *data.Matrix, images *images.Set, cells, tile int) (image.Image, error) {
	switch {
	case positions.N != images.N:
		return nil, fmt.Errorf("there are %d positions and %d images; give a run whose images are still what they were", positions.N, images.N)
	case positions.D != 2:
		return nil, fmt.Errorf("the positions have %d coordinates; give a run in the plane", positions.D)
	case positions.N == 0:
		return nil, errors.New("there are no images; give a run that has placed some")
	}
	f := frameOf(positions)
	out := image.NewRGBA(image.Rect(0, 0, cells*tile, cells*tile))
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	for cell, row := range f.nearest(positions, cells) {
		if row < 0 {
			continue
		}
		at := image.Pt(cell%cells*tile, cell/cells*tile)
		im := picture(images, row)
		draw.CatmullRom.Scale(out, image.Rectangle{at, at.Add(image.Pt(tile, tile))}, im, im.Bounds(), draw.Src, nil)
	}
	return out, nil
}

// A frame is a square of the plane.
type frame struct{ x, y, side float64 } // its lower left corner

// outside is the share of the points that may lie beyond each edge of the frame, so that a
// few far from all others do not shrink the picture.
const outside = 0.002

// frameOf returns the square about nearly all positions.
func frameOf(positions *data.Matrix) frame {
	var low, high [2]float64
	for axis := range 2 {
		values := make([]float64, positions.N)
		for i := range values {
			values[i] = float64(positions.X[2*i+axis])
		}
		slices.Sort(values)
		k := int(outside * float64(len(values)))
		low[axis], high[axis] = values[k], values[len(values)-1-k]
	}
	side := max(high[0]-low[0], high[1]-low[1])
	if side == 0 {
		side = 1
	}
	return frame{(low[0] + high[0] - side) / 2, (low[1] + high[1] - side) / 2, side}
}

// nearest returns, for every cell, row by row from the top, the point within it that is
// nearest to its middle; -1 for none.
func (f frame) nearest(positions *data.Matrix, cells int) []int {
	rows, distances := slices.Repeat([]int{-1}, cells*cells), make([]float64, cells*cells)
	for i := range positions.N {
		x := (float64(positions.X[2*i]) - f.x) / f.side * float64(cells)
		y := (f.y + f.side - float64(positions.X[2*i+1])) / f.side * float64(cells)
		column, line := min(int(math.Floor(x)), cells-1), min(int(math.Floor(y)), cells-1)
		if x < 0 || y < 0 || x > float64(cells) || y > float64(cells) {
			continue
		}
		d := math.Hypot(x-float64(column)-0.5, y-float64(line)-0.5)
		if cell := line*cells + column; rows[cell] < 0 || d < distances[cell] {
			rows[cell], distances[cell] = i, d
		}
	}
	return rows
}

// picture returns an image.
func picture(images *images.Set, row int) image.Image {
	im := image.NewRGBA(image.Rect(0, 0, images.W, images.H))
	pixels := images.Image(row)
	for p := range images.H * images.W {
		v := pixels[p*images.C : (p+1)*images.C]
		im.SetRGBA(p%images.W, p/images.W, color.RGBA{v[0], v[len(v)/2], v[len(v)-1], 255})
	}
	return im
}
