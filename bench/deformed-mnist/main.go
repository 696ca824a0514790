// Command deformed-mnist makes any number of points for measurements: MNIST's images, drawn
// at random, moved, rotated, scaled and warped a little.
//
//	go run ./deformed-mnist [-images PATH] [-pca D] N SEED OUT
//
// It writes OUT/images.npy, N×784 bytes, and OUT/labels.npy, the N digits as bytes (for
// other images, class numbers). With -pca D it writes OUT/points.npy instead of the images:
// the first D principal components of the pixels (from 0 to 1), N×D float32; the components
// are fitted to the first 50 000 images.
//
// The output depends only on N, SEED and the originals; the images of a smaller N are the
// first images of a larger one. The files appear when they are complete, and replace those
// of their names. It takes 50 MB of memory, with -pca 350 MB, whatever N.
//
// The originals are the 10 000 built-in test images or, with -images, the images of a
// folder with MNIST's IDX files, or any labelled greyscale images that cne train reads as
// images.
package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"cne/data"
	"cne/data/file"
	"cne/data/images"
	"cne/data/pca"
	"cne/internal/atomicfile"
	"cne/internal/npy"
)

const usage = "usage: deformed-mnist [-images PATH] [-pca D] N SEED OUT"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "deformed-mnist:", err)
		os.Exit(1)
	}
}

// run is the program without its process.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("deformed-mnist", flag.ContinueOnError)
	flags.SetOutput(stderr)
	source := flags.String("images", "", "the originals: a `path` of greyscale images with labels (default MNIST's test images)")
	width := flags.Int("pca", 0, "write `D` principal components instead of the images")
	flags.Usage = func() {
		fmt.Fprintln(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 3 {
		return fmt.Errorf("arguments: got %d, want three; %s", flags.NArg(), usage)
	}
	n, err := strconv.Atoi(flags.Arg(0))
	if err != nil || n < 1 {
		return fmt.Errorf("number N: got %q, want a whole number of at least 1", flags.Arg(0))
	}
	seed, err := strconv.ParseUint(flags.Arg(1), 10, 64)
	if err != nil {
		return fmt.Errorf("seed: got %q, want a whole number of at least 0", flags.Arg(1))
	}
	originals, err := open(ctx, *source)
	if err != nil {
		return err
	}
	if most := min(n, fitted, originals.H*originals.W); *width < 0 || *width > most {
		return fmt.Errorf("-pca: got %d, want 1 to %d here, or 0 for the images themselves", *width, most)
	}
	out := flags.Arg(2)
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("the folder to write to cannot be made: %w", err)
	}
	m := maker{endless: endless{originals, seed}, n: n}
	name, points := "images.npy", m.images
	if *width > 0 {
		name, points = "points.npy", func(ctx context.Context, w io.Writer) error { return m.components(ctx, w, *width) }
	}
	if err := atomicfile.Write(filepath.Join(out, name), func(w io.Writer) error { return points(ctx, w) }); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(out, "labels.npy"), func(w io.Writer) error {
		_, err := w.Write(append(npy.Head(64, "|u1", n), m.labels...))
		return err
	})
}

// open reads the originals.
func open(ctx context.Context, path string) (*images.Set, error) {
	path = cmp.Or(path, file.BuiltinPrefix+"mnist10k")
	images, err := images.Open(ctx, []string{path}, images.Options{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the originals cannot be read: %w", err)
	case images.C != 1:
		return nil, fmt.Errorf("the images in %s have colours; give greyscale ones", path)
	case images.Labels != nil && len(images.Labels.Names) > 256:
		return nil, fmt.Errorf("the images in %s have %d different labels; at most 256 have room in a byte", path, len(images.Labels.Names))
	case images.Labels == nil:
		return nil, fmt.Errorf("the images in %s have no labels; give a folder with MNIST's four files", path)
	}
	return images, nil
}

const (
	// fitted is the number of images to which the principal components are fitted.
	fitted = 50_000
	// block is the number of images in memory at once.
	block = 2_000
)

// A maker writes images, or their components, and collects their labels.
type maker struct {
	endless
	n      int
	labels []byte
}

// each calls use for the first n images, block by block, and has their labels; what use gets
// is its own until it returns.
func (m *maker) each(ctx context.Context, n int, use func(pixels []byte) error) error {
	o := m.originals
	m.labels = make([]byte, 0, n)
	pixels, origin := make([]byte, block*o.H*o.W), make([]int32, block)
	for lo := 0; lo < n; lo += block {
		if err := ctx.Err(); err != nil {
			return err
		}
		count := min(block, n-lo)
		pixels, origin := pixels[:count*o.H*o.W], origin[:count]
		m.fill(pixels, origin, lo)
		for _, i := range origin {
			m.labels = append(m.labels, byte(o.Labels.Class[i]))
		}
		if err := use(pixels); err != nil {
			return err
		}
	}
	return nil
}

// images writes the images as a npy file.
func (m *maker) images(ctx context.Context, w io.Writer) error {
	o := m.originals
	if _, err := w.Write(npy.Head(64, "|u1", m.n, o.H*o.W)); err != nil {
		return err
	}
	return m.each(ctx, m.n, func(pixels []byte) error {
		_, err := w.Write(pixels)
		return err
	})
}

// components writes the first principal components as a npy file.
func (m *maker) components(ctx context.Context, w io.Writer, width int) error {
	o := m.originals
	first := data.NewMatrix(min(m.n, fitted), o.H*o.W)
	at := 0
	if err := m.each(ctx, first.N, func(pixels []byte) error {
		at += scale(first.X[at:], pixels)
		return nil
	}); err != nil {
		return err
	}
	components, err := pca.Fit(ctx, first, width)
	if err != nil {
		return err
	}
	if _, err := w.Write(npy.Head(64, "<f4", m.n, width)); err != nil {
		return err
	}
	rows := first.Rows(0, min(m.n, block))
	return m.each(ctx, m.n, func(pixels []byte) error {
		part := rows.Rows(0, len(pixels)/first.D)
		scale(part.X, pixels)
		reduced, err := components.Transform(ctx, part)
		if err != nil {
			return err
		}
		return binary.Write(w, binary.LittleEndian, reduced.X)
	})
}

// scale brings pixels to 0 … 1, and returns how many they are.
func scale(dst []float32, pixels []byte) int {
	for i, p := range pixels {
		dst[i] = float32(p) / 255
	}
	return len(pixels)
}
