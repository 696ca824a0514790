package safetensors

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

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
func (f *File) sealKeys() (n int) {
	for _, key := range []string{kindKey, versionKey, digestKey} {
		if _, ok := f.Metadata[key]; ok {
			n++
		}
	}
	return n
}

// Unseal checks that the file has an intact seal of that kind and of one of these versions,
// the present one first. It returns ErrChecksum if the contents are damaged; otherwise errors wrap
// ErrKind, also if there is no seal, or ErrVersion.
func (f *File) Unseal(kind string, versions ...int) error {
	switch f.sealKeys() {
	case 0:
		return fmt.Errorf("%w: got no seal, want kind %q, written by cne", ErrKind, kind)
	case 3:
	default:
		return ErrChecksum
	}
	if f.Metadata[digestKey] != f.digest() {
		return ErrChecksum
	}
	if got := f.Metadata[kindKey]; got != kind {
		return fmt.Errorf("%w: got %s, want %q", ErrKind, quote(got), kind)
	}
	got, err := strconv.Atoi(f.Metadata[versionKey])
	switch {
	case err != nil:
		return fmt.Errorf("%w: got %s, want a number", ErrVersion, quote(f.Metadata[versionKey]))
	case !slices.Contains(versions, got):
		age := "an older"
		if got > versions[0] {
			age = "a newer"
		}
		return fmt.Errorf("%w: got %d, want %d; %s version of cne wrote the file", ErrVersion, got, versions[0], age)
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
	text := func(s string) {
		number(len(s))
		_, _ = io.WriteString(hash, s) // a hash never fails
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(f.Metadata)), func(key string) bool { return key == digestKey })
	number(len(keys))
	for _, key := range keys {
		text(key)
		text(f.Metadata[key])
	}
	number(len(f.Tensors))
	for _, name := range slices.Sorted(maps.Keys(f.Tensors)) {
		t := f.Tensors[name]
		text(name)
		text(string(t.DType))
		number(len(t.Shape))
		for _, d := range t.Shape {
			number(d)
		}
		number(len(t.Data))
		hash.Write(t.Data)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
