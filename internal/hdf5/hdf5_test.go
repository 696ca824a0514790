package hdf5

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cne/internal/kind"
)

// An expected is what h5py reads of an object, an attribute, or a member of a compound: see
// scripts/hdf5_test.
type expected struct {
	Shape      []int                `json:"shape"`
	Type       string               `json:"type"`
	Hash       string               `json:"hash"`
	Refused    string               `json:"refused"`
	Fields     map[string]*expected `json:"fields"`
	Attributes map[string]*expected `json:"attributes"`
	Members    []string             `json:"members"`
	Unlisted   string               `json:"unlisted"` // why attributes cannot be read
}

// The values of all kinds of files are those that h5py reads. scripts/hdf5_test runs this
// with more files.
func TestFixtures(t *testing.T) {
	folder := "testdata"
	if more := os.Getenv("HDF5_FIXTURES"); more != "" {
		folder = more
	}
	paths, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	if len(paths) < 5 {
		t.Fatalf("got %d files in %s", len(paths), folder)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			content, err := os.ReadFile(path)
			var want map[string]*expected
			if err != nil || json.Unmarshal(content, &want) != nil {
				t.Fatal(err)
			}
			r, err := os.Open(strings.TrimSuffix(path, ".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			info, _ := r.Stat()
			f, err := Open(r, info.Size())
			if err != nil {
				t.Fatal(err)
			}
			for name, w := range want {
				o, err := f.Object(name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				w.object(t, o)
			}
		})
	}
}

// object compares an object with what is expected.
func (w *expected) object(t *testing.T, o *Object) {
	t.Helper()
	names, err := o.attributeNames()
	if w.Unlisted != "" {
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), w.Unlisted) {
			t.Errorf("%s: got %v, want its attributes refused", o.Path, err)
		}
		return
	}
	if err != nil || len(names) != len(w.Attributes) {
		t.Errorf("%s: got the attributes %q (%v), want %d", o.Path, names, err, len(w.Attributes))
	}
	for name, a := range w.Attributes {
		d, err := o.Attribute(name)
		a.dataset(t, o.Path+"@"+name, d, err)
	}
	if w.Members != nil {
		if got, err := o.Names(); err != nil || !o.IsGroup() || !reflect.DeepEqual(append([]string{}, got...), w.Members) {
			t.Errorf("%s: got the members %q, %v, want %q", o.Path, got, err, w.Members)
		}
		return
	}
	d, err := o.Dataset()
	w.dataset(t, o.Path, d, err)
}

// attributeNames returns the names of all attributes.
func (o *Object) attributeNames() (names []string, err error) {
	defer kind.Catch(&err)
	for _, c := range o.all(msgAttribute, msgAttrInfo, 2, 8, 0) {
		version := c.version(1, 3)
		c.skip(1)
		n := c.int(2)
		c.skip(4 + version/3)
		name, _, _ := strings.Cut(string(c.bytes(n)), "\x00")
		names = append(names, name)
	}
	return names, nil
}

// dataset compares values with what is expected.
func (w *expected) dataset(t *testing.T, name string, d *Dataset, err error) {
	t.Helper()
	if w.Fields != nil && err == nil {
		for k, f := range w.Fields {
			m, err := d.Field(k)
			f.dataset(t, name+"."+k, m, err)
		}
		return
	}
	var kind string
	var values []byte
	if err == nil {
		kind, values, err = valuesOf(d)
	}
	if w.Refused != "" {
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), w.Refused) || !strings.Contains(err.Error(), "/") {
			t.Errorf("%s: got %v, want it refused for %s", name, err, w.Refused)
		}
		return
	}
	switch {
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case !slices.Equal(d.Shape, w.Shape):
		t.Errorf("%s: got the shape %v, want %v", name, d.Shape, w.Shape)
	case w.Type == "empty":
	case kind != w.Type || hash(values) != w.Hash:
		t.Errorf("%s: got %s %.80q, want %s and the hash %s", name, kind, values, w.Type, w.Hash)
	}
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// valuesOf reads all values in parts of uneven size.
func valuesOf(d *Dataset) (kind string, values []byte, err error) {
	n, row := d.Rows()
	var texts [][]byte
	for lo, step := 0, n; lo < n; lo += step {
		if step = max(1, min(n/3, n-lo)); n-lo < 2*step {
			step = n - lo
		}
		if d.Type.Class == Text {
			some, err := d.Strings(lo, lo+step)
			if err != nil {
				return "", nil, err
			}
			for _, s := range some {
				texts = append(texts, []byte(s))
			}
			continue
		}
		part := make([]byte, step*row)
		if err := d.ReadRows(part, lo, lo+step); err != nil {
			return "", nil, err
		}
		values = append(values, part...)
	}
	if err := d.Check(); err != nil {
		return "", nil, err
	}
	t := d.Type
	if len(d.Shape) == 1 && t.Class != Text {
		again := make([]byte, len(values))
		if err := d.Each(func(first int, part []byte) { copy(again[first*row:], part) }); err != nil || !bytes.Equal(again, values) {
			return "", nil, fmt.Errorf("Each gives other values (%v)", err)
		}
	}
	order := ""
	if t.BigEndian && t.Size > 1 {
		order = ">"
	}
	switch {
	case t.Class == Text:
		return "text", bytes.Join(texts, []byte{0}), nil
	case t.IsBool():
		return "bool", values, nil
	case t.Class == Enum:
		return fmt.Sprintf("%senum%d", order, t.Size), values, nil
	case t.Class == Float:
		return fmt.Sprintf("%sf%d", order, t.Size), values, nil
	case t.Signed:
		return fmt.Sprintf("%si%d", order, t.Size), values, nil
	}
	return fmt.Sprintf("%su%d", order, t.Size), values, nil
}

// h5py has linked /X of this file to /data/X of another.
func TestExternalLink(t *testing.T) {
	content, err := os.ReadFile("testdata/external.h5")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Object("/X"); err == nil || !strings.Contains(err.Error(), `got a link to another file, "other.h5:/data/X", want`) {
		t.Error(err)
	}
}

// FuzzOpen reads everything that damaged files have: an error, or values within the memory
// that the size of the file bounds.
func FuzzOpen(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.h5")
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, 0, byte(0))
		f.Add(content, len(content)/3, byte(0xff))
	}
	f.Fuzz(func(t *testing.T, content []byte, at int, to byte) {
		if content = bytes.Clone(content); at >= 0 && at < len(content) {
			content[at] ^= to
		}
		file, err := Open(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		budget := 200 // objects; links may form cycles
		var visit func(path string)
		visit = func(path string) {
			o, err := file.Object(path)
			if budget--; budget < 0 || err != nil {
				return
			}
			names, _ := o.attributeNames()
			for _, name := range names {
				if d, err := o.Attribute(name); err == nil {
					_, _, _ = valuesOf(d)
				}
			}
			if members, _ := o.Names(); o.IsGroup() {
				for _, m := range members {
					visit(path + "/" + m)
				}
				return
			}
			if d, err := o.Dataset(); err == nil {
				if n, row := d.Rows(); n*row < 1<<20 {
					_, _, _ = valuesOf(d)
				}
			}
		}
		visit("/")
	})
}
