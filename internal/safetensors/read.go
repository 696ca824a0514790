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

	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
)

const (
	// maxHeader is the longest header that the format's specification allows.
	maxHeader = 100_000_000
	// metadataKey is the member of the header that is no tensor.
	metadataKey = "__metadata__"
)

// ReadFile reads the file at path. Errors name it; they wrap ErrFormat if its
// contents are not valid.
func ReadFile(path string) (_ *File, err error) {
	defer kind.Catch(&err)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // before opening, which waits at a pipe
		return nil, fmt.Errorf("%s: not a regular file; give the path of a .safetensors file", path)
	}
	r := kind.Got(os.Open(path)) // the error names the path
	defer r.Close()
	info := kind.Got(r.Stat())
	f, err := Read(r, info.Size())
	return f, kind.Named(path, err)
}

// ReadAs reads a file that decode understands; decode fails as kind.Need does. Errors name
// the file; they wrap invalid if its contents are not valid.
func ReadAs[T any](path string, invalid error, decode func(*File) *T) (x *T, err error) {
	f, err := ReadFile(path)
	if errors.Is(err, ErrFormat) {
		return nil, fmt.Errorf("%w: %w", invalid, err)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %s: %w", invalid, path, err)
		}
	}()
	defer kind.Catch(&err)
	return decode(f), nil
}

// Read reads a file of size bytes from r. It refuses tensors that overlap or leave holes,
// and shapes that disagree with the number of bytes. Whatever the header says, it allocates
// in proportion to size at most. Errors wrap ErrFormat, or are r's.
func Read(r io.Reader, size int64) (_ *File, err error) {
	defer kind.Catch(&err)
	need(size >= 8, "length of the header: got %d bytes, want 8; the file is truncated or of another format", size)
	length := binary.LittleEndian.Uint64(readBytes(r, 8, "the header's length"))
	need(length <= maxHeader, "the file is of another format; PyTorch writes weights with safetensors.torch.save_file(model.state_dict(), path)")
	need(int64(length) <= size-8, "header: got %d bytes, want %d; the file is truncated or of another format", size-8, length)
	metadata, tensors := parseHeader(readBytes(r, int64(length), "the header"))

	names := slices.SortedFunc(maps.Keys(tensors), func(a, b string) int {
		x, y := tensors[a], tensors[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end), cmp.Compare(a, b))
	})
	var end int64
	for _, name := range names {
		t := tensors[name]
		need(t.end >= t.begin, "tensor %s: got its end at byte %d, before its start at byte %d", text.Quote(name), t.end, t.begin)
		need(t.begin <= end, "tensor %s: got unused bytes %d to %d before it", text.Quote(name), end, t.begin)
		need(t.begin >= end, "tensor %s: got its start at byte %d, inside another tensor", text.Quote(name), t.begin)
		check(name, t.dtype, t.shape, t.end-t.begin)
		end = t.end
	}
	data := size - 8 - int64(length)
	need(end == data, "tensors: got %d bytes, want %d%s", data, end, selection.If(end > data, "; the file is truncated", ""))

	f := &File{Metadata: metadata, Tensors: make(map[string]Tensor, len(names))}
	for _, name := range names {
		t := tensors[name]
		f.Tensors[name] = Tensor{DType: t.dtype, Shape: t.shape, Data: readBytes(r, t.end-t.begin, "tensor "+text.Quote(name))}
	}
	return f, nil
}

// need fails as kind.Need does, with an error that wraps ErrFormat.
func need(ok bool, format string, args ...any) {
	if !ok {
		kind.Check(fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...))
	}
}

// readBytes reads n bytes of what, or fails as kind.Need does.
func readBytes(r io.Reader, n int64, what string) []byte {
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	kind.Check(kind.Named("reading "+what, err))
	return b
}

// An entry describes a tensor in a header.
type entry struct {
	dtype      DType
	shape      []int
	begin, end int64
}

// parseHeader reads the JSON of a header, or fails as kind.Need does. Of equal keys the last
// counts. The bytes of other tensors of the name are then unused, which Read refuses.
func parseHeader(header []byte) (metadata map[string]string, tensors map[string]entry) {
	need(len(header) > 0 && header[0] == '{', "header: got no '{'; the file is probably of another format")
	need(utf8.Valid(header), "header: got text that is not UTF-8")
	var members map[string]json.RawMessage
	err := json.Unmarshal(header, &members)
	need(err == nil, "header: invalid JSON: %w", err)
	if m, ok := members[metadataKey]; ok {
		err := json.Unmarshal(m, &metadata)
		need(err == nil && metadata != nil, "%s: got %s, want an object of strings", metadataKey, text.Quote(string(m)))
		delete(members, metadataKey)
	}
	tensors = make(map[string]entry, len(members))
	for name, m := range members {
		tensors[name] = parseEntry(name, m)
	}
	return metadata, tensors
}

// parseEntry reads the JSON of a tensor's entry, or fails as kind.Need does.
func parseEntry(name string, value []byte) (e entry) {
	var members map[string]json.RawMessage // unlike those of a struct, they must be spelled exactly
	var offsets []int64
	fields := map[string]any{"dtype": &e.dtype, "shape": &e.shape, "data_offsets": &offsets}
	err := json.Unmarshal(value, &members)
	for name, field := range fields {
		err = cmp.Or(err, json.Unmarshal(members[name], field))
	}
	need(err == nil && len(members) == len(fields) && e.shape != nil && len(offsets) == 2 && offsets[0] >= 0,
		"tensor %s: got %s, want an object with a dtype, a shape and two data_offsets, which are whole numbers", text.Quote(name), text.Quote(string(value)))
	e.begin, e.end = offsets[0], offsets[1]
	return e
}
