package file

import (
	"log/slog"
	"slices"
	"strings"

	"cne/data"
	"cne/internal/kind"
	"cne/internal/text"
)

// Options says how to read files where their content leaves a choice. The zero value
// detects as much as possible. The tags are the names in configurations: see
// internal/option.
type Options struct {
	// Name replaces the name that Read takes from the first file or folder.
	Name string
	// Labels names files with the labels of the points, in the order of the points: IDX or
	// npy arrays of one dimension, such an array in an npz file, or text with one label on
	// each line; or FILE:COLUMN for a column of a table. Text may begin with a heading; it is
	// detected if there is one label too many. These labels replace labels in the files of
	// points. If there are 50 points or more and most labels are unique, the error wraps
	// data.ErrLabels.
	Labels []string `key:"labels" as:"paths"`
	// LabelColumn is the column of a CSV, TSV or Parquet file that holds the labels: its name
	// in the header, or its number counted from 1 (negative from the end: -1 is the last).
	// Names are tried first.
	LabelColumn string `key:"label_column,null" as:"column"`
	// Embedding says that a column LabelColumn of a table has the labels, unless there are
	// others, and that a column NameColumn is left out.
	Embedding bool
	// Layer and Obsm say which matrix of a file of single cells (.h5ad) is read: a layer, "X"
	// or "raw", or a member of obsm. Of a file of 10x with several genomes (.h5), Layer names
	// one. If both are empty, it is the first with counts of X, raw/X and the layer counts,
	// or X if none has counts. The error wraps data.ErrOption for other files, and for both.
	Layer string `key:"layer,null" as:"text"`
	Obsm  string `key:"obsm,null" as:"text"`
	// Only lists the columns with the values of the points, in their order, each given as in
	// LabelColumn. If empty, all columns are values except those in Drop.
	Only []string `key:"columns" as:"columns"`
	// Drop lists columns of CSV, TSV and Parquet files that are not values of the points, each
	// given as in LabelColumn, which may be among them.
	Drop []string `key:"drop" as:"columns"`
	// DropText leaves out columns of tables that are not numbers, or have no values, unless
	// other options name them; tables are read twice. Without it, reading returns a
	// *TextError for them, unless there is a LabelColumn and they are words or dates: these
	// are left out, too.
	DropText bool `key:"drop_text"`
	// Dates lists columns of dates or times that become numbers: days since 1970, or of a day.
	// Otherwise such columns are text. Each is given as in LabelColumn.
	Dates []string `key:"dates" as:"columns"`
	// Categories lists columns that become a column of 0 and 1 for each of their values, at
	// most 1000. Each is given as in LabelColumn. The files are read twice.
	Categories []string `key:"categories" as:"columns"`
	// NA lists further words for a missing value, and numbers, which may be written in any
	// way: -999 is also -999.0.
	NA []string `key:"na" as:"words"`
	// Codings says how columns become numbers, as Dataset.Codings of earlier points.
	Codings []data.Coding
	// AllowMissing lets Read and ReadRows return values that are NaN or infinite. The caller
	// must then remove them with Dataset.DropMissing or Matrix.FillMissing. Points are read
	// into memory.
	AllowMissing bool
	// Header says whether CSV and TSV files begin with a line of names.
	Header Header `key:"header"`
	// Columns are the names of the columns to read, in this order, such as the columns that a
	// model was trained on. They apply to tables with a header; for a missing name the error
	// wraps data.ErrShape. Other files are read unchanged. Nil reads all columns.
	Columns []string
	// Offset is the Offset of the points, with a number for each value; for another length
	// the error wraps data.ErrShape. If nil, Read chooses an Offset if the columns need one,
	// and Open uses none.
	Offset []float64
	// StreamAbove, if above 0, makes Read leave points in Dataset.Stored if each has more
	// than StreamAbove values, and at most as many as there are points. Set it to the number
	// of principal components if the points themselves are not needed. Points in plain IDX
	// and npy files stay in the files; every pass reads them again, and they must not
	// change. Points from compressed arrays of unsigned bytes are held as bytes.
	StreamAbove int
	// StreamFrom is the least total number of values for StreamAbove; 0 means 1<<22 (16
	// MiB). Fewer values are read into memory, because this is faster.
	StreamFrom int
	// Log, if not nil, reports how an ambiguous file was read, and which differences between
	// values float32 does not keep.
	Log *slog.Logger

	later bool // what logReading logs is logged after reading
}

// Header says whether a CSV or TSV file begins with a line of column names.
type Header string

const (
	// HeaderAuto, like an empty Header, treats the first line as names in three cases: none
	// of its fields is a number, Options names one of its fields, or it has three or more
	// fields that count 0, 1, 2, ….
	HeaderAuto Header = "auto"
	// HeaderPresent always treats the first line as names.
	HeaderPresent Header = "yes"
	// HeaderNone treats the first line as a point.
	HeaderNone Header = "no"
)

// headerKeys says in messages how a user sets the Header.
const headerKeys = "(data.header, or --header of cne project)"

// Words returns the words that UnmarshalText accepts.
func (Header) Words() []string {
	return []string{string(HeaderAuto), string(HeaderPresent), string(HeaderNone)}
}

// UnmarshalText implements encoding.TextUnmarshaler. For a word that is not one of Words
// the error wraps data.ErrOption.
func (h *Header) UnmarshalText(word []byte) error {
	return kind.ParseWord(h, word, data.ErrOption, "header")
}

// check returns an error for invalid options.
func (o *Options) check() (err error) {
	defer kind.Catch(&err)
	if o.Header != "" {
		kind.Check(new(Header).UnmarshalText([]byte(o.Header)))
	}
	kind.Need(o.Layer == "" || o.Obsm == "", data.ErrOption, "data.layer and data.obsm: got %q and %q, want one of the two", o.Layer, o.Obsm)
	if o.LabelColumn != "" && len(o.Labels) > 0 {
		return errorf(data.ErrOption, "labels: got column %q and the file %s, want one of the two", o.LabelColumn, o.Labels[0])
	}
	return nil
}

// CheckColumns returns an error for columns to take or drop, categories and dates, which only
// tables have, and, unless labeled, for a column of labels.
func (o *Options) CheckColumns(labeled bool) error {
	if (labeled || o.LabelColumn == "") && len(o.Drop)+len(o.Only)+len(o.Categories)+len(o.Dates) == 0 {
		return nil
	}
	return errorf(data.ErrOption, "columns: got a label column or columns to take or drop, categories or dates, want a table (CSV or Parquet), not an array or cells")
}

// marks are the words and numbers of Options.NA.
type marks struct {
	words   []string
	numbers []float32
}

func newMarks(words []string) marks {
	m := marks{words: words}
	for _, word := range words {
		if v, err := text.ParseFloat(strings.TrimSpace(word), 32); err == nil {
			m.numbers = append(m.numbers, float32(v))
		}
	}
	return m
}

// has reports whether a field stands for a missing value.
func (m *marks) has(field string) bool {
	field = strings.TrimSpace(field)
	if m.numbers != nil && !slices.Contains(m.words, field) {
		v, err := text.ParseFloat(field, 32)
		return err == nil && slices.Contains(m.numbers, float32(v))
	}
	return slices.Contains(m.words, field)
}
