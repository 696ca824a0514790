package data

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
func readPictureArray(s *byteSource, f format) (*pictures, error) {
	a, err := f.header(s)
	if err != nil {
		return nil, err
	}
	p := &pictures{}
	if p.shape, err = a.pictures(); err != nil {
		return nil, err
	}
	b, err := newArrayReader(a, s)
	if err != nil {
		return nil, err
	}
	p.pixels, err = b.readBytes()
	return p, err
}

// readNPZ reads the images, and perhaps the labels, of NumPy's archive of
// arrays.
func readNPZ(s *byteSource) (*pictures, error) {
	z, err := openNPZ(s)
	if err != nil {
		return nil, err
	}
	if z.isSparse() {
		return nil, errorf(ErrUnsupported, "the archive holds a sparse matrix, which holds no images; give an array of unsigned bytes")
	}
	images, err := z.points()
	if err != nil {
		return nil, err
	}
	var p *pictures
	err = z.read(images, func(s *byteSource) (err error) {
		p, err = readPictureArray(s, formatNPY)
		return err
	})
	if err != nil {
		return nil, err
	}
	labels := z.labels()
	if labels == nil {
		return p, nil
	}
	err = z.read(labels, func(s *byteSource) error {
		b, err := npyLabels(s)
		if err == nil {
			p.labels, err = b.readLabels()
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
