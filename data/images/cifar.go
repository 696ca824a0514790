package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/data"
	"cne/data/file"
	"cne/internal/kind"
)

// The binary version of CIFAR-10. Each image is a record of its class and of its three
// colour planes.
const (
	cifarSide    = 32
	cifarPlane   = cifarSide * cifarSide
	cifarRecord  = 1 + 3*cifarPlane
	cifarClasses = 10
	cifarMeta    = "batches.meta.txt"
	cifarTest    = "test_batch.bin"
	tarMagic     = "ustar" // from byte 257
	// maxBatch bounds the size of a file in an archive, in bytes, because a few compressed
	// bytes may expand to any size. The published batches have 31 MB.
	maxBatch = 1 << 28
	// maxTarEntries bounds the entries of an archive; the published archive has nine.
	maxTarEntries = 1000
)

// cifarBatches are the names of the files with images, the training images
// first.
var cifarBatches = []string{
	"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", cifarTest,
}

// A cifar collects the files of CIFAR-10, whatever their order.
type cifar struct {
	records map[string][]byte // of the batches
	names   []string          // of the classes; nil without
}

// read reads a batch, or the names of the classes.
func (c *cifar) read(name string, r io.Reader) (err error) {
	defer kind.Catch(&err)
	content, err := io.ReadAll(io.LimitReader(r, maxBatch+1))
	kind.Need(!errors.Is(err, io.ErrUnexpectedEOF), data.ErrFormat, "the file is truncated")
	kind.Check(err)
	if name == cifarMeta {
		for line := range strings.Lines(string(content)) {
			if name := strings.TrimSpace(line); name != "" && !slices.Contains(c.names, name) {
				c.names = append(c.names, name)
			}
		}
		kind.Need(len(c.names) == cifarClasses, data.ErrFormat, "names of classes: got %d different ones, want %d", len(c.names), cifarClasses)
		return nil
	}
	kind.Need(len(content) > 0, data.ErrEmpty, "got no images")
	kind.Need(len(content) <= maxBatch && len(content)%cifarRecord == 0, data.ErrFormat,
		"bytes: got %d, want a multiple of the %d of an image in CIFAR-10's binary version, up to %d", len(content), cifarRecord, maxBatch)
	for i := 0; i < len(content); i += cifarRecord {
		if content[i] >= cifarClasses {
			return kind.Errorf(data.ErrFormat, "class of image %d: got %d, want 0 to %d; is this CIFAR-100?", i/cifarRecord+1, content[i], cifarClasses-1)
		}
	}
	if c.records == nil {
		c.records = make(map[string][]byte)
	}
	c.records[name] = content
	return nil
}

// pictures returns the images of batches, one after the other. split reports whether the
// names of the batches tell which are training images. Without names of classes, labels
// are their numbers.
func (c *cifar) pictures(batches []string, split bool) *pictures {
	for k := len(c.names); k < cifarClasses; k++ {
		c.names = append(c.names, strconv.Itoa(k))
	}
	p := &pictures{shape: shape{cifarSide, cifarSide, 3}}
	for _, name := range batches {
		p.pixels = slices.Grow(p.pixels, len(c.records[name]))
		for record := range slices.Chunk(c.records[name], cifarRecord) {
			p.labels = append(p.labels, c.names[record[0]])
			if split {
				p.train = append(p.train, name != cifarTest)
			}
			red, green, blue := record[1:1+cifarPlane], record[1+cifarPlane:1+2*cifarPlane], record[1+2*cifarPlane:]
			for i := range cifarPlane {
				p.pixels = append(p.pixels, red[i], green[i], blue[i])
			}
		}
	}
	return p
}

// all returns the images of all batches, or an error that names the missing ones.
func (c *cifar) all() (_ *pictures, err error) {
	defer kind.Catch(&err)
	missing := slices.DeleteFunc(slices.Clone(cifarBatches), func(name string) bool { return c.records[name] != nil })
	kind.Need(len(missing) < len(cifarBatches), data.ErrFormat,
		"got an archive without %s, want cifar-10-binary.tar.gz, or a folder for other images", cifarBatches[0])
	kind.Need(len(missing) == 0, data.ErrFormat, "CIFAR-10: got no %s, want all files, or the paths of some", strings.Join(missing, ", "))
	return c.pictures(cifarBatches, true), nil
}

// isCIFARFolder reports whether a folder holds batches of CIFAR-10.
func isCIFARFolder(folder string) bool {
	return slices.ContainsFunc(cifarBatches, func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	})
}

// readFile reads a batch, or the names of the classes, from a file; it may be missing. Errors
// name the file.
func (c *cifar) readFile(ctx context.Context, path string) error {
	in, err := file.OpenInput(ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	return kind.Named(path, c.read(filepath.Base(path), in))
}

// readCIFARFolder reads the folder unpacked from the published archive, or fails as kind.Need
// does.
func readCIFARFolder(ctx context.Context, folder string) *pictures {
	var c cifar
	for _, name := range append([]string{cifarMeta}, cifarBatches...) {
		kind.Check(c.readFile(ctx, filepath.Join(folder, name)))
	}
	p, err := c.all()
	kind.Check(kind.Named(folder, err))
	return p
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
		err = kind.Errorf(data.ErrUnsupported, "got a single image, want a folder of images")
	case strings.HasSuffix(name, ".bin") && !begins("\x93NUMPY") && !begins("PK"):
		p, err = readCIFARFile(ctx, path, in)
	case strings.HasSuffix(name, ".tar") || strings.HasSuffix(name, ".tgz"):
		err = kind.Errorf(data.ErrFormat, "the file is no tar archive, though its name says so")
	}
	return p, kind.Named(path, err)
}

// readCIFARFile reads one batch. The names of the classes come from batches.meta.txt in its
// folder.
func readCIFARFile(ctx context.Context, path string, r io.Reader) (_ *pictures, err error) {
	defer kind.Catch(&err)
	var c cifar
	name := strings.TrimSuffix(filepath.Base(path), ".gz")
	kind.Check(c.read(name, r))
	kind.Check(c.readFile(ctx, filepath.Join(filepath.Dir(path), cifarMeta)))
	return c.pictures([]string{name}, slices.Contains(cifarBatches, name)), nil
}

// readCIFARTar reads the published archive.
func readCIFARTar(in io.Reader) (_ *pictures, err error) {
	defer kind.Catch(&err)
	t := tar.NewReader(in)
	var c cifar
	for entries := 0; ; entries++ {
		header, err := t.Next()
		if err == io.EOF {
			break
		}
		kind.Need(err == nil, data.ErrFormat, "the archive is damaged or ends early (%w); fetch it again", err)
		kind.Need(entries < maxTarEntries, data.ErrUnsupported,
			"got an archive of more than %d entries, want cifar-10-binary.tar.gz, or a folder for other images", maxTarEntries)
		name := path.Base(header.Name)
		if header.Typeflag != tar.TypeReg || name != cifarMeta && !slices.Contains(cifarBatches, name) {
			continue
		}
		kind.Need(c.records[name] == nil && (name != cifarMeta || c.names == nil), data.ErrFormat,
			"got an archive with %s twice, want it once", name)
		kind.Check(kind.Named(name+" in it", c.read(name, t)))
	}
	kind.Got(io.Copy(io.Discard, in)) // the checksum of the compression comes after the archive's end
	return c.all()
}
