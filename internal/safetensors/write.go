package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"cne/internal/atomicfile"
)

// Write writes the file to w. The same contents give the same bytes: tensors with wider
// elements come first, so that all are aligned to their width when the file is mapped into
// memory, and tensors of equal width by name; the header is padded with spaces to a
// multiple of 8 bytes. Errors are w's, or wrap ErrFormat if nothing was written.
func (f *File) Write(w io.Writer) error {
	names := slices.SortedFunc(maps.Keys(f.Tensors), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.Tensors[b].DType.Bits(), f.Tensors[a].DType.Bits()), cmp.Compare(a, b))
	})
	head, err := f.header(names)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(head)))); err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := w.Write(f.Tensors[name].Data); err != nil {
			return err
		}
	}
	return nil
}

// header returns the JSON for the tensors in the order of names, padded.
func (f *File) header(names []string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	var failure error
	put := func(before string, v any) {
		b.WriteString(before)
		if s, ok := v.(string); ok && !utf8.ValidString(s) {
			failure = fmt.Errorf("text: got %s, want UTF-8", quote(s))
		}
		failure = cmp.Or(failure, enc.Encode(v))
		b.Truncate(b.Len() - 1) // the encoder's newline
	}
	b.WriteByte('{')
	separator := ""
	if len(f.Metadata) > 0 {
		before := `"__metadata__":{`
		for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
			put(before, key)
			put(":", f.Metadata[key])
			before = ","
		}
		b.WriteByte('}')
		separator = ","
	}
	offset := 0
	for _, name := range names {
		t := f.Tensors[name]
		if name == "__metadata__" {
			return nil, errors.New(`tensor name: got "__metadata__", which is reserved`)
		}
		if err := check(t.DType, t.Shape, int64(len(t.Data))); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(name), err)
		}
		put(separator, name)
		put(`:{"dtype":`, string(t.DType))
		put(`,"shape":`, append([]int{}, t.Shape...)) // null is not a shape
		fmt.Fprintf(&b, `,"data_offsets":[%d,%d]}`, offset, offset+len(t.Data))
		offset += len(t.Data)
		separator = ","
	}
	b.WriteByte('}')
	b.Write(bytes.Repeat([]byte(" "), -b.Len()&7))
	if failure == nil && b.Len() > maxHeader {
		failure = fmt.Errorf("header: got %d bytes, want at most %d", b.Len(), maxHeader)
	}
	return b.Bytes(), failure
}

// WriteFile writes the file to path, under a temporary name in the same folder that is
// renamed at the end: a reader of path sees the old contents or the new, never a part, also
// after a crash (see package atomicfile). Errors name the path and wrap Write's.
func (f *File) WriteFile(path string) error {
	if err := atomicfile.Write(path, f.Write); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
