package figures

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"cne/configs"
	"cne/data"
)

// OpenImages reads images, also those that come with the program.
func OpenImages(ctx context.Context, paths []string) (*data.Images, error) {
	if name, ok := strings.CutPrefix(paths[0], configs.BuiltinPrefix); ok && len(paths) == 1 {
		return data.BuiltinImages(name)
	}
	return data.OpenImages(ctx, paths, data.ImageOptions{})
}

// RunImages returns the images that the points of a run are, of which there are n,
// or those of the given rows of data.path and data.holdout if rows is not nil; nil
// if the points are no images. A page without images is better than none: what
// keeps them from being read is said and no error.
func RunImages(log *slog.Logger, c *configs.Config, n int, rows []int) *data.Images {
	images, err := allImages(c)
	if err == nil && images != nil && rows != nil {
		images, err = takeImages(images, rows)
	}
	if err == nil && images != nil && images.N != n {
		err = fmt.Errorf("data.path has %d images now, but the embedding %d points", images.N, n)
	}
	if err != nil {
		log.Warn("the images of the points are left out of the page", "reason", err)
		return nil
	}
	return images
}

// allImages returns the images of all points of a run: of those of data.path,
// and behind them of those of data.holdout if these have files of their own.
// They are nil unless all are images of one size.
func allImages(c *configs.Config) (*data.Images, error) {
	images, err := imagesOf(c.Data.Path)
	if images == nil || c.Data.Holdout == nil || len(c.Data.Holdout.Paths) == 0 {
		return images, err
	}
	held, err := imagesOf(c.Data.Holdout.Paths)
	if held == nil || held.H != images.H || held.W != images.W || held.C != images.C {
		return nil, err
	}
	images.Pixels = slices.Concat(images.Pixels, held.Pixels)
	images.N += held.N
	images.Labels, images.Train = nil, nil
	return images, nil
}

// imagesOf returns the images that the points of files are, in the order of the
// points, or nil if they are none. It reads the files again, since the points that
// were read from them are scaled.
func imagesOf(paths []string) (*data.Images, error) {
	if slices.ContainsFunc(paths, data.IsCounts) {
		return nil, nil
	}
	images, err := OpenImages(context.Background(), paths)
	if errors.Is(err, data.ErrUnsupported) || errors.Is(err, data.ErrShape) {
		return nil, nil
	}
	return images, err
}

// takeImages returns the images of the given rows, without labels.
func takeImages(images *data.Images, rows []int) (*data.Images, error) {
	taken := &data.Images{Name: images.Name, N: len(rows), H: images.H, W: images.W, C: images.C}
	for _, i := range rows {
		if i < 0 || i >= images.N {
			return nil, fmt.Errorf("data.path has %d images now, but row %d was embedded", images.N, i)
		}
		taken.Pixels = append(taken.Pixels, images.Image(i)...)
	}
	return taken, nil
}
