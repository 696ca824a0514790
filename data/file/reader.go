package file

import (
	"cne/data"
	"cne/internal/parallel"
)

// A reader reads the points of one file. Its format opens it once the head of the file has
// been read.
type reader interface {
	// about returns the head of the points.
	about() *head
	// read fills dst with as many whole rows as it has room for, and returns the number of
	// their values. It returns io.EOF with the last rows or after them. Other errors may also
	// come with values; these values are valid.
	read(dst []float32) (int, error)
	// skip skips the next rows, or all that are left if fewer, and returns their number. The
	// error for fewer is nil or io.EOF. It must be called before the first read.
	skip(rows int) (passed int, err error)
}

// A head has what is known about the points of a file before they are read. A format sets
// the fields that it knows. The zero values mean that nothing is known.
type head struct {
	name string // path of the file; may be empty
	in   *Input // source of the values

	n        int           // points, unless open
	open     bool          // their number is not known
	width    int           // values of a point
	shape    []int         // of the array; nil for tables
	dtype    string        // the type of its values
	columns  []string      // names of the values; may be nil
	left     []string      // names of columns that are not in Options.Columns
	coded    []coded       // all columns of a table
	used     []data.Coding // of the columns of a table that are not plain numbers
	sources  []string      // the names, or numbers, of the columns of a table with the values
	counted  string        // why the first row, with numbers as points have, is the header; empty for other headers
	doubtful bool          // the first row may be such a header
	indexed  int           // first columns, without names, that are row numbers or names, and are left out
	unnamed  []string      // the numbers of the other first columns without names
	labeled  bool          // the points have labels, in this file or another
	counts   bool          // the values are counts, see package counts
	nonzeros int           // values of sparse points

	// sparse is the reader itself if the points are sparse, and bytes if they are unsigned bytes
	// in an array; otherwise nil.
	sparse *heldRows
	bytes  *arrayReader
	isByte bool // the values are unsigned bytes, in whatever they are stored
	exact  bool // float32 holds all values that may come
	finite bool // no value can be NaN or infinite
	// storage says how the points can stay outside memory. It is InMemory if they cannot.
	storage data.Storage

	lines  *data.Lines // of the points read or skipped; nil unless the file is text
	labels []string    // of the rows read since takeLabels, or of all further rows if they are in a separate array
	member string      // the name of the array within an archive; may be empty
	// beside reads the labels from a separate array or file; nil without. Its errors name it.
	beside func() ([]string, error)

	conversion
}

// A conversion says how values are converted to float32.
type conversion struct {
	offset []float64    // subtracted from each column; nil: nothing
	sample *data.Sample // gets values as they are; nil: none are wanted
	before int          // rows of earlier files
	// table has the value for each byte. nil means the byte's own value.
	table *[256]float32
	// summed reports whether a checksum of the bytes is computed.
	summed bool
	sum    uint32
}

func (h *head) about() *head { return h }

// takeLabels returns the labels of the next rows, or none if the points have no labels.
func (h *head) takeLabels(rows int) []string {
	rows = min(rows, len(h.labels))
	labels := h.labels[:rows]
	h.labels = h.labels[rows:]
	return labels
}

// capacity returns the number of values to allocate memory for after done values. The file's
// size and the part read so far bound it.
func (h *head) capacity(done int) int {
	if h.open {
		return max(h.width, h.in.expectedCap(done)-done)
	}
	left := h.n*h.width - done
	if done == 0 {
		return max(h.step(0), h.in.trusted(left))
	}
	return min(left, max(h.step(done), done, readBuffer))
}

// step returns the number of values that read needs room for after done values; 0 after
// all.
func (h *head) step(done int) int {
	switch {
	case !h.open && done == h.n*h.width:
		return 0
	case h.shape != nil: // an array, which is read value by value
		return 1
	}
	return h.width
}

// explain adds the names of the array and of the file to an error of reading.
func (h *head) explain(err error) error {
	return h.named(inArray(h.member, err))
}

// convertGrain is the number of values that are converted in one piece.
const convertGrain = 1 << 16

// convertAll converts the values in src to float32 on all cores, and adds the values in
// sampled rows to the sample. src starts at value first of all values.
func (h *head) convertAll(t scalarType, dst []float32, src []byte, first int) {
	if h.sample != nil && !h.exact {
		for i := first / h.width; i*h.width < first+len(dst); i++ {
			row := h.sample.Row(h.before + i)
			from := max(0, i*h.width-first)
			for k := from; row != nil && k < min(len(dst), (i+1)*h.width-first); k++ {
				row[first+k-i*h.width] = t.minus(src, k, 0)
			}
		}
	}
	parallel.For(len(dst), convertGrain, func(_, lo, hi int) { h.convertSome(t, dst[lo:hi], src[lo*t.size:], first+lo) })
}

// convertSome is convertAll on one core, without a sample.
func (h *head) convertSome(t scalarType, dst []float32, src []byte, first int) {
	if h.table != nil {
		for i := range dst {
			dst[i] = h.table[src[i]]
		}
		return
	}
	t.float32s(dst, src)
	if h.offset == nil {
		return
	}
	j := first % h.width
	for i := range dst {
		if c := h.offset[j]; c != 0 {
			dst[i] = float32(t.minus(src, i, c))
		}
		if j++; j == h.width {
			j = 0
		}
	}
}
