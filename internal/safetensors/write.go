package safetensors

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"cne/internal/atomicfile"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/internal/text"
)

// Write writes the file to w. The same contents give the same bytes: tensors with wider
// elements come first, so that all are aligned to their width when the file is mapped into
// memory, and tensors of equal width by name; the header is padded with spaces to a
// multiple of 8 bytes. Errors are w's, or wrap ErrFormat if nothing was written.
func (f *File) Write(w io.Writer) (err error) {
	defer kind.Catch(&err)
	names := slices.SortedFunc(maps.Keys(f.Tensors), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.Tensors[b].DType.Bits(), f.Tensors[a].DType.Bits()), cmp.Compare(a, b))
	})
	head := f.header(names)
	kind.Got(w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)))
	for _, name := range names {
		kind.Got(w.Write(f.Tensors[name].Data))
	}
	return nil
}

// header returns the JSON for the tensors in the order of names, padded, or fails as
// kind.Need does.
func (f *File) header(names []string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	put := func(before string, v any) {
		b.WriteString(before)
		s, isText := v.(string)
		need(!isText || utf8.ValidString(s), "text: got %s, want UTF-8", text.Quote(s))
		kind.Check(enc.Encode(v))
		b.Truncate(b.Len() - 1) // the encoder's newline
	}
	b.WriteByte('{')
	separator := ""
	if len(f.Metadata) > 0 {
		before := `"` + metadataKey + `":{`
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
		need(name != metadataKey, "tensor name: got %q, which is reserved", name)
		check(name, t.DType, t.Shape, int64(len(t.Data)))
		put(separator, name)
		put(`:{"dtype":`, string(t.DType))
		put(`,"shape":`, append([]int{}, t.Shape...)) // null is not a shape
		fmt.Fprintf(&b, `,"data_offsets":[%d,%d]}`, offset, offset+len(t.Data))
		offset += len(t.Data)
		separator = ","
	}
	b.WriteByte('}')
	b.Write(bytes.Repeat([]byte(" "), -b.Len()&7))
	need(b.Len() <= maxHeader, "header: got %d bytes, want at most %d", b.Len(), maxHeader)
	return b.Bytes()
}

// WriteFile writes the file to path, under a temporary name in the same folder that is
// renamed at the end: a reader of path sees the old contents or the new, never a part, also
// after a crash (see package atomicfile). Errors name the path and wrap Write's.
func (f *File) WriteFile(path string) error {
	return kind.Named("writing "+path, atomicfile.Write(path, f.Write))
}

// ErrChecksum is returned for a sealed file whose contents have changed.
var ErrChecksum = errors.New("wrong checksum; the file is damaged, use an older copy")

// ErrKind is wrapped by the error for a file of another kind than the requested one.
var ErrKind = errors.New("wrong kind of file")

// ErrVersion is wrapped by the error for a file of another version of the
// format of its kind.
var ErrVersion = errors.New("wrong version of the file's format")

// The keys of a seal in the metadata.
const (
	kindKey    = "cne"
	versionKey = "cne_format"
	digestKey  = "cne_sha256"
)

// Seal adds metadata that identify the file and reveal damage: its kind, such as "model",
// the version of the format of that kind, and a checksum of everything in the file. Other
// readers see an ordinary file. Any later change breaks the seal, so call it last before
// Write.
func (f *File) Seal(kind string, version int) {
	if f.Metadata == nil {
		f.Metadata = map[string]string{}
	}
	f.Metadata[kindKey] = kind
	f.Metadata[versionKey] = strconv.Itoa(version)
	f.Metadata[digestKey] = f.digest()
}

// Sealed reports whether the file is sealed, soundly or not. Part of a seal is enough, so
// a file with a damaged seal does not pass for a file without one.
func (f *File) Sealed() bool { return f.sealKeys() > 0 }

// sealKeys counts the keys of a seal. A sound file has all three or none.
func (f *File) sealKeys() int {
	return selection.Count([]string{kindKey, versionKey, digestKey}, func(key string) bool { _, ok := f.Metadata[key]; return ok })
}

// Unseal checks that the file has an intact seal of that kind and version. It returns
// ErrChecksum if the contents are damaged; otherwise errors wrap ErrKind, also if there is no
// seal, or ErrVersion.
func (f *File) Unseal(kind string, version int) error {
	n := f.sealKeys()
	if n == 0 {
		return fmt.Errorf("%w: got no seal, want kind %q, written by cne", ErrKind, kind)
	}
	if n < 3 || f.Metadata[digestKey] != f.digest() {
		return ErrChecksum
	}
	if got := f.Metadata[kindKey]; got != kind {
		return fmt.Errorf("%w: got %s, want %q", ErrKind, text.Quote(got), kind)
	}
	got, err := strconv.Atoi(f.Metadata[versionKey])
	switch {
	case err != nil:
		return fmt.Errorf("%w: got %s, want a number", ErrVersion, text.Quote(f.Metadata[versionKey]))
	case got != version:
		age := selection.If(got > version, "a newer", "an older")
		return fmt.Errorf("%w: got %d, want %d; %s version of cne wrote the file", ErrVersion, got, version, age)
	}
	return nil
}

// digest returns the SHA-256 of the metadata, except the digest, and of the
// tensors. Every part is preceded by its length, and every list by its number
// of items, so that different contents give different input to the hash. The
// order of the tensors in the file and the spelling of the header do not
// matter.
func (f *File) digest() string {
	hash := sha256.New()
	var scratch [8]byte
	number := func(n int) {
		binary.LittleEndian.PutUint64(scratch[:], uint64(n))
		hash.Write(scratch[:])
	}
	word := func(s string) {
		number(len(s))
		_, _ = io.WriteString(hash, s) // a hash never fails
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(f.Metadata)), func(key string) bool { return key == digestKey })
	number(len(keys))
	for _, key := range keys {
		word(key)
		word(f.Metadata[key])
	}
	number(len(f.Tensors))
	for _, name := range slices.Sorted(maps.Keys(f.Tensors)) {
		t := f.Tensors[name]
		word(name)
		word(string(t.DType))
		number(len(t.Shape))
		for _, d := range t.Shape {
			number(d)
		}
		number(len(t.Data))
		hash.Write(t.Data)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
