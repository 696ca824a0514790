package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"

	"cne/internal/selection"
)

const (
	// maxHeader is the longest header that the format's specification allows.
	maxHeader = 100_000_000
	// metadataKey is the member of the header that is no tensor.
	metadataKey = "__metadata__"
)

// ReadFile reads the file at path. Errors name it; they wrap ErrFormat if its
// contents are not valid.
func ReadFile(path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // before opening, which waits at a pipe
		return nil, fmt.Errorf("%s: not a regular file; give the path of a .safetensors file", path)
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, err // names the path
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return nil, err
	}
	f, err := Read(r, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// ReadAs reads a file that decode understands. Errors name the file; they are of the kind
// if its contents are not valid.
func ReadAs[T any](path string, kind error, decode func(*File) (*T, error)) (*T, error) {
	f, err := ReadFile(path)
	if errors.Is(err, ErrFormat) {
		return nil, fmt.Errorf("%w: %w", kind, err)
	}
	if err != nil {
		return nil, err
	}
	x, err := decode(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", kind, path, err)
	}
	return x, nil
}

// Read reads a file of size bytes from r. It refuses tensors that overlap or leave holes,
// and shapes that disagree with the number of bytes. Whatever the header says, it allocates
// in proportion to size at most. Errors wrap ErrFormat, or are r's.
func Read(r io.Reader, size int64) (*File, error) {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
	}
	if size < 8 {
		return nil, invalid("length of the header: got %d bytes, want 8; the file is truncated or of another format", size)
	}
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, fmt.Errorf("reading the header's length: %w", err)
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > maxHeader {
		return nil, invalid("header: got %d bytes, want at most %d; the file is probably of another format", length, maxHeader)
	}
	if int64(length) > size-8 {
		return nil, invalid("header: got %d bytes, want %d; the file is truncated or of another format", size-8, length)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	metadata, tensors, err := parseHeader(text)
	if err != nil {
		return nil, invalid("%w", err)
	}

	names := slices.SortedFunc(maps.Keys(tensors), func(a, b string) int {
		x, y := tensors[a], tensors[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end), cmp.Compare(a, b))
	})
	var end int64
	for _, name := range names {
		t := tensors[name]
		switch {
		case t.end < t.begin:
			return nil, invalid("tensor %s: got its end at byte %d, before its start at byte %d", quote(name), t.end, t.begin)
		case t.begin > end:
			return nil, invalid("tensor %s: got unused bytes %d to %d before it", quote(name), end, t.begin)
		case t.begin < end:
			return nil, invalid("tensor %s: got its start at byte %d, inside another tensor", quote(name), t.begin)
		}
		if err := check(t.dtype, t.shape, t.end-t.begin); err != nil {
			return nil, invalid("tensor %s: %w", quote(name), err)
		}
		end = t.end
	}
	if data := size - 8 - int64(length); end != data {
		advice := selection.If(end > data, "; the file is truncated", "")
		return nil, invalid("tensors: got %d bytes, want %d%s", data, end, advice)
	}

	f := &File{Metadata: metadata, Tensors: make(map[string]Tensor, len(names))}
	for _, name := range names {
		e := tensors[name]
		t := Tensor{DType: e.dtype, Shape: e.shape, Data: make([]byte, e.end-e.begin)}
		if _, err := io.ReadFull(r, t.Data); err != nil {
			return nil, fmt.Errorf("reading tensor %s: %w", quote(name), err)
		}
		f.Tensors[name] = t
	}
	return f, nil
}

// An entry describes a tensor in a header.
type entry struct {
	dtype      DType
	shape      []int
	begin, end int64
}

// parseHeader reads the JSON of a header. Of equal keys the last counts. The bytes of other
// tensors of the name are then unused, which Read refuses.
func parseHeader(text []byte) (metadata map[string]string, tensors map[string]entry, err error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, nil, errors.New("header: got no '{'; the file is probably of another format")
	}
	if !utf8.Valid(text) {
		return nil, nil, errors.New("header: got text that is not UTF-8")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, nil, fmt.Errorf("header: invalid JSON: %w", err)
	}
	if m, ok := members[metadataKey]; ok {
		if err := json.Unmarshal(m, &metadata); err != nil || metadata == nil {
			return nil, nil, fmt.Errorf("%s: got %s, want an object of strings", metadataKey, quote(string(m)))
		}
		delete(members, metadataKey)
	}
	tensors = make(map[string]entry, len(members))
	for name, m := range members {
		if tensors[name], err = parseEntry(m); err != nil {
			return nil, nil, fmt.Errorf("tensor %s: %w", quote(name), err)
		}
	}
	return metadata, tensors, nil
}

// parseEntry reads the JSON of an entry.
func parseEntry(text []byte) (e entry, err error) {
	var members map[string]json.RawMessage // unlike those of a struct, they must be spelled exactly
	var offsets []int64
	fields := map[string]any{"dtype": &e.dtype, "shape": &e.shape, "data_offsets": &offsets}
	err = json.Unmarshal(text, &members)
	for name, field := range fields {
		err = cmp.Or(err, json.Unmarshal(members[name], field))
	}
	if err != nil || len(members) != len(fields) || e.shape == nil || len(offsets) != 2 || offsets[0] < 0 {
		return e, fmt.Errorf("got %s, want an object with a dtype, a shape and two data_offsets, which are whole numbers", quote(string(text)))
	}
	e.begin, e.end = offsets[0], offsets[1]
	return e, nil
}
