package data

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"
)

// pictures returns the shape of the images in an array, or says why it holds
// none.
func (a array) pictures() (shape, error) {
	if !a.isByte() {
		return shape{}, errorf(ErrUnsupported, "the values of the array are no unsigned bytes; convert it with x.astype('uint8'), after multiplying by 255 if they lie between 0 and 1")
	}
	var s shape
	text := shapeText(a.shape)
	switch len(a.shape) {
	case 3:
		s = shape{a.shape[1], a.shape[2], 1}
	case 4:
		s = shape{a.shape[1], a.shape[2], a.shape[3]}
	default:
		return shape{}, errorf(ErrShape, "the array has the shape %s; images need N×H×W×3, or N×H×W for greyscale: use x.reshape", text)
	}
	if n, d := a.rows(); n == 0 || d == 0 {
		return shape{}, errorf(ErrEmpty, "the array of shape %s holds no images; give at least one", text)
	}
	if s.c != 1 && s.c != 3 {
		if s.h == 1 || s.h == 3 {
			return shape{}, errorf(ErrShape, "the array has the shape %s, with the colours before the rows; convert it with x.transpose(0, 2, 3, 1)", text)
		}
		return shape{}, errorf(ErrShape, "the array has the shape %s, hence %d values per pixel; give 3 (red, green, blue) or 1 (greyscale): x[..., :3] drops transparency", text, s.c)
	}
	return s, nil
}

// readPictureArray reads the images of an array.
func readPictureArray(s *source, f format) (*pictures, error) {
	a, err := f.header(s)
	if err != nil {
		return nil, err
	}
	p := &pictures{}
	if p.shape, err = a.pictures(); err != nil {
		return nil, err
	}
	b, err := newBody(a, s)
	if err != nil {
		return nil, err
	}
	p.pixels = make([]byte, 0, s.trusted(b.total))
	for {
		src, n, err := b.next(b.total)
		if err == io.EOF {
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		p.pixels = append(p.pixels, src[:n]...)
	}
}

// readNPZ reads the images, and perhaps the labels, of NumPy's archive of
// arrays.
func readNPZ(r io.ReaderAt, size int64) (*pictures, error) {
	z, err := zip.NewReader(r, max(0, size))
	if err != nil {
		return nil, errorf(ErrFormat, "the zip archive cannot be read (%w); write it again with np.savez", err)
	}
	images := findArray(z, "images", "x")
	if images == nil {
		return nil, errorf(ErrFormat, "the archive holds no array named images or x, but %s; name it in np.savez(file, images=x, labels=y)", arrayNames(z))
	}
	var p *pictures
	err = readArrayOf(images, size, func(s *source) (err error) {
		p, err = readPictureArray(s, formatNPY)
		return err
	})
	if err != nil {
		return nil, err
	}
	labels := findArray(z, "labels", "y")
	if labels == nil {
		return p, nil
	}
	err = readArrayOf(labels, size, func(s *source) error {
		a, err := npyHeader(s)
		if err == nil {
			p.labels, err = a.readLabels(s)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if n := len(p.pixels) / p.bytes(); len(p.labels) != n {
		return nil, errorf(ErrLabels, "the array %s has %d labels for %d images; give one label per image", labels.Name, len(p.labels), n)
	}
	return p, nil
}

// findArray returns the first of the named arrays that is there, or nil.
func findArray(z *zip.Reader, names ...string) *zip.File {
	for _, name := range names {
		for _, f := range z.File {
			if f.Name == name+".npy" {
				return f
			}
		}
	}
	return nil
}

// arrayNames lists what an archive holds, for an error.
func arrayNames(z *zip.Reader) string {
	if len(z.File) == 0 {
		return "nothing"
	}
	var names []string
	for _, f := range z.File[:min(len(z.File), maxListed)] {
		names = append(names, fmt.Sprintf("%.40q", strings.TrimSuffix(f.Name, ".npy")))
	}
	if more := len(z.File) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// readArrayOf reads an array in an archive of the given size. What the archive
// says about the array's size counts as far as the archive can hold it.
func readArrayOf(f *zip.File, size int64, read func(*source) error) error {
	r, err := f.Open()
	if err != nil {
		return errorf(ErrFormat, "the array %s cannot be read (%w); write the file again with np.savez", f.Name, err)
	}
	defer r.Close()
	s, err := newSource(archived{r})
	if err == nil {
		if !s.packed && f.Method == zip.Store && f.UncompressedSize64 <= uint64(size) {
			s.size = int64(f.UncompressedSize64)
		} else {
			s.packed = true
			s.size = int64(min(f.CompressedSize64, uint64(size)))
		}
		err = read(s)
	}
	if err != nil {
		return fmt.Errorf("the array %s: %w", f.Name, err)
	}
	return nil
}
