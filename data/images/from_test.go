package images_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/images"
)

// opaque returns an image whose pixels all have different colours.
func opaque(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(10 * x), uint8(20 * y), 7, 255})
		}
	}
	return m
}

func TestFrom(t *testing.T) {
	m := opaque(4, 3)
	wide := need(images.From([]image.Image{m.SubImage(image.Rect(1, 1, 3, 3)), m.SubImage(image.Rect(0, 0, 2, 2))}, 0))(t)
	if want := []byte{10, 20, 7, 20, 20, 7, 10, 40, 7, 20, 40, 7, 0, 0, 7, 10, 0, 7, 0, 20, 7, 10, 20, 7}; wide.N != 2 || wide.H != 2 || wide.W != 2 || wide.C != 3 || !slices.Equal(wide.Pixels, want) {
		t.Errorf("%+v, want the pixels %v", wide, want)
	}
	grey := image.NewGray16(image.Rect(0, 0, 2, 1))
	grey.Set(1, 0, color.Gray16{0x8000})
	if got, err := images.From([]image.Image{grey}, 0); err != nil || got.C != 1 || !slices.Equal(got.Pixels, []byte{0, 0x80}) {
		t.Errorf("grey: %+v, %v", got, err)
	}
}

// Decoded images are what OpenImages reads of their files.
func TestFromIsOpen(t *testing.T) {
	folder := t.TempDir()
	must(t, os.Mkdir(filepath.Join(folder, "class"), 0o777))
	var set []image.Image
	for i, size := range []image.Point{{9, 7}, {8, 8}, {5, 16}} {
		file := jpegOf(opaque(size.X, size.Y))
		put(t, filepath.Join(folder, "class"), fmt.Sprintf("%d.jpg", i), file)
		m := need(jpeg.Decode(bytes.NewReader(file)))(t)
		set = append(set, m)
	}
	want := need(images.Open(t.Context(), []string{folder}, images.Options{Size: 6}))(t)
	got, err := images.From(set, 6)
	if err != nil || got.N != 3 || got.H != 6 || got.W != 6 || got.C != 3 || !bytes.Equal(got.Pixels, want.Pixels) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFromRefuses(t *testing.T) {
	grey, colour := image.NewGray(image.Rect(0, 0, 2, 2)), opaque(2, 2)
	pictures := func(size int, m ...image.Image) error {
		_, err := images.From(m, size)
		return err
	}
	for name, tc := range map[string]struct {
		err, is error
		want    string
	}{
		"no images":      {pictures(0), data.ErrEmpty, "got none"},
		"nil image":      {pictures(0, nil), data.ErrEmpty, "image 1"},
		"empty image":    {pictures(4, colour, &image.RGBA{}), data.ErrEmpty, "image 2"},
		"sizes":          {pictures(0, colour, opaque(2, 3)), images.ErrSizes, "image 2 (counted from 1): got 2×3 in colour, want 2×2"},
		"grey, coloured": {pictures(4, grey, colour), data.ErrShape, "got 4×4 in colour, want 4×4 in greyscale as the first"},
		"size":           {pictures(-1, colour), data.ErrOption, "got -1, want 1 to 4096 pixels"},
	} {
		if !errors.Is(tc.err, tc.is) || !strings.HasPrefix(tc.err.Error(), "images: ") || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: %v, want an error with %q", name, tc.err, tc.want)
		}
	}
}
