package data

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cne/internal/npy"
	"cne/internal/parquet"
)

// This file tells of what kind a file is.

// A format is one of the file formats that are read here.
type format int

const (
	formatText format = iota // CSV, TSV, or a label on each line
	formatIDX
	formatNPY
	formatNPZ
	formatParquet
	formatTar   // of images
	formatBatch // a batch of CIFAR-10
)

// header reads the head of an array; the format is IDX or npy.
func (f format) header(s *byteSource) (array, error) {
	if f == formatNPY {
		return npyHeader(s, false)
	}
	return idxHeader(s)
}

const (
	pngMagic  = "\x89PNG\r\n\x1a\n"
	jpegMagic = "\xff\xd8"
	zipMagic  = "PK\x03\x04"
	tarMagic  = "ustar" // from byte 257
)

// isTar tells whether the first bytes of a file are those of a tar archive.
func isTar(head []byte) bool {
	return len(head) > 257 && bytes.HasPrefix(head[257:], []byte(tarMagic))
}

// isMTX tells whether the first bytes of a file are those of a sparse matrix.
func isMTX(head []byte) bool {
	return len(head) >= len(mtxMagic) && bytes.EqualFold(head[:len(mtxMagic)], []byte(mtxMagic))
}

// archives are kinds of files that people will try, by their first bytes.
var archives = []struct{ magic, advice string }{
	{zipMagic, "a zip archive within a gzip stream, or from a pipe; name the archive itself if it is an npz file, or else unpack it"},
	{"\x89HDF\r\n", "an HDF5 file; of an AnnData file (.h5ad) scripts/h5ad2npy makes points, labels and names, of others save the array with np.save"},
	{parquet.Magic, "a Parquet file within a gzip stream, or from a pipe; name the file itself, unpacked"},
	{"\xfd7zXZ", "compressed with xz; unpack it or compress it with gzip"},
	{"BZh", "compressed with bzip2; unpack it or compress it with gzip"},
	{"(\xb5/\xfd", "compressed with zstd; unpack it or compress it with gzip"},
}

// openFile opens a file and recognises its format; the caller closes it when it
// has been read. Errors name the file.
func openFile(ctx context.Context, path string, images bool) (*byteSource, format, io.Closer, error) {
	s, c, err := openByteSource(ctx, path)
	if err != nil {
		return nil, 0, nil, err
	}
	f, err := recognise(path, s, images)
	if ctx.Err() != nil { // it may have seen too little
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, 0, nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, f, c, nil
}

// recognise finds a file's format: from its first bytes if these are telling,
// and from its name otherwise. The formats of images alone are recognised if
// images are wanted.
func recognise(path string, s *byteSource, images bool) (format, error) {
	head := s.head(512)
	begins := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	name := strings.ToLower(unpackedName(path))
	switch {
	case len(head) == 0:
		return 0, errorf(ErrEmpty, "the file is empty; fetch or write it again")
	case begins(zipMagic) && s.at != nil:
		return formatNPZ, nil
	case begins(parquet.Magic) && s.at != nil && !images:
		return formatParquet, nil
	case images && isTar(head):
		return formatTar, nil
	case images && (begins(pngMagic) || begins(jpegMagic)):
		return 0, errorf(ErrUnsupported, "the file is a single image; name the folder that holds a folder of images for each class")
	case images && strings.HasSuffix(name, ".bin") && !begins(npy.Magic):
		return formatBatch, nil
	case images && (strings.HasSuffix(name, ".tar") || strings.HasSuffix(name, ".tgz")):
		return 0, errorf(ErrFormat, "the file is no tar archive, though its name says so; fetch it again")
	case isMTX(head):
		return 0, errorf(ErrUnsupported, "the file is a sparse matrix (Matrix Market), which is read as counts of genes in cells and is not wanted here; give points")
	case begins(npy.Magic):
		return formatNPY, nil
	case begins("\x00\x00"):
		return formatIDX, nil
	}
	for _, a := range archives {
		if begins(a.magic) {
			return 0, errorf(ErrUnsupported, "the file is %s", a.advice)
		}
	}
	switch {
	case strings.HasSuffix(name, ".npy"):
		return formatNPY, nil
	case strings.HasSuffix(name, ".idx"), strings.HasSuffix(name, "-ubyte"):
		return formatIDX, nil
	case bytes.IndexByte(head, 0) >= 0:
		return 0, errorf(ErrUnsupported, "the file is neither IDX nor npy nor Parquet nor text; convert it to one of these (text in UTF-8)")
	}
	return formatText, nil
}

// findFile returns the path of the first of these files that a folder holds, or
// of the same file compressed, or "".
func findFile(folder string, names ...string) string {
	for _, name := range names {
		for _, suffix := range []string{"", ".gz"} {
			path := filepath.Join(folder, name+suffix)
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				return path
			}
		}
	}
	return ""
}

// unpackedName returns the name of a file without the ending of a compressed one.
func unpackedName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".gz") }

// nameOf makes a name for the data out of a path.
func nameOf(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // so that "." has a name
	}
	name := unpackedName(path)
	if stem := strings.TrimSuffix(name, filepath.Ext(name)); stem != "" {
		return stem
	}
	return name
}

// TrimEnding takes the ending off the path of a file of points (.npy, .csv, .tsv,
// .txt, .idx or .parquet, and .gz). A name may have other full stops in it.
func TrimEnding(path string) string {
	cut := func(path string, endings ...string) string {
		if e := filepath.Ext(path); slices.Contains(endings, strings.ToLower(e)) && e != filepath.Base(path) {
			return strings.TrimSuffix(path, e)
		}
		return path
	}
	return cut(cut(path, ".gz"), ".npy", ".csv", ".tsv", ".txt", ".idx", ".parquet")
}
