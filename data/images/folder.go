package images

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"cne/data"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/text"
)

const (
	pngMagic  = "\x89PNG\r\n\x1a\n"
	jpegMagic = "\xff\xd8"
	// maxListed is the largest number of files that an error names.
	maxListed = 10
	// maxPixels bounds the pixels of an image in a folder: 8192×8192.
	maxPixels = 1 << 26
	// pixelsPerByte bounds the pixels per byte of a file. Deflate expands by at most 1032,
	// and 8 pixels of a PNG may share a byte. JPEG and photographs as WebP stay far below. An
	// image that claims more is an error before memory is allocated.
	pixelsPerByte = 8 * 1032
	// decodeBytes is the approximate number of bytes of pixels decoded at a time.
	decodeBytes = 1 << 24
)

// folderLayout ends the errors about folders.
const folderLayout = "want PNG, JPEG or WebP files in it, in <class>/, or in train/<class>/ and test/<class>/"

// An imageFile is one image of a folder.
type imageFile struct {
	path  string
	above []string // the names of the folders that contain it, below the first
	fault error    // why it cannot be read, if known without opening it
}

// readable reports whether f may be a supported image.
func readable(f imageFile) bool { return f.fault == nil }

// A listing is the images below a folder, in order.
type listing struct {
	files []imageFile
	empty []imageFile // folders with neither images nor folders, likewise
	// labeled reports whether the innermost folders are classes, split whether the outermost
	// are train and test.
	labeled, split bool
	// stray is an image or folder that is in no class, because of which others have no labels.
	stray string
}

// readImageFolder reads the PNG, JPEG and WebP files of a folder, with a subfolder for
// each class or without classes. It fails as kind.Need does, as the decoder's methods do.
func readImageFolder(ctx context.Context, folder string, opt Options) *pictures {
	list := kind.Got(listImages(folder))
	d := decoder{ctx: ctx, folder: folder, size: opt.Size, skip: opt.SkipBroken || opt.Thumbnail > 0, blank: !opt.SkipBroken,
		thumbnail: opt.Thumbnail, progress: opt.Progress, files: list.files}
	p := d.decodeFiles()
	p.skipped, p.stray = d.skipped, list.stray
	for i, f := range d.files {
		p.names = append(p.names, filepath.ToSlash(d.name(i)))
		if list.labeled && opt.Thumbnail == 0 {
			p.labels = append(p.labels, f.above[len(f.above)-1])
		}
		if list.split && opt.Thumbnail == 0 {
			p.train = append(p.train, f.above[0] == "train")
		}
	}
	return p
}

// listImages finds the images below a folder.
func listImages(folder string) (_ *listing, err error) {
	defer kind.Catch(&err)
	l := &listing{}
	l.add(folder, nil)
	l.findClasses()
	kind.Need(len(l.files) > 0, data.ErrEmpty, "%s: got a folder without images, %s", folder, folderLayout)
	return l, nil
}

// add adds the images of a folder, then of its subfolders. It fails as kind.Need does.
func (l *listing) add(folder string, above []string) {
	folders, files := listFolder(folder)
	if len(folders)+len(files) == 0 && len(above) > 0 {
		l.empty = append(l.empty, imageFile{path: folder, above: above})
	}
	for _, f := range files {
		f.above = above
		l.files = append(l.files, f)
	}
	for _, name := range folders {
		l.add(filepath.Join(folder, name), append(slices.Clone(above), name))
	}
}

// findClasses decides whether the folders are classes, or classes within train and test. It
// fails as kind.Need does.
func (l *listing) findClasses() {
	all := slices.Concat(l.files, l.empty)
	all = slices.DeleteFunc(all, func(f imageFile) bool { return !readable(f) })
	tops := map[string]bool{}
	deepest, depths := imageFile{}, map[int]imageFile{} // one at each depth
	for _, f := range all {
		depths[len(f.above)] = f
		if len(f.above) >= len(deepest.above) {
			deepest = f
		}
		if len(f.above) > 0 {
			tops[f.above[0]] = true
		}
	}
	direct, hasDirect := depths[0]
	split := len(tops) == 2 && tops["train"] && tops["test"]
	kind.Need(!split || !hasDirect, data.ErrUnsupported, // otherwise the split would be lost silently
		"%s: got an image next to the folders train and test, want it in one of their classes", direct.path)
	want := 1
	if split = split && !slices.ContainsFunc(l.files, func(f imageFile) bool { return readable(f) && len(f.above) == 1 }); split {
		want = 2
	}
	inClasses := selection.Count(l.files, func(f imageFile) bool { return len(f.above) == want })
	if len(tops) > 1 && 2*inClasses > len(l.files) {
		if l.stray = deepest.path; hasDirect {
			l.stray = direct.path
		}
	}
	if hasDirect || len(tops) == 0 {
		return
	}
	if len(deepest.above) > want {
		kind.Need(!tops["train"] && !tops["test"], data.ErrUnsupported, "%s: got a folder in the folder of a class, %s",
			filepath.Dir(deepest.path), folderLayout)
		return
	}
	if len(l.empty) > 0 {
		kind.Fail(data.ErrEmpty, "%s: there are no PNG, JPEG or WebP files in the folder", l.empty[0].path)
	}
	l.labeled, l.split, l.stray = true, split, ""
	if split {
		slices.SortStableFunc(l.files, func(a, b imageFile) int {
			return slices.Compare(b.above[:min(1, len(b.above))], a.above[:min(1, len(a.above))])
		})
	}
}

// listFolder returns the names of the folders and the images in a folder, each in natural
// order. It skips hidden names and files that are not images. It fails as kind.Need does.
func listFolder(folder string) (folders []string, images []imageFile) {
	for _, e := range kind.Got(os.ReadDir(folder)) {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		f, mode := imageFile{path: filepath.Join(folder, name)}, e.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := os.Stat(f.path)
			if f.fault = err; err == nil {
				mode = info.Mode().Type()
			}
		}
		ending := strings.ToLower(filepath.Ext(name))
		switch ending {
		case ".png", ".jpg", ".jpeg", ".webp":
			if f.fault == nil && !mode.IsDir() && !mode.IsRegular() {
				f.fault = errors.New("it is no regular file")
			}
		case ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".heic", ".heif", ".avif":
			f.fault = cmp.Or(f.fault, fmt.Errorf("%s is not read; convert it to PNG or JPEG", strings.ToUpper(ending[1:])))
		default:
			if f.fault == nil && !mode.IsDir() {
				continue
			}
		}
		if mode.IsDir() {
			folders = append(folders, name)
		} else {
			images = append(images, f)
		}
	}
	slices.SortFunc(folders, naturally)
	slices.SortFunc(images, func(a, b imageFile) int { return naturally(filepath.Base(a.path), filepath.Base(b.path)) })
	return folders, images
}

// naturally compares names, and compares numbers within them by value: a2 comes before
// a10.
func naturally(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		i, j := digits(x), digits(y)
		if i == 0 || j == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		m, n := strings.TrimLeft(x[:i], "0"), strings.TrimLeft(y[:j], "0")
		if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
			return c
		}
		x, y = x[i:], y[j:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits returns the number of digits at the start of s.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// decodeFiles decodes images of one shape on all cores. If some images are in colour,
// greyscale images become colour too; skipped files are removed from d.
func (d *decoder) decodeFiles() *pictures {
	d.fault, d.found = make([]error, len(d.files)), make([]shape, len(d.files))
	for i := range d.files {
		// Usually the first file decides the shape.
		_, first, err := d.inspect(i)
		if d.fault[i] = err; err == nil {
			if d.thumbnail > 0 && d.size == 0 && max(first.h, first.w) > d.thumbnail {
				d.size = d.thumbnail
				first.h, first.w = d.size, d.size
			}
			d.first, d.want = i, first
			break
		}
	}
	kind.Check(d.ctx.Err())
	if d.want.c == 0 {
		kind.Check(d.unreadable())
	}
	pixels := d.decodeAll()
	if d.colour.Load() {
		d.want.c = 3
		d.colour.Store(false)
		clear(d.fault)
		clear(d.found)
		d.failed.Store(false)
		pixels = d.decodeAll()
	}
	if !d.skip || !slices.Contains(d.fault, nil) {
		kind.Check(d.unreadable())
	}
	kind.Check(d.differing())
	return &pictures{shape: d.want, pixels: d.leaveOut(pixels)}
}

// decodeAll decodes all files into one slice of images, and records their errors.
func (d *decoder) decodeAll() (pixels []byte) {
	size := d.want.bytes()
	step := min(max(16, decodeBytes/size), 1<<12)
	for lo := 0; lo < len(d.files); {
		kind.Check(d.ctx.Err())
		begin := len(pixels)
		if d.failed.Load() {
			begin = 0 // nothing will be kept, but all errors are listed
		}
		// Allocate for at most three times as many images as have been decoded. The sizes that
		// files claim are not trusted.
		n := min(step, len(d.files)-lo, 3*lo+1)
		if need := begin + n*size; need > cap(pixels) {
			larger := make([]byte, begin, min(len(d.files)*size, max(need, 4*begin)))
			copy(larger, pixels)
			pixels = larger
		}
		pixels = pixels[:begin+n*size]
		parallel.For(n, 1, func(_, i, _ int) {
			d.decode(lo+i, pixels[begin+i*size:][:size])
		})
		if d.colour.Load() {
			break // start again
		}
		lo += n
		if d.progress != nil {
			d.progress(lo, len(d.files))
		}
	}
	kind.Check(d.ctx.Err())
	return pixels
}

// leaveOut returns the pixels without the files that cannot be decoded.
func (d *decoder) leaveOut(pixels []byte) []byte {
	size, kept := d.want.bytes(), 0
	for i, fault := range d.fault {
		if fault != nil {
			cause, _ := reason(fault)
			d.skipped = append(d.skipped, fmt.Sprintf("%s (%v)", d.files[i].path, cause))
			if !d.blank {
				continue
			}
			selection.Fill(pixels[i*size:(i+1)*size], 0xff)
		}
		if kept < i {
			copy(pixels[kept*size:(kept+1)*size], pixels[i*size:])
			d.files[kept] = d.files[i]
		}
		kept++
	}
	d.files = d.files[:kept]
	return pixels[:kept*size]
}

// reason returns the error of a file without its path, and whether it comes from the
// system.
func reason(err error) (cause error, ofSystem bool) {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err, true
	}
	return err, false
}

// A decoder brings the images of a folder into one shape.
type decoder struct {
	ctx       context.Context // of all reading
	folder    string
	size      int  // height and width of the result, or 0
	skip      bool // files that cannot be decoded are left out
	blank     bool // or, if skip is true, they are white
	thumbnail int  // Options.Thumbnail
	progress  func(done, all int)
	files     []imageFile
	skipped   []string // the files left out, with the reasons
	first     int      // the file with the wanted shape
	want      shape    // of the result
	fault     []error  // why a file is unreadable, or nil
	found     []shape  // the shape of an image that differs from the wanted shape
	// failed reports whether the images will not be used, because one has another shape, or
	// is unreadable and must not be skipped.
	failed atomic.Bool
	// colour reports whether an image is in colour where greyscale is wanted.
	colour atomic.Bool
}

// name returns the path of file i within the folder.
func (d *decoder) name(i int) string {
	if name, err := filepath.Rel(d.folder, d.files[i].path); err == nil {
		return name
	}
	return d.files[i].path
}

// inspect returns the content of file i, and the shape that its image would have.
func (d *decoder) inspect(i int) (file []byte, s shape, err error) {
	if err = d.files[i].fault; err == nil {
		file, err = ctxio.ReadFile(d.ctx, d.files[i].path)
	}
	if err == nil {
		s, err = pictureShape(file)
	}
	switch {
	case err != nil || d.size == 0:
	case s.h == 1 && s.w == 1:
		err = errors.New("it has a single pixel")
	default:
		s.h, s.w = d.size, d.size
	}
	return file, s, err
}

// decode writes image i to dst, or records its error.
func (d *decoder) decode(i int, dst []byte) {
	file, s, err := d.inspect(i)
	if err == nil {
		if s.c == 1 {
			s.c = d.want.c
		}
		if s != d.want {
			if s.c > d.want.c {
				d.colour.Store(true)
			}
			d.found[i] = s
			d.failed.Store(true)
			return
		}
		err = decodePicture(file, dst, s)
	}
	if err != nil {
		d.fault[i] = err
		if !d.skip {
			d.failed.Store(true)
		}
	}
}

// unreadable is the error for files that cannot be decoded, or nil.
func (d *decoder) unreadable() error {
	var listed []string
	var of error = data.ErrFormat
	for i, err := range d.fault {
		if err == nil {
			continue
		}
		err, ofSystem := reason(err)
		if ofSystem {
			of = err
		}
		listed = append(listed, fmt.Sprintf("%s (%v)", d.name(i), err))
	}
	count := len(listed)
	if count == 0 {
		return nil
	}
	if !d.skip && count < len(d.files) {
		of = errors.Join(ErrBroken, of)
	}
	return kind.Errorf(of, "%s: %d of the %d images cannot be read: %s", d.folder, count, len(d.files), text.List(listed, maxListed, nil))
}

// differing is the error for images of different sizes, or nil.
func (d *decoder) differing() error {
	others := slices.DeleteFunc(slices.Clone(d.found), func(s shape) bool { return s.c == 0 })
	if len(others) == 0 {
		return nil
	}
	at := slices.Index(d.found, others[0])
	return kind.Errorf(ErrSizes, "%s: sizes of images: got %d×%d (%s) and %d×%d (%s; %d of %d differ), want one size, or a size to scale all to",
		d.folder, d.want.w, d.want.h, d.files[d.first].path, d.found[at].w, d.found[at].h, d.files[at].path, len(others), len(d.files))
}

// isWebP reports whether a file begins like the WebP format.
func isWebP(file []byte) bool {
	return len(file) >= 12 && string(file[:4]) == "RIFF" && string(file[8:12]) == "WEBP"
}

// pictureShape returns the shape of the image in a PNG, JPEG or WebP file, from its
// header. It checks that the file can hold such an image.
func pictureShape(file []byte) (shape, error) {
	if len(file) == 0 {
		return shape{}, errors.New("it is empty")
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(file))
	switch {
	case format != "png" && format != "jpeg" && format != "webp":
		return shape{}, errors.New("it is neither PNG nor JPEG nor WebP")
	case err != nil:
		return shape{}, err
	}
	gray := config.ColorModel == color.GrayModel
	if format == "png" {
		gray = file[25]&2 == 0 // the type of colour in the header; bit 1 is set for colour
	}
	s := shape{config.Height, config.Width, 3}
	if orientation(file) >= turned {
		s.h, s.w = s.w, s.h
	}
	if gray {
		s.c = 1
	}
	if s.h < 1 || s.w < 1 {
		return shape{}, fmt.Errorf("it claims to have %d×%d pixels", s.w, s.h)
	}
	// Neither side is above 2³¹.
	if pixels := int64(s.h) * int64(s.w); pixels > maxPixels || pixels > int64(len(file))*pixelsPerByte {
		return shape{}, fmt.Errorf("it claims to have %d×%d pixels, more than are read or than %d bytes can hold", s.w, s.h, len(file))
	}
	return s, nil
}

// decodePicture decodes a file of a shape found by pictureShape, and writes its pixels to
// dst, upright, as writePicture does.
func decodePicture(file, dst []byte, s shape) error {
	m, format, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return err
	}
	if format == "webp" {
		fullRange(m)
	}
	o := orientation(file)
	if o == upright {
		writePicture(dst, m, s)
		return nil
	}
	asTaken, lying := make([]byte, len(dst)), s
	if o >= turned {
		lying.h, lying.w = s.w, s.h
	}
	writePicture(asTaken, m, lying)
	orient(dst, asTaken, s, o)
	return nil
}

// fullRange stretches the values of a lossy WebP image to the range of the other formats.
// Its luminance is from 16 to 235, and its colour differences are from 16 to 240.
func fullRange(m image.Image) {
	y, _ := m.(*image.YCbCr)
	if a, ok := m.(*image.NYCbCrA); ok {
		y = &a.YCbCr
	}
	if y == nil {
		return
	}
	stretch := func(values []byte, low, middle, size int) {
		for i, v := range values {
			values[i] = byte(min(255, max(0, middle+((int(v)-low)*255+(size/2))/size)))
		}
	}
	stretch(y.Y, 16, 0, 219)
	stretch(y.Cb, 128, 128, 224)
	stretch(y.Cr, 128, 128, 224)
}

// writePicture brings an image to a shape and writes the values of its pixels to dst. The
// shape is a square or the image's own shape. Transparent pixels become white.
func writePicture(dst []byte, m image.Image, s shape) {
	if a, ok := m.(*image.NYCbCrA); ok && isSubsampled(&a.YCbCr) {
		smooth := *a
		smooth.YCbCr = *smoothChroma(&a.YCbCr)
		m = &smooth
	}
	if o, ok := m.(interface{ Opaque() bool }); ok && !o.Opaque() {
		m = onWhite(m)
	}
	if y, ok := m.(*image.YCbCr); ok && isSubsampled(y) {
		m = smoothChroma(y)
	}
	if m.Bounds().Dx() != s.w || m.Bounds().Dy() != s.h {
		m = scaled(m, s.w)
	}
	copyPixels(dst, m, s)
}

// isSubsampled reports whether smoothChroma applies.
func isSubsampled(m *image.YCbCr) bool {
	return m.SubsampleRatio == image.YCbCrSubsampleRatio420 && m.Rect.Min == (image.Point{})
}

// smoothChroma gives every pixel of a decoded JPEG or WebP its own colour difference if the file
// has one for 2×2 pixels. Like libjpeg, and hence the programs built on it, it
// interpolates with the weights 3/4 and 1/4 in both directions, with the same rounding.
// Without it, colours in small images would be visibly blocky.
func smoothChroma(m *image.YCbCr) *image.YCbCr {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	cw, ch := (w+1)/2, (h+1)/2
	out := *m
	out.SubsampleRatio = image.YCbCrSubsampleRatio444
	out.CStride = 2 * cw
	sum := make([]int, cw) // of three times a row and the one next to it
	smooth := func(src []byte) []byte {
		dst := make([]byte, 2*cw*2*ch)
		for y := range 2 * ch {
			row := y / 2
			near := max(0, min(ch-1, row-1+2*(y%2)))
			for x := range sum {
				sum[x] = 3*int(src[row*m.CStride+x]) + int(src[near*m.CStride+x])
			}
			line := dst[y*2*cw:]
			for x, v := range sum {
				line[2*x] = byte((3*v + sum[max(0, x-1)] + 8) >> 4)
				line[2*x+1] = byte((3*v + sum[min(cw-1, x+1)] + 7) >> 4)
			}
		}
		return dst
	}
	out.Cb, out.Cr = smooth(m.Cb), smooth(m.Cr)
	return &out
}

// onWhite draws an image on white.
func onWhite(m image.Image) *image.RGBA {
	flat := image.NewRGBA(m.Bounds())
	draw.Draw(flat, flat.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Rect, m, flat.Rect.Min, draw.Over)
	return flat
}

// copyPixels writes the values of an opaque image of the shape s to dst.
func copyPixels(dst []byte, m image.Image, s shape) {
	if gray, ok := m.(*image.Gray); ok && s.c == 1 {
		for y := range s.h {
			copy(dst[y*s.w:(y+1)*s.w], gray.Pix[y*gray.Stride:])
		}
		return
	}
	flat, ok := m.(*image.RGBA)
	if !ok {
		flat = onWhite(m)
	}
	for y := range s.h {
		row := flat.Pix[y*flat.Stride:]
		for x := range s.w {
			copy(dst[:s.c], row[4*x:])
			dst = dst[s.c:]
		}
	}
}

// scaled scales the largest centred square of an image to the given height and width.
func scaled(m image.Image, size int) image.Image {
	b := m.Bounds()
	side := min(b.Dx(), b.Dy())
	from := image.Pt(b.Min.X+(b.Dx()-side)/2, b.Min.Y+(b.Dy()-side)/2)
	to := image.NewRGBA(image.Rect(0, 0, size, size))
	draw.BiLinear.Scale(to, to.Rect, m, image.Rectangle{from, from.Add(image.Pt(side, side))}, draw.Src, nil)
	return to
}

// resize brings all images to the given height and width, in the same way as files of a
// folder.
func (p *pictures) resize(size int) {
	if p.h == size && p.w == size {
		return
	}
	from, to := p.shape, shape{size, size, p.c}
	n := len(p.pixels) / from.bytes()
	pixels := make([]byte, n*to.bytes())
	parallel.For(n, 16, func(_, lo, hi int) {
		m := image.NewRGBA(image.Rect(0, 0, from.w, from.h))
		for i := lo; i < hi; i++ {
			src := p.pixels[i*from.bytes():]
			for at := range from.h * from.w {
				v := src[at*from.c : (at+1)*from.c]
				m.Pix[4*at], m.Pix[4*at+1], m.Pix[4*at+2], m.Pix[4*at+3] = v[0], v[len(v)/2], v[len(v)-1], 255
			}
			copyPixels(pixels[i*to.bytes():(i+1)*to.bytes()], scaled(m, size), to)
		}
	})
	p.shape, p.pixels = to, pixels
}
