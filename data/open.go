package data

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
)

// Options says how Open and ReadCSV read files that leave something open. The
// zero value recognises everything that can be recognised.
type Options struct {
	// Name replaces the name that Open takes from the first file or folder.
	Name string
	// Labels names files with the labels of the points, in the order of the
	// points: IDX or npy arrays of one dimension, such an array in an npz file,
	// or text with one label on each line. Text may begin with a heading, which
	// is recognised by there being one label too many. It takes the place of the
	// labels that come with the points. ReadCSV does not use it.
	Labels []string
	// LabelColumn is the column of a CSV, TSV or Parquet file that holds the labels:
	// its name in the header, or its number counted from 1 (from the end if
	// negative: -1 is the last). A name is looked for first.
	LabelColumn string
	// Only lists the columns, as LabelColumn does, that are the values of the points,
	// so that others are passed over; empty: all that Drop does not list.
	Only []string
	// Drop lists columns of CSV, TSV and Parquet files, as LabelColumn does, that are
	// passed over.
	Drop []string
	// Header says whether CSV and TSV files begin with a line of names.
	Header Header
	// Separator is the character between the fields of CSV and TSV files: a
	// comma, a semicolon or a tab. 0 guesses from the first line: a tab if one
	// occurs there, else a semicolon, else a comma.
	Separator rune
	// Columns are the names of the values of a point, where points are to be of one
	// kind with those that a model was trained on (see Preprocessing.Reading). Of a
	// table with a header the columns of these names are read, in this order, and
	// others left out; a name that is missing gives ErrShape. Without names, columns
	// are taken as they come. Nil takes all.
	Columns []string
	// Offset is the Offset that the points are to have, a number for each value;
	// another number of values gives ErrShape. With nil, Open and ReadCSV choose
	// one, or none, by what the columns need; OpenBlocks takes none.
	Offset []float64
	// BlocksAbove, if it is above 0, has Open leave points where they are if they have
	// more values each than this, and are at least as many as their values: in plain
	// IDX and npy files, which are read again as often as the points are gone through and
	// must stay the same for as long, or as bytes where arrays of unsigned bytes are
	// compressed. Dataset.Stored has them then. It is the number of principal components
	// that are wanted of points that are not wanted themselves.
	BlocksAbove int
	// Log, if there is one, is told how a file was understood where that may be other
	// than was meant, and what float32 does not keep of the points.
	Log *slog.Logger

	rows []int // those that are wanted, over all files, ascending; nil: all
}

// Header says whether a CSV or TSV file begins with a line of column names.
type Header string

const (
	// HeaderAuto, like an empty Header, takes the first line for names if none
	// of its fields is a number, if Options names a column that occurs in it, or
	// if the fields, three or more, count 0, 1, 2, ….
	HeaderAuto Header = "auto"
	// HeaderPresent takes the first line for names whatever is in it.
	HeaderPresent Header = "present"
	// HeaderNone takes the first line for a point.
	HeaderNone Header = "none"
)

// headers are what Header can say, in the order of Words.
var headers = []Header{HeaderAuto, HeaderPresent, HeaderNone}

// Words returns the words of UnmarshalText: auto, yes and no.
func (Header) Words() []string { return []string{"auto", "yes", "no"} }

// MarshalText implements encoding.TextMarshaler by one of Words.
func (h Header) MarshalText() ([]byte, error) {
	i := slices.Index(headers, h)
	if i < 0 {
		return nil, errorf(ErrOption, "the header setting %q is unknown; write auto, present or none", h)
	}
	return []byte(h.Words()[i]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler; a word that is none of
// Words gives ErrOption.
func (h *Header) UnmarshalText(text []byte) error {
	i := slices.Index(h.Words(), string(text))
	if i < 0 {
		return errorf(ErrOption, "the header setting %q is unknown; write auto, yes or no", text)
	}
	*h = headers[i]
	return nil
}

// A file is one that Open reads, with that of its labels if it has come from
// the folder of a collection.
type file struct{ path, labels string }

// Open reads points from files, one below the other in the order of paths.
// The format of each is recognised from its content and name: IDX (see
// ReadIDX), npy (ReadNPY), or CSV and TSV (ReadCSV), each plain or compressed
// with gzip; Parquet (see ReadParquet); or npz with an array of points named images (or else x or X),
// without a name (arr_0), or alone, and perhaps one of labels named labels (or
// else y); or npz with a matrix in the CSR format as scipy.sparse.save_npz writes it.
// The points of the last stay sparse (Matrix.CSR), at 8 bytes for each value that is not
// 0; columns may be out of order, and values for the same one are added up. Sparse and dense points do not go together.
//
// A folder stands for the four files of MNIST (all 70 000 points), Kuzushiji-49
// (270 912) or Kuzushiji-MNIST (70 000) under their published names, train
// before test, with labels. Values take 4 bytes each in memory whatever they
// take in the files: MNIST 220 MB, Kuzushiji-49 850 MB.
//
// Labels come from Options.LabelColumn, from Options.Labels, from such a folder
// or from an npz file; all files must have them or none. The error names the
// file and is of one of this package's kinds or of the file system's. When ctx ends, so
// does reading, with its error.
func Open(ctx context.Context, paths []string, opt Options) (*Dataset, error) {
	files, err := findFiles(paths, opt)
	if err != nil {
		return nil, err
	}

	ds, err := openStored(ctx, files, opt)
	if ds == nil && err == nil {
		ds, err = openWhole(ctx, files, opt)
	}
	if err != nil {
		return nil, err
	}
	if ds.Name = opt.Name; ds.Name == "" {
		ds.Name = nameOf(paths[0])
	}
	if len(opt.Labels) > 0 {
		n, _ := ds.Dims()
		labels, err := readLabelFiles(ctx, opt.Labels, n)
		if err != nil {
			return nil, err
		}
		ds.Labels = NewLabels(labels)
	}
	return ds, nil
}

// openWhole is Open for points that are read into memory, but for their name and for
// labels from files of their own.
func openWhole(ctx context.Context, files []file, opt Options) (*Dataset, error) {
	var b builder
	var sampled *sample
	parts, err := readFiles(ctx, files, opt, &b, &sampled)
	if err != nil {
		return nil, err
	}
	offset := opt.Offset
	if sampled != nil && offset == nil {
		columns := sampled.inexact()
		offset = chooseOffsets(columns)
		once := offset != nil && !canReadAgain(files)
		if once {
			offset = nil
		}
		if offset != nil {
			second := opt
			second.Offset, second.Log = offset, nil
			b.reset()
			if parts, err = readFiles(ctx, files, second, &b, nil); err != nil {
				return nil, err
			}
		}
		remarkRounding(opt.Log, columns, parts[0].columns, offset, once)
	}
	return assemble("", &b, offset, parts)
}

// readFiles reads the points of all files into b, and a sample of them, if one is
// wanted, into sampled.
func readFiles(ctx context.Context, files []file, opt Options, b *builder, sampled **sample) ([]part, error) {
	opened, err := openStreams(ctx, files, opt)
	if err != nil {
		return nil, err
	}
	defer opened.close()

	// One piece of memory for all files, rather than a growing one that is
	// copied for each: the headers of arrays tell how much it takes.
	if len(files) > 1 && opt.rows == nil {
		b.reserve(opened.room())
	}
	var first *stream
	var parts []part
	before := 0
	for _, f := range files {
		st, err := opened.next()
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = st
		}
		err = st.follows(first)
		if err == nil {
			st.remark(opt, st == first)
			if _, sparse := st.values.(*csrReader); opt.Offset == nil && sampled != nil && !sparse {
				if *sampled == nil {
					*sampled = newSample(st.d)
					(*sampled).of = opt.rows
				}
				st.values.relate(relation{sample: *sampled, before: before})
			}
			if opt.rows == nil {
				err = st.readAll(b)
			} else if err = st.pair(ctx, f); err == nil {
				err = st.readSome(b, opt.rows, before)
			}
		}
		st.close()
		if err != nil {
			return nil, err
		}
		if st.labeled && st.labels == nil && opt.rows == nil {
			if st.labels, err = readLabelFiles(ctx, []string{f.labels}, st.rows); err != nil {
				return nil, err
			}
		}
		before += st.rows
		parts = append(parts, st.part)
	}
	return parts, nil
}

// canReadAgain tells whether files give the same once more, as pipes do not.
func canReadAgain(files []file) bool {
	return !slices.ContainsFunc(files, func(f file) bool {
		info, err := os.Stat(f.path)
		return err != nil || !info.Mode().IsRegular()
	})
}

// check refuses options that have no meaning.
func (opt Options) check() error {
	if opt.Header != "" {
		if _, err := opt.Header.MarshalText(); err != nil {
			return err
		}
	}
	switch opt.Separator {
	case 0, ',', ';', '\t':
	default:
		return errorf(ErrOption, "the separator %q is not supported; use a comma, a semicolon or a tab, or leave it out to have it guessed", opt.Separator)
	}
	if opt.LabelColumn != "" && len(opt.Labels) > 0 {
		return errorf(ErrOption, "labels are asked for twice, from column %q and from the file %s; give one of the two", opt.LabelColumn, opt.Labels[0])
	}
	return nil
}

// A collection is a set of images that is published as four files of certain
// names, which may be compressed with gzip: images and labels of the training
// part, then of the test part.
type collection struct {
	name  string
	files [2][2]string
}

// collections are those that a folder may hold. Fashion-MNIST and others have
// the names of MNIST's files.
var collections = []collection{
	{"MNIST", [2][2]string{
		{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
		{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
	}},
	{"Kuzushiji-49", [2][2]string{
		{"k49-train-imgs.npz", "k49-train-labels.npz"},
		{"k49-test-imgs.npz", "k49-test-labels.npz"},
	}},
	{"Kuzushiji-MNIST", [2][2]string{
		{"kmnist-train-imgs.npz", "kmnist-train-labels.npz"},
		{"kmnist-test-imgs.npz", "kmnist-test-labels.npz"},
	}},
}

// in returns the files of the collection in a folder, and the name of the first
// that is not there.
func (c *collection) in(folder string) (found []file, missing string) {
	for _, pair := range c.files {
		f := file{findFile(folder, pair[0]), findFile(folder, pair[1])}
		for i, path := range []string{f.path, f.labels} {
			if path == "" && missing == "" {
				missing = pair[i]
			}
		}
		if f != (file{}) {
			found = append(found, f)
		}
	}
	return found, missing
}

// findFiles checks the arguments of Open and returns the files meant.
func findFiles(paths []string, opt Options) ([]file, error) {
	if len(paths) == 0 {
		return nil, errorf(ErrOption, "no data file is named; name at least one file or folder")
	}
	if err := opt.check(); err != nil {
		return nil, err
	}
	return expand(paths)
}

// expand replaces folders by the files of the collections in them.
func expand(paths []string) ([]file, error) {
	var files []file
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("the data cannot be read (%w); check the path", err)
		}
		if !info.IsDir() {
			files = append(files, file{path: path})
			continue
		}
		inside, err := expandFolder(path)
		if err != nil {
			return nil, err
		}
		files = append(files, inside...)
	}
	return files, nil
}

// expandFolder returns the files of the one collection that a folder holds.
func expandFolder(path string) ([]file, error) {
	var whole *collection
	var files []file
	var partial error
	for i := range collections {
		c := &collections[i]
		found, missing := c.in(path)
		switch {
		case missing == "" && whole != nil:
			return nil, errorf(ErrUnsupported, "%s: the folder holds both %s and %s; name the files one by one, or put each into a folder of its own", path, whole.name, c.name)
		case missing == "":
			whole, files = c, found
		case len(found) > 0 && partial == nil:
			partial = errorf(ErrUnsupported, "%s: of %s's four files, %s is not in the folder; fetch it, or name the files one by one", path, c.name, missing)
		}
	}
	switch {
	case whole != nil:
		return files, nil
	case partial != nil:
		return nil, partial
	case findFile(path, mtxFiles...) != "":
		return nil, errorf(ErrUnsupported, "%s: the folder holds a sparse matrix (Matrix Market), which is read as counts of genes in cells and is not wanted here; give points", path)
	}
	return nil, errorf(ErrUnsupported, "%s: a folder is read if it holds the four files of MNIST, Kuzushiji-49 or Kuzushiji-MNIST under their published names, such as train-images-idx3-ubyte.gz, or counts of single-cell sequencing (matrix.mtx or matrix.mtx.gz), and it does not; name the files one by one", path)
}

// readArrayPoints makes a dataset of one array.
func readArrayPoints(r io.Reader, f format) (*Dataset, error) {
	return readOne(r, Options{}, func(st *stream, s *byteSource, _ Options) error { return st.beginArray(s, f) })
}

// readOne makes a dataset of what r holds, of which begin reads the head.
func readOne(r io.Reader, opt Options, begin func(*stream, *byteSource, Options) error) (*Dataset, error) {
	seeker, again := r.(io.Seeker)
	start := int64(0)
	if again {
		var err error
		start, err = seeker.Seek(0, io.SeekCurrent)
		again = err == nil
	}
	var b builder
	read := func(offset []float64, sampled **sample) (*stream, error) {
		s, err := newByteSource(context.Background(), r)
		if err != nil {
			return nil, err
		}
		st := new(stream)
		o := opt
		o.Offset = offset
		if err := begin(st, s, o); err != nil {
			return nil, err
		}
		if err := st.relate(o); err != nil {
			return nil, err
		}
		if sampled != nil {
			*sampled = newSample(st.d)
			st.values.relate(relation{sample: *sampled})
		}
		return st, st.readAll(&b)
	}
	if opt.Offset != nil {
		st, err := read(opt.Offset, nil)
		if err != nil {
			return nil, err
		}
		st.remark(opt, true)
		return assemble("", &b, opt.Offset, []part{st.part})
	}
	var sampled *sample
	st, err := read(nil, &sampled)
	if err != nil {
		return nil, err
	}
	st.remark(opt, true)
	columns := sampled.inexact()
	offset := chooseOffsets(columns)
	once := offset != nil && !again
	if once {
		offset = nil
	}
	if offset != nil {
		if _, err := seeker.Seek(start, io.SeekStart); err != nil {
			return nil, fmt.Errorf("reading failed: %w", err)
		}
		b.reset()
		if st, err = read(offset, nil); err != nil {
			return nil, err
		}
	}
	remarkRounding(opt.Log, columns, st.columns, offset, once)
	return assemble("", &b, offset, []part{st.part})
}
