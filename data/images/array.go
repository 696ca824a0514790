package images

import (
	"context"
	"fmt"
	"os"
	"slices"

	"cne/data"
	"cne/data/file"
)

// arrayShape returns the shape of the images in arrays, or an error if arrays cannot hold
// images.
func arrayShape(shapes [][]int) (shape, error) {
	var s shape
	var dims []int
	if len(shapes) > 0 {
		dims = shapes[0]
	}
	for _, other := range shapes {
		if !slices.Equal(other[1:], dims[1:]) {
			return s, errorf(data.ErrShape, "shape of the second file: got %v, want %v as in the first", other, dims)
		}
	}
	switch len(dims) {
	case 0:
		return s, errorf(data.ErrUnsupported,
			"got no images, want PNG, JPEG or WebP files in a folder, CIFAR-10's binary version, or an npy or npz file of N×H×W×3 unsigned bytes (x.astype('uint8'), for values from 0 to 1 after x *= 255)")
	case 3:
		s = shape{dims[1], dims[2], 1}
	case 4:
		s = shape{dims[1], dims[2], dims[3]}
	default:
		return s, errorf(data.ErrShape, "shape: got %v, want N×H×W×3, or N×H×W for greyscale", dims)
	}
	if s.c != 1 && s.c != 3 {
		if s.h == 1 || s.h == 3 {
			return s, errorf(data.ErrShape, "shape: got %v, with the colours before the rows, want N×H×W×3 (x.transpose(0, 2, 3, 1))", dims)
		}
		return s, errorf(data.ErrShape,
			"values per pixel: got %d (shape %v), want 3 (red, green, blue) or 1 (greyscale); x[..., :3] drops transparency", s.c, dims)
	}
	return s, nil
}

// openArray opens the array of images in a file, or in a folder of a published data set.
func openArray(ctx context.Context, path string) (rows file.Bytes, s shape, err error) {
	opened, err := file.Open(ctx, []string{path}, file.Options{})
	if err != nil {
		return nil, s, err
	}
	var shapes [][]int
	rows, ok := opened.(file.Bytes)
	if ok {
		shapes = rows.Shapes()
	}
	if s, err = arrayShape(shapes); err != nil {
		opened.Close()
		return nil, s, fmt.Errorf("%s: %w", path, err)
	}
	return rows, s, nil
}

// readArray reads the images of openArray. If there are two files, the first has the
// training images.
func readArray(ctx context.Context, path string) (*pictures, error) {
	rows, s, err := openArray(ctx, path)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	p := &pictures{shape: s}
	if p.pixels, p.labels, err = rows.ReadBytes(); err != nil {
		return nil, err
	}
	if parts := rows.Parts(); len(parts) == 2 {
		p.train = make([]bool, parts[0].Rows+parts[1].Rows)
		for i := range parts[0].Rows {
			p.train[i] = true
		}
	}
	return p, nil
}

// Builtin returns the points of file.Builtin as images, with the same labels.
func Builtin(name string) (*Set, error) {
	ds, err := file.Builtin(name)
	if err != nil {
		return nil, err
	}
	im := &Set{Name: ds.Name, N: ds.Points.N, H: 28, W: 28, C: 1, Pixels: make([]byte, len(ds.Points.X)), Labels: ds.Labels}
	for i, v := range ds.Points.X {
		im.Pixels[i] = byte(v)
	}
	return im, nil
}

// Size returns the size of the images that Open would read, from the headers of files,
// with three bytes per pixel as from InColour. It is unknown if the headers do not have
// it.
func Size(ctx context.Context, paths []string, o Options) data.Size {
	var all data.Size
	for _, path := range paths {
		all = all.Add(sizeOf(ctx, path, o))
	}
	if o.Size > 0 {
		all.Width = 3 * o.Size * o.Size
	}
	return all
}

// sizeOf is Size for one path.
func sizeOf(ctx context.Context, path string, o Options) data.Size {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() || info.IsDir() && isCIFARFolder(path) {
		return data.UnknownSize
	}
	if info.IsDir() && !file.IsCollection(path) {
		list, err := listImages(path)
		if err != nil {
			return data.UnknownSize
		}
		all := data.SizeOf(len(list.files), 3*o.Size*o.Size)
		if o.SkipBroken {
			all.Low = min(all.Low, 1) // at worst, all but one are broken
		}
		return all
	}
	rows, s, err := openArray(ctx, path)
	if err != nil {
		return data.UnknownSize
	}
	defer rows.Close()
	n, _ := rows.Len()
	return data.SizeOf(n, 3*s.h*s.w)
}
