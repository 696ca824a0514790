package file

import (
	"log/slog"
	"slices"

	"cne/data"
	"cne/internal/text"
)

// Options says how files are read that leave something open. The zero value recognizes
// everything that can be recognized.
type Options struct {
	// Name replaces the name that Read takes from the first file or folder.
	Name string
	// Labels names files with the labels of the points, in the order of the
	// points: IDX or npy arrays of one dimension, such an array in an npz file,
	// or text with one label on each line; or FILE:COLUMN for a column of a table.
	// Text may begin with a heading, which is recognized by there being one label
	// too many. They replace the labels that come with the points. Labels of 50
	// points or more, of which most have a text of their own, give ErrLabels.
	Labels []string
	// LabelColumn is the column of a CSV, TSV or Parquet file that holds the labels:
	// its name in the header, or its number counted from 1 (from the end if
	// negative: -1 is the last). A name is looked for first.
	LabelColumn string
	// Only lists the columns, as LabelColumn does, that are the values of the points;
	// empty: all that Drop does not list.
	Only []string
	// Drop lists columns of CSV, TSV and Parquet files, as LabelColumn does, that are
	// not read.
	Drop []string
	// DropText leaves columns of tables out that are not numbers, unless other options name
	// them. They give a *TextError otherwise.
	DropText bool
	// AllowMissing lets Read and ReadRows return values that are NaN or infinite, which
	// Dataset.DropMissing or FillMissing then has to remove. Points are read into memory.
	AllowMissing bool
	// Header says whether CSV and TSV files begin with a line of names.
	Header Header
	// Separator is the character between the fields of CSV and TSV files: a
	// comma, a semicolon or a tab. 0 guesses from the first line: a tab if one
	// occurs there, else a semicolon, else a comma.
	Separator rune
	// Columns are the names of the columns to read, in this order, such as those a model was
	// trained on. They apply to tables with a header; a missing name gives ErrShape. Other
	// files are read as they are. Nil reads all columns.
	Columns []string
	// Offset is the Offset that the points are to have, a number for each value;
	// another number of values gives ErrShape. With nil, Read chooses
	// one, or none, by what the columns need; Open takes none.
	Offset []float64
	// StreamAbove, if it is above 0, has Read leave points where they are if they have
	// more values each than this, and are at least as many as their values: in plain
	// IDX and npy files, which are read again as often as the points are gone through and
	// must stay the same for as long, or as bytes where arrays of unsigned bytes are
	// compressed. Dataset.Stored has them then. It is the number of principal components
	// that are wanted of points that are not wanted themselves.
	StreamAbove int
	// StreamFrom is the total number of values from which StreamAbove applies; 0 means 1<<22
	// (16 MiB). Fewer values are read into memory, which is faster.
	StreamFrom int
	// Log, if not nil, reports how a file was understood where that may be other
	// than was meant, and what float32 does not keep of the points.
	Log *slog.Logger
}

// Header says whether a CSV or TSV file begins with a line of column names.
type Header string

const (
	// HeaderAuto, like an empty Header, takes the first line for names if none
	// of its fields is a number, if Options names a column that occurs in it, or
	// if the fields, three or more, count 0, 1, 2, ….
	HeaderAuto Header = "auto"
	// HeaderPresent takes the first line for names whatever is in it.
	HeaderPresent Header = "yes"
	// HeaderNone takes the first line for a point.
	HeaderNone Header = "no"
)

// Words returns the words of UnmarshalText.
func (Header) Words() []string {
	return []string{string(HeaderAuto), string(HeaderPresent), string(HeaderNone)}
}

// UnmarshalText implements encoding.TextUnmarshaler; a word that is not one of
// Words gives ErrOption.
func (h *Header) UnmarshalText(word []byte) error {
	if !slices.Contains(h.Words(), string(word)) {
		return errorf(data.ErrOption, "header: got %q, want auto, yes or no", word)
	}
	*h = Header(word)
	return nil
}

// check refuses options that have no meaning.
func (o *Options) check() error {
	if o.Header != "" {
		if err := new(Header).UnmarshalText([]byte(o.Header)); err != nil {
			return err
		}
	}
	switch o.Separator {
	case 0, ',', ';', '\t':
	default:
		return errorf(data.ErrOption, "separator: got %q, want a comma, a semicolon or a tab", o.Separator)
	}
	if o.LabelColumn != "" && len(o.Labels) > 0 {
		return errorf(data.ErrOption, "labels: got column %q and the file %s, want one of the two", o.LabelColumn, o.Labels[0])
	}
	return nil
}

// logReading logs what a person may not expect of how a file is read. Which columns
// are taken is said of the first file only: others have the same.
func (o *Options) logReading(h *head, first bool) {
	if o.Log == nil {
		return
	}
	if h.counted {
		o.Log.Info("the first line counts 0, 1, 2, … and is taken for column names; if it is a point, say that there is no header", "file", h.name)
	}
	if h.indexed && first {
		o.Log.Info("the first column has no name and holds row numbers or names; it is left out, unless columns are listed", "file", h.name)
	}
	switch {
	case first && len(o.Columns) == 0 && len(h.left) > 0:
		o.Log.Info("columns that are taken for no part of the points are left out", "file", h.name, "columns", text.Few(h.left, text.Printable))
	case !first || len(o.Columns) == 0:
	case h.columns == nil:
		o.Log.Info("the columns have no names and are taken in the order of training", "file", h.name)
	case len(h.left) > 0:
		o.Log.Info("columns that were not trained on are left out", "file", h.name, "columns", text.Few(h.left, text.Printable))
	}
}
