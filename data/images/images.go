// Package images reads images and keeps them as bytes. It reads CIFAR-10's binary
// version, folders of PNG, JPEG and WebP files by class, and arrays as npy, npz and IDX.
package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cne/data"
	"cne/data/file"
	"cne/internal/kind"
	"cne/internal/selection"
)

// A Set has images of one size, with optional labels.
type Set struct {
	// Name says what the images are, for titles and logs.
	Name string
	// N is the number of images, H and W are their height and width in pixels,
	// C is the number of values per pixel: 1 for greyscale, 3 for red, green
	// and blue.
	N, H, W, C int
	// Pixels holds N×H×W×C bytes: image after image, row after row from the top, pixel after
	// pixel from the left, and the C values of a pixel next to each other.
	Pixels []byte
	// Labels is nil when the images have none.
	Labels *data.Labels
	// Train reports for each image whether it is a training image, not a test image, of a
	// published split. It is nil if no split is known.
	Train []bool
	// Names are the paths of the files within their folders, one per image, with slashes;
	// nil unless all images come from folders of PNG, JPEG and WebP files.
	Names []string
	// Skipped are the files that Options.SkipBroken has left out, or that Thumbnail has
	// replaced by white images, each with the reason in brackets.
	Skipped []string
	// Stray is an image, or an empty folder, that is not in the folder of a class as most
	// images are. Because of it there are no labels. It is empty if there is none.
	Stray string
}

// Image returns the H×W×C bytes of image i, a slice of Pixels.
func (im *Set) Image(i int) []byte {
	size := im.H * im.W * im.C
	return im.Pixels[i*size : (i+1)*size : (i+1)*size]
}

// InColour returns the images with three values per pixel: im itself if it is in colour,
// otherwise a copy that repeats each grey value three times.
func (im *Set) InColour() *Set {
	if im.C == 3 {
		return im
	}
	colour := *im
	colour.C, colour.Pixels = 3, make([]byte, 3*len(im.Pixels))
	for i, v := range im.Pixels {
		colour.Pixels[3*i], colour.Pixels[3*i+1], colour.Pixels[3*i+2] = v, v, v
	}
	return &colour
}

// Options says how Open reads. The zero value reads images as they are. The tags are the
// names in configurations: see internal/option.
type Options struct {
	// Name replaces the name taken from the first file or folder.
	Name string
	// Labels names files with the labels of the images, in the order of the images. Formats
	// are as for file.Options.Labels. These labels replace labels that come with the images.
	Labels []string `key:"labels" as:"paths"`
	// Size is the height and width of all images in pixels, up to 4096. The largest centred
	// square of each image is scaled to it bilinearly, with smoothing if it shrinks. 0 keeps
	// the sizes; they must then be equal.
	Size int `key:"size" in:"0 or [1,4096]"`
	// SkipBroken leaves out files of folders that cannot be decoded, or are of an unsupported
	// kind. Set.Skipped names them. Without SkipBroken they are an error.
	SkipBroken bool `key:"skip_broken"`
	// Thumbnail, if not 0, is for displaying the images of folders. Larger images are brought
	// to this height and width in pixels. Files that cannot be decoded become white unless
	// SkipBroken is set. Classes and split are left out.
	Thumbnail int
	// Progress, if not nil, is called with the number of files of a folder read so far, and
	// with the number of all its files.
	Progress func(done, all int)
}

// maxSize bounds Options.Size.
const maxSize = 4096

// Open reads images from paths, in their order. A path is one of
//
//   - CIFAR-10 in its binary version: the published archive cifar-10-binary.tar.gz or
//     the folder unpacked from it, training images first; or one of its batches (.bin);
//   - a folder of PNG, JPEG and WebP files: <path>/<class>/<name>.png, or
//     <path>/train/<class>/<name>.png and <path>/test/<class>/<name>.png, training images
//     first;
//   - a folder that file.Open reads, such as MNIST's four files, with labels and, if it
//     has two parts, the split;
//   - an npy or IDX file with unsigned bytes of the shape N×H×W×3, or N×H×W×1 or N×H×W for
//     greyscale;
//   - data embedded in the program (file.BuiltinPrefix);
//   - an npz file with such an array named images (or else x or X), without a name
//     (arr_0), or as its only array, and perhaps an array of labels named labels (or else
//     y).
//
// Image files are ordered by class, then by name; numbers in names are compared as
// numbers. In other layouts, all files in the folder and below are read, without labels.
// 16 bits per colour become 8. If some images of a folder are in colour, its greyscale
// images become colour. Images are rotated as their Exif orientation says.
// Transparent pixels become white.
//
// Files of arrays and batches may be compressed with gzip. Images of all paths must have
// the same size and number of colours. All paths or none must have labels, unless opt
// gives labels. The split is known if it is known for every path. Errors name the file,
// and are of the kinds of package data or this package, or the file system's.
func Open(ctx context.Context, paths []string, opt Options) (_ *Set, err error) {
	defer kind.Catch(&err)
	kind.Need(len(paths) > 0, data.ErrOption, "images: got no path, want files or folders")
	kind.Need(opt.Size >= 0 && opt.Size <= maxSize, data.ErrOption,
		"size of the images: got %d, want 1 to %d pixels, or 0 to keep their size", opt.Size, maxSize)
	parts := make([]*pictures, len(paths))
	for i, path := range paths {
		p := openPictures(ctx, path, opt)
		if opt.Size > 0 {
			p.resize(opt.Size)
		}
		parts[i] = p
		f := parts[0]
		kind.Need(p.c == f.c, data.ErrShape, "%s: images: got %s, want %s as in %s", p.path, p.shape, f.shape, f.path)
		kind.Need(p.shape == f.shape, ErrSizes, "%s: images: got %s, want %s as in %s, or a size to scale all to", p.path, p.shape, f.shape, f.path)
	}
	return joinPictures(ctx, parts, opt), nil
}

// joinPictures joins the images of all paths. It fails as kind.Need does.
func joinPictures(ctx context.Context, parts []*pictures, opt Options) *Set {
	first := parts[0]
	im := &Set{Name: opt.Name, H: first.h, W: first.w, C: first.c, Pixels: first.pixels}
	if im.Name == "" {
		im.Name = strings.TrimSuffix(file.NameOf(first.path), ".tar")
	}
	if len(parts) > 1 {
		im.Pixels = slices.Concat(selection.Map(parts, func(p *pictures) []byte { return p.pixels })...)
	}
	im.N = len(im.Pixels) / first.bytes()

	var labels []string
	split := true
	for _, p := range parts {
		im.Names, im.Skipped = append(im.Names, p.names...), append(im.Skipped, p.skipped...)
		im.Stray = cmp.Or(im.Stray, p.stray)
		for _, pair := range [2][2]*pictures{{first, p}, {p, first}} {
			kind.Need(len(opt.Labels) > 0 || pair[0].labels == nil || pair[1].labels != nil, data.ErrLabels,
				"%s: labels: got none, want some as in %s, or none for any image", pair[1].path, pair[0].path)
		}
		labels, im.Train = append(labels, p.labels...), append(im.Train, p.train...)
		split = split && p.train != nil
	}
	if len(im.Names) != im.N {
		im.Names = nil
	}
	if len(opt.Labels) > 0 {
		labels = kind.Got(file.ReadLabels(ctx, opt.Labels, im.N, nil))
	}
	if labels != nil {
		im.Labels = data.NewLabels(labels)
	}
	if !split {
		im.Train = nil
	}
	return im
}

// A shape is the size of one image.
type shape struct{ h, w, c int }

func (s shape) bytes() int { return s.h * s.w * s.c }

// String names the shape as pictures are described, the width first.
func (s shape) String() string {
	if s.c == 1 {
		return fmt.Sprintf("%d×%d in greyscale", s.w, s.h)
	}
	return fmt.Sprintf("%d×%d in colour", s.w, s.h)
}

// pictures are the images of one path.
type pictures struct {
	shape
	path   string
	pixels []byte
	labels []string // one per image, nil without labels
	train  []bool   // one per image, nil without a split
	names  []string // one per image, nil if they come from no folder of images
	// skipped are the files of a folder that were left out.
	skipped []string
	stray   string // see Set.Stray
}

// openPictures reads the images of one path; the options apply to folders of images. It fails
// as kind.Need does.
func openPictures(ctx context.Context, path string, o Options) (p *pictures) {
	info, err := file.Stat(path)
	kind.Check(kind.Named("the images cannot be read", err))
	switch {
	case info.IsDir() && isCIFARFolder(path):
		p = readCIFARFolder(ctx, path)
	case info.IsDir() && !file.IsCollection(path):
		p = readImageFolder(ctx, path, o)
	default:
		if info.Mode().IsRegular() { // data read from a pipe is lost
			p = kind.Got(readCIFAR(ctx, path))
		}
		if p == nil {
			p = readArray(ctx, path)
		}
	}
	p.path = path
	return p
}

var (
	// ErrSizes is wrapped by errors about images of different sizes, which Options.Size would
	// bring to one size. It wraps data.ErrShape.
	ErrSizes = kind.Errorf(data.ErrShape, "images differ in size")
	// ErrBroken is wrapped by errors about files of a folder that cannot be decoded, which
	// Options.SkipBroken would leave out. Such errors also wrap data.ErrFormat or an error of
	// the file system.
	ErrBroken = errors.New("images cannot be decoded")
)

// arrayShape returns the shape of the images in arrays, or an error if arrays cannot hold
// images.
func arrayShape(shapes [][]int) (s shape, err error) {
	defer kind.Catch(&err)
	kind.Need(len(shapes) > 0, data.ErrUnsupported,
		"got no images, want PNG, JPEG or WebP files in a folder, CIFAR-10's binary version, or an npy or npz file of N×H×W×3 unsigned bytes (x.astype('uint8'), for values from 0 to 1 after x *= 255)")
	dims := shapes[0]
	for _, other := range shapes {
		kind.Need(slices.Equal(other[1:], dims[1:]), data.ErrShape, "shape of the second file: got %v, want %v as in the first", other, dims)
	}
	kind.Need(len(dims) == 3 || len(dims) == 4, data.ErrShape, "shape: got %v, want N×H×W×3, or N×H×W for greyscale", dims)
	s = shape{dims[1], dims[2], 1}
	if len(dims) == 4 {
		s.c = dims[3]
	}
	isColours := s.c == 1 || s.c == 3
	kind.Need(isColours || s.h != 1 && s.h != 3, data.ErrShape,
		"shape: got %v, with the colours before the rows, want N×H×W×3 (x.transpose(0, 2, 3, 1))", dims)
	kind.Need(isColours, data.ErrShape,
		"values per pixel: got %d (shape %v), want 3 (red, green, blue) or 1 (greyscale); x[..., :3] drops transparency", s.c, dims)
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
	}
	return rows, s, kind.Named(path, err)
}

// readArray reads the images of openArray, or fails as kind.Need does. If there are two files,
// the first has the training images.
func readArray(ctx context.Context, path string) *pictures {
	rows, s, err := openArray(ctx, path)
	kind.Check(err)
	defer rows.Close()
	p := &pictures{shape: s}
	p.pixels, p.labels, err = rows.ReadBytes()
	kind.Check(err)
	if parts := rows.Parts(); len(parts) == 2 {
		p.train = append(slices.Repeat([]bool{true}, parts[0].Rows), make([]bool, parts[1].Rows)...)
	}
	return p
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
	info, err := file.Stat(path)
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
