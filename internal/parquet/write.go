package parquet

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/snappy"
)

// groupRows is the number of rows in a row group, which has a page for each column.
const groupRows = 1 << 17

// A Field is a column to be written.
type Field struct {
	name     string
	physical int32
	plain    func(b []byte, row int) []byte // appends the value of a row
}

// Floats returns a column of float32; value returns the number of a row.
func Floats(name string, value func(row int) float32) Field {
	return Field{name, typeFloat, func(b []byte, row int) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(value(row)))
	}}
}

// Doubles is a column of 64-bit numbers.
func Doubles(name string, value func(row int) float64) Field {
	return Field{name, typeDouble, func(b []byte, row int) []byte {
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(value(row)))
	}}
}

// Integers is a column of whole numbers.
func Integers(name string, value func(row int) int64) Field {
	return Field{name, typeInt64, func(b []byte, row int) []byte {
		return binary.LittleEndian.AppendUint64(b, uint64(value(row)))
	}}
}

// Texts is a column of texts, in UTF-8.
func Texts(name string, value func(row int) string) Field {
	return Field{name, typeBytes, func(b []byte, row int) []byte {
		s := value(row)
		return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}}
}

// Write writes a table without missing values. Errors are w's.
func Write(w io.Writer, rows int, fields []Field) error {
	out := bufio.NewWriterSize(w, 1<<16)
	out.WriteString(Magic)
	at := len(Magic)
	schema := []any{structure(4, "schema", 5, int32(len(fields)))}
	for _, f := range fields {
		element := []any{1, f.physical, 3, int32(required), 4, f.name}
		if f.physical == typeBytes {
			element = append(element, 6, int32(0), 10, structure(1, structure())) // UTF8, and STRING, its successor
		}
		schema = append(schema, structure(element...))
	}
	var groups []any
	var b []byte
	for lo := 0; lo < rows; lo += groupRows {
		hi := min(rows, lo+groupRows)
		var chunks []any
		total := 0
		for _, f := range fields {
			b = b[:0]
			for row := lo; row < hi; row++ {
				b = f.plain(b, row)
			}
			if len(b) > math.MaxInt32 {
				return fmt.Errorf("column %.60q: got values that are too long for Parquet", f.name)
			}
			codec, page := codecNone, b
			if f.physical != typeFloat && f.physical != typeDouble { // floats do not shrink
				codec, page = codecSnappy, snappy.Encode(nil, b)
			}
			head := structure(1, int32(pageData), 2, int32(len(b)), 3, int32(len(page)),
				5, structure(1, int32(hi-lo), 2, int32(encodingPlain), 3, int32(encodingRLE), 4, int32(encodingRLE)))
			out.Write(head)
			if _, err := out.Write(page); err != nil {
				return err
			}
			unpacked := len(head) + len(b)
			chunks = append(chunks, structure(2, int64(at), 3, structure(
				1, f.physical, 2, []any{int32(encodingPlain), int32(encodingRLE)}, 3, []any{f.name}, 4, int32(codec),
				5, int64(hi-lo), 6, int64(unpacked), 7, int64(len(head)+len(page)), 9, int64(at))))
			at, total = at+len(head)+len(page), total+unpacked
		}
		groups = append(groups, structure(1, chunks, 2, int64(total), 3, int64(hi-lo)))
	}
	footer := structure(1, int32(1), 2, schema, 3, int64(rows), 4, groups, 6, "cne")
	out.Write(footer)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
	out.WriteString(Magic)
	// A bufio.Writer keeps the first error and returns it here.
	return out.Flush()
}
