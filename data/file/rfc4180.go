package file

import (
	"bufio"
	"bytes"
	"io"

	"cne/data"
)

// maxRow bounds the length of one row of a table in bytes, so that a file
// without line ends, or with a quotation mark that is never closed, is found
// out before it fills the memory.
const maxRow = 1 << 26

// A rowReader splits a table in text into rows and fields as RFC 4180 says,
// with any separator. It differs from encoding/csv in handing out bytes that
// it overwrites with the next row: a table of 70 000 rows of 784 numbers
// leaves no garbage.
type rowReader struct {
	r      *bufio.Reader
	comma  byte
	line   int // lines read so far
	first  int // line on which the last row begins, counted from 1
	text   []byte
	fields [][]byte
}

// next returns the fields of the next row that is not an empty line, or
// io.EOF. They are valid until it is called again.
func (t *rowReader) next() ([][]byte, error) {
	quotes, err := t.gather()
	if err != nil {
		return nil, err
	}
	t.fields = t.fields[:0]
	if quotes == 0 {
		rest := t.text
		for {
			i := bytes.IndexByte(rest, t.comma)
			if i < 0 {
				t.fields = append(t.fields, rest)
				return t.fields, nil
			}
			t.fields = append(t.fields, rest[:i])
			rest = rest[i+1:]
		}
	}
	return t.fields, t.splitQuoted()
}

// gather reads the text of the next row that is not an empty line, and returns the
// number of quotation marks in it; or io.EOF.
func (t *rowReader) gather() (quotes int, err error) {
	t.text = t.text[:0]
	for len(t.text) == 0 {
		if err := t.appendLine(); err != nil {
			return 0, err
		}
	}
	t.first = t.line
	quotes = bytes.Count(t.text, []byte{'"'})
	// An odd number of quotation marks leaves one open, and the row goes on
	// below. Those inside of a field are doubled and change nothing.
	for quotes%2 != 0 {
		at := len(t.text)
		t.text = append(t.text, '\n')
		if err := t.appendLine(); err == io.EOF {
			return 0, errorf(data.ErrFormat, "line %d (counted from 1) has a quotation mark that is never closed; close it, or double it if it belongs to the field", t.first)
		} else if err != nil {
			return 0, err
		}
		quotes += bytes.Count(t.text[at:], []byte{'"'})
	}
	return quotes, nil
}

// appendLine appends the next line to text, without its end.
func (t *rowReader) appendLine() error {
	begin := len(t.text)
	for {
		piece, err := t.r.ReadSlice('\n')
		t.text = append(t.text, piece...)
		if len(t.text) > maxRow {
			return errorf(data.ErrFormat, "line %d (counted from 1) is longer than %d MiB; write one point on each line", t.line+1, maxRow>>20)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(t.text) > begin:
		case err == io.EOF:
			return err
		case err != nil:
			return explain(err)
		}
		t.line++
		line := bytes.TrimSuffix(t.text[begin:], []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		t.text = t.text[:begin+len(line)]
		return nil
	}
}

// splitQuoted splits text that has quotation marks. Doubled ones become
// single in place, for which there is room.
func (t *rowReader) splitQuoted() error {
	misplaced := errorf(data.ErrFormat, "line %d (counted from 1) has a quotation mark out of place; put a field that has any in quotation marks and double those inside", t.first)
	rest := t.text
	for {
		var field []byte
		if len(rest) > 0 && rest[0] == '"' {
			rest = rest[1:]
			field = rest[:0]
			for {
				i := bytes.IndexByte(rest, '"')
				if i < 0 {
					return misplaced
				}
				field = append(field, rest[:i]...)
				rest = rest[i+1:]
				if len(rest) == 0 || rest[0] != '"' {
					break
				}
				field = append(field, '"')
				rest = rest[1:]
			}
			if len(rest) > 0 && rest[0] != t.comma {
				return misplaced
			}
		} else {
			i := bytes.IndexByte(rest, t.comma)
			if i < 0 {
				i = len(rest)
			}
			field, rest = rest[:i], rest[i:]
			if bytes.IndexByte(field, '"') >= 0 {
				return misplaced
			}
		}
		t.fields = append(t.fields, field)
		if len(rest) == 0 {
			return nil
		}
		rest = rest[1:] // the separator
	}
}
