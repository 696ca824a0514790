package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/data"
	"cne/data/file"
)

// The binary version of CIFAR-10: each image is a record of its class and of
// the three planes of its colours.
const (
	cifarSide    = 32
	cifarPlane   = cifarSide * cifarSide
	cifarRecord  = 1 + 3*cifarPlane
	cifarClasses = 10
	cifarMeta    = "batches.meta.txt"
	cifarTest    = "test_batch.bin"
	// maxMeta bounds the file with the names of the classes.
	maxMeta  = 1 << 16
	tarMagic = "ustar" // from byte 257
	// maxTarEntry bounds a batch in an archive, whose header may claim any
	// size for a few bytes that expand; the published batches have 31 MB.
	maxTarEntry = 1 << 28
	// maxTarEntries bounds the entries of an archive, of which the published
	// one has nine.
	maxTarEntries = 1000
)

// cifarBatches are the names of the files with images, the training images
// first.
var cifarBatches = []string{
	"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", cifarTest,
}

// A cifarBatch is what one of these files holds.
type cifarBatch struct {
	class  []byte // of each image
	pixels []byte
}

// readCIFARBatch reads records to the end of the source.
func readCIFARBatch(r io.Reader) (*cifarBatch, error) {
	b := &cifarBatch{}
	record := make([]byte, cifarRecord)
	for {
		n, err := io.ReadFull(r, record)
		if err == io.ErrUnexpectedEOF {
			return nil, errorf(data.ErrFormat, "the file ends %d bytes into image %d (counted from 1): its length is no multiple of the %d of a CIFAR-10 image; fetch it again, in the binary version of CIFAR-10", n, len(b.class)+1, cifarRecord)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if record[0] >= cifarClasses {
			return nil, errorf(data.ErrFormat, "image %d (counted from 1) has the class %d, and CIFAR-10 has 0 to %d; is this the binary version of CIFAR-10, and not CIFAR-100?", len(b.class)+1, record[0], cifarClasses-1)
		}
		b.class = append(b.class, record[0])
		red, green, blue := record[1:1+cifarPlane], record[1+cifarPlane:1+2*cifarPlane], record[1+2*cifarPlane:]
		for i := range cifarPlane {
			b.pixels = append(b.pixels, red[i], green[i], blue[i])
		}
	}
	if len(b.class) == 0 {
		return nil, errorf(data.ErrEmpty, "the file holds no images; fetch it again")
	}
	return b, nil
}

// readCIFARNames reads the names of the classes.
func readCIFARNames(r io.Reader) ([]string, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxMeta))
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(content)) {
		if name := strings.TrimSpace(line); name != "" {
			names = append(names, name)
		}
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != cifarClasses || len(names) != cifarClasses {
		return nil, errorf(data.ErrFormat, "the file has %d lines, and the classes of CIFAR-10 need %d different names, each on its line; fetch it again", len(names), cifarClasses)
	}
	return names, nil
}

// joinCIFAR makes pictures of batches; train tells which of them are training
// images, and is nil if that is unknown. The names of the classes, if nil, are
// their numbers.
func joinCIFAR(batches []*cifarBatch, train []bool, names []string) *pictures {
	if names == nil {
		for c := range cifarClasses {
			names = append(names, strconv.Itoa(c))
		}
	}
	p := &pictures{shape: shape{cifarSide, cifarSide, 3}}
	images := make([][]byte, len(batches))
	for i, b := range batches {
		images[i] = b.pixels
		for _, c := range b.class {
			p.labels = append(p.labels, names[c])
			if train != nil {
				p.train = append(p.train, train[i])
			}
		}
	}
	p.pixels = images[0]
	if len(images) > 1 {
		p.pixels = slices.Concat(images...)
	}
	return p
}

// cifarFiles collects the files of CIFAR-10, whatever their order.
type cifarFiles struct {
	batch map[string]*cifarBatch
	names []string
}

// isCIFARFile tells whether a file of this name is one to be read.
func isCIFARFile(name string) bool {
	return name == cifarMeta || slices.Contains(cifarBatches, name)
}

func (c *cifarFiles) read(name string, s io.Reader) (err error) {
	if name == cifarMeta {
		c.names, err = readCIFARNames(s)
		return err
	}
	if c.batch == nil {
		c.batch = make(map[string]*cifarBatch)
	}
	c.batch[name], err = readCIFARBatch(s)
	return err
}

// pictures joins all batches, or tells which are missing.
func (c *cifarFiles) pictures() (*pictures, error) {
	var missing []string
	var batches []*cifarBatch
	var train []bool
	for _, name := range cifarBatches {
		b := c.batch[name]
		if b == nil {
			missing = append(missing, name)
		}
		batches = append(batches, b)
		train = append(train, name != cifarTest)
	}
	switch {
	case len(missing) == len(cifarBatches):
		return nil, errorf(data.ErrFormat, "the archive holds no %s; fetch cifar-10-binary.tar.gz, the binary version of CIFAR-10, or unpack an archive of other images", missing[0])
	case len(missing) > 0:
		return nil, errorf(data.ErrFormat, "of CIFAR-10's files %s is missing; fetch them again, or name those that are there one by one", strings.Join(missing, ", "))
	}
	return joinCIFAR(batches, train, c.names), nil
}

// isCIFARFolder tells whether a folder holds batches of CIFAR-10.
func isCIFARFolder(folder string) bool {
	for _, name := range cifarBatches {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// readCIFARFolder reads the folder unpacked from the published archive.
func readCIFARFolder(ctx context.Context, folder string) (*pictures, error) {
	var c cifarFiles
	for _, name := range append([]string{cifarMeta}, cifarBatches...) {
		path := filepath.Join(folder, name)
		in, err := file.OpenInput(ctx, path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		err = c.read(name, in)
		in.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	p, err := c.pictures()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return p, nil
}

// readCIFAR reads the published archive or one batch; it returns nil for another file.
func readCIFAR(ctx context.Context, path string) (*pictures, error) {
	in, err := file.OpenInput(ctx, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	head := in.Peek(512)
	begins := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	name := strings.ToLower(strings.TrimSuffix(path, ".gz"))
	var p *pictures
	switch {
	case len(head) == 0:
	case len(head) > 257 && bytes.HasPrefix(head[257:], []byte(tarMagic)):
		p, err = readCIFARTar(in)
	case begins(pngMagic) || begins(jpegMagic):
		err = errorf(data.ErrUnsupported, "the file is a single image; name the folder that holds a folder of images for each class")
	case strings.HasSuffix(name, ".bin") && !begins("\x93NUMPY") && !begins("PK"):
		p, err = readCIFARFile(ctx, path, in)
	case strings.HasSuffix(name, ".tar") || strings.HasSuffix(name, ".tgz"):
		err = errorf(data.ErrFormat, "the file is no tar archive, though its name says so; fetch it again")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// readCIFARFile reads one batch. The names of the classes come from beside it.
func readCIFARFile(ctx context.Context, path string, r io.Reader) (*pictures, error) {
	b, err := readCIFARBatch(r)
	if err != nil {
		return nil, err
	}
	var c cifarFiles
	meta, err := file.OpenInput(ctx, filepath.Join(filepath.Dir(path), cifarMeta))
	switch {
	case err == nil:
		err = c.read(cifarMeta, meta)
		meta.Close()
		if err != nil {
			return nil, fmt.Errorf("the names of the classes in %s beside it: %w", cifarMeta, err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	var train []bool
	if name := strings.TrimSuffix(filepath.Base(path), ".gz"); slices.Contains(cifarBatches, name) {
		train = []bool{name != cifarTest}
	}
	return joinCIFAR([]*cifarBatch{b}, train, c.names), nil
}

// readCIFARTar reads the published archive.
func readCIFARTar(in io.Reader) (*pictures, error) {
	t := tar.NewReader(in)
	var c cifarFiles
	seen := make(map[string]bool)
	for entries := 0; ; entries++ {
		header, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errorf(data.ErrFormat, "the archive is damaged or ends early (%w); fetch it again", err)
		}
		if entries == maxTarEntries {
			return nil, errorf(data.ErrUnsupported, "the archive has more than %d entries, so it is not CIFAR-10's binary version; unpack it, and name the folder", maxTarEntries)
		}
		name := path.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !isCIFARFile(name) {
			continue
		}
		if seen[name] {
			return nil, errorf(data.ErrFormat, "the archive holds %s twice; fetch it again", name)
		}
		seen[name] = true
		if header.Size > maxTarEntry {
			return nil, errorf(data.ErrFormat, "the archive's %s claims to have %d bytes, more than any batch of CIFAR-10; fetch it again", name, header.Size)
		}
		if err := c.read(name, t); err != nil {
			return nil, fmt.Errorf("%s in it: %w", name, err)
		}
	}
	// The checksum of the compression comes after the archive's end.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return nil, err
	}
	return c.pictures()
}
