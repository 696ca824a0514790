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
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxHeader is the longest header that the format's specification allows.
const maxHeader = 100_000_000

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

// Read reads a file of size bytes from r. It refuses tensors that overlap or
// leave holes, shapes that disagree with the number of bytes, and names that
// occur twice. Whatever the header says, it allocates in proportion to size at
// most. Errors wrap ErrFormat, or are r's.
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
	h, err := parseHeader(text)
	if err != nil {
		return nil, invalid("%w", err)
	}

	names := slices.SortedFunc(maps.Keys(h.tensors), func(a, b string) int {
		x, y := h.tensors[a], h.tensors[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end), cmp.Compare(a, b))
	})
	var end int64
	for _, name := range names {
		t := h.tensors[name]
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
		advice := ""
		if end > data {
			advice = "; the file is truncated"
		}
		return nil, invalid("tensors: got %d bytes, want %d%s", data, end, advice)
	}

	f := &File{Metadata: h.metadata, Tensors: make(map[string]Tensor, len(names))}
	for _, name := range names {
		e := h.tensors[name]
		t := Tensor{DType: e.dtype, Shape: e.shape, Data: make([]byte, e.end-e.begin)}
		if _, err := io.ReadFull(r, t.Data); err != nil {
			return nil, fmt.Errorf("reading tensor %s: %w", quote(name), err)
		}
		f.Tensors[name] = t
	}
	return f, nil
}

type header struct {
	metadata map[string]string
	tensors  map[string]entry
}

type entry struct {
	dtype      DType
	shape      []int
	begin, end int64
}

// parseHeader reads the JSON token by token, because encoding/json silently keeps the
// last of two equal keys.
func parseHeader(text []byte) (*header, error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, errors.New("header: got no '{'; the file is probably of another format")
	}
	if !utf8.Valid(text) {
		return nil, errors.New("header: got text that is not UTF-8")
	}
	p := parser{json.NewDecoder(bytes.NewReader(text))}
	h := &header{tensors: map[string]entry{}}
	err := p.object("the header", func(name string) (err error) {
		if name == "__metadata__" {
			h.metadata = map[string]string{}
			return p.object("__metadata__", func(key string) error {
				var text string
				err := p.value("__metadata__ "+quote(key), "a string", &text)
				h.metadata[key] = text
				return err
			})
		}
		h.tensors[name], err = p.entry("tensor " + quote(name))
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return nil, errors.New("header: got text after its closing brace")
	}
	return h, nil
}

type parser struct{ dec *json.Decoder }

func (p parser) token() (json.Token, error) {
	t, err := p.dec.Token()
	if err != nil {
		err = p.invalid(err)
	}
	return t, err
}

func (p parser) invalid(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("header: invalid JSON near byte %d: %w", p.dec.InputOffset(), err)
}

// object calls member for each key of an object; member consumes the value.
func (p parser) object(what string, member func(key string) error) error {
	if t, err := p.token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return fmt.Errorf("%s: want a JSON object", what)
	}
	seen := map[string]bool{}
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return err
		}
		key := t.(string) // the decoder takes nothing else for a key
		if seen[key] {
			return fmt.Errorf("%s: got the key %s twice", what, quote(key))
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	_, err := p.token()
	return err
}

// value reads the value of a member into v, which takes only that kind of JSON.
func (p parser) value(what, kind string, v any) error {
	err := p.dec.Decode(v)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s: got a JSON %s, want %s", what, strings.Fields(wrong.Value)[0], kind)
	} else if err != nil {
		return p.invalid(err)
	}
	return nil
}

func (p parser) entry(what string) (e entry, err error) {
	var offsets []int64
	const whole = "an array of whole numbers below 2⁶³"
	err = p.object(what, func(key string) error {
		switch key {
		case "dtype":
			return p.value("dtype of "+what, "a string", &e.dtype)
		case "shape":
			return p.value("shape of "+what, whole, &e.shape)
		case "data_offsets":
			return p.value("data_offsets of "+what, whole, &offsets)
		}
		return fmt.Errorf("%s: got the key %s, want dtype, shape and data_offsets", what, quote(key))
	})
	switch {
	case err != nil:
	case e.shape == nil || offsets == nil:
		err = fmt.Errorf("%s: want dtype, shape and data_offsets", what)
	case len(offsets) != 2:
		err = fmt.Errorf("data_offsets of %s: got %d values, want 2", what, len(offsets))
	case offsets[0] < 0:
		err = fmt.Errorf("data_offsets of %s: got %d, want at least 0", what, offsets[0])
	default:
		e.begin, e.end = offsets[0], offsets[1]
	}
	return e, err
}
