package safetensors_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"cne/internal/safetensors"
)

func sealed() *safetensors.File {
	f := &safetensors.File{
		Metadata: map[string]string{"format": "pt", "config": "{\"lr\": 1}\n"},
		Tensors: map[string]safetensors.Tensor{
			"0.weight": safetensors.New([]float32{1, 2, 3, 4, 5, 6}, 2, 3),
			"0.bias":   safetensors.New([]float32{-1, 1}, 2),
			"epoch":    safetensors.New([]int64{7}),
			"none":     safetensors.New([]int32{}, 0, 2),
			"mask":     {DType: "BOOL", Shape: []int{3}, Data: []byte{1, 0, 1}},
		},
	}
	f.Seal("model", 3)
	return f
}

// read returns what a file of those bytes holds if it is sealed and sound.
func read(b []byte) (*safetensors.File, error) {
	f, err := parse(b)
	if err != nil {
		return nil, err
	}
	if !f.Sealed() {
		return nil, nil
	}
	return f, f.Unseal("model", 3)
}

func TestSeal(t *testing.T) {
	want := sealed()
	f, err := read(encode(t, want))
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Fatalf("got %v, %v", f, err)
	}
	f.Seal("model", 3)
	if !reflect.DeepEqual(f, want) {
		t.Error("sealing twice gives another seal")
	}
	bare := &safetensors.File{}
	bare.Seal("model", 3)
	if f, err := read(encode(t, bare)); err != nil || !f.Sealed() {
		t.Errorf("an empty file: %v, %v", f, err)
	}
}

// The digest of a small file, worked out apart from this package, so that
// files sealed by one version of the program stay sound to the next.
func TestSealIsStable(t *testing.T) {
	f := &safetensors.File{
		Metadata: map[string]string{"k": "v"},
		Tensors:  map[string]safetensors.Tensor{"a": safetensors.New([]uint8{1, 2}, 1, 2)},
	}
	f.Seal("model", 1)
	const want = "8cd0da0170b0aefaabcd24899dc658cba12f5b5901a36da118e5fcad5fa3105c"
	if got := f.Metadata["cne_sha256"]; got != want || f.Metadata["cne"] != "model" || f.Metadata["cne_format"] != "1" {
		t.Errorf("the seal is %v, want the digest %s", f.Metadata, want)
	}
}

// Whatever happens to a sealed file, it is refused or read as what it was.
func TestDamage(t *testing.T) {
	want := sealed()
	file := encode(t, want)
	check := func(b []byte, damage string, args ...any) {
		t.Helper()
		f, err := read(b)
		switch {
		case err == nil && !reflect.DeepEqual(f, want):
			t.Errorf("%s: read as %v", fmt.Sprintf(damage, args...), f)
		case err != nil && !errors.Is(err, safetensors.ErrFormat) && !errors.Is(err, safetensors.ErrChecksum):
			t.Errorf("%s: %v", fmt.Sprintf(damage, args...), err)
		}
	}
	b := make([]byte, len(file))
	for i := range file {
		for bit := range 8 {
			copy(b, file)
			b[i] ^= 1 << bit
			check(b, "bit %d of byte %d flipped", bit, i)
		}
		copy(b, file)
		b[i] = 0
		check(b, "byte %d zeroed", i)
		clear(b[i:])
		check(b, "zeros from byte %d", i)
		if f, err := read(file[:i]); err == nil {
			t.Errorf("cut to %d bytes: read as %v", i, f)
		}
	}
	for _, more := range []string{"\x00", " ", "}", strings.Repeat("\x00", 8), string(file)} {
		if f, err := read(append(file[:len(file):len(file)], more...)); err == nil {
			t.Errorf("%d bytes appended: read as %v", len(more), f)
		}
	}
}

// Every part of the contents counts, and no two parts can make up for each
// other.
func TestChangesBreakTheSeal(t *testing.T) {
	for name, change := range map[string]func(*safetensors.File){
		"value":                func(f *safetensors.File) { f.Tensors["0.bias"].Data[3] ^= 1 },
		"shape":                func(f *safetensors.File) { f.Tensors["0.weight"].Shape[0], f.Tensors["0.weight"].Shape[1] = 3, 2 },
		"empty shape":          func(f *safetensors.File) { f.Tensors["none"].Shape[1] = 3 },
		"type":                 func(f *safetensors.File) { x := f.Tensors["0.bias"]; x.DType = "I32"; f.Tensors["0.bias"] = x },
		"tensor removed":       func(f *safetensors.File) { delete(f.Tensors, "none") },
		"tensor added":         func(f *safetensors.File) { f.Tensors["x"] = safetensors.New([]int32{}, 0) },
		"tensors exchanged":    func(f *safetensors.File) { m := f.Tensors; m["mask"], m["epoch"] = m["epoch"], m["mask"] },
		"tensor renamed":       func(f *safetensors.File) { f.Tensors["0.bia"] = f.Tensors["0.bias"]; delete(f.Tensors, "0.bias") },
		"text":                 func(f *safetensors.File) { f.Metadata["config"] = "" },
		"key added":            func(f *safetensors.File) { f.Metadata[""] = "" },
		"key removed":          func(f *safetensors.File) { delete(f.Metadata, "format") },
		"key grown by a value": func(f *safetensors.File) { f.Metadata["formatp"] = "t"; delete(f.Metadata, "format") },
		"kind":                 func(f *safetensors.File) { f.Metadata["cne"] = "checkpoint" },
		"version":              func(f *safetensors.File) { f.Metadata["cne_format"] = "4" },
		"version, spelling":    func(f *safetensors.File) { f.Metadata["cne_format"] = "03" },
		"digest":               func(f *safetensors.File) { f.Metadata["cne_sha256"] = "" },
		"no kind":              func(f *safetensors.File) { delete(f.Metadata, "cne") },
		"no version":           func(f *safetensors.File) { delete(f.Metadata, "cne_format") },
		"no digest":            func(f *safetensors.File) { delete(f.Metadata, "cne_sha256") },
	} {
		f := sealed()
		change(f)
		if err := f.Unseal("model", 3); err != safetensors.ErrChecksum || !f.Sealed() {
			t.Errorf("%s: got %v; sealed is %v", name, err, f.Sealed())
		}
	}
}

func TestUnsealRefuses(t *testing.T) {
	seal := func(kind string, version int) *safetensors.File {
		f := sealed()
		f.Seal(kind, version)
		return f
	}
	for name, tc := range map[string]struct {
		f    *safetensors.File
		is   error
		want string
	}{
		"another kind":             {seal("checkpoint", 3), safetensors.ErrKind, `got "checkpoint", want "model"`},
		"another kind and version": {seal("checkpoint", 9), safetensors.ErrKind, `got "checkpoint", want "model"`},
		"newer":                    {seal("model", 4), safetensors.ErrVersion, "got 4, want 3; a newer version of cne wrote the file"},
		"older":                    {seal("model", 2), safetensors.ErrVersion, "got 2, want 3; an older version of cne wrote the file"},
		"no seal":                  {example(), safetensors.ErrKind, `got no seal, want kind "model", written by cne`},
	} {
		fails(t, name, tc.f.Unseal("model", 3), tc.is, tc.want)
	}
}

// Files of other programs are not taken for damaged ones.
func TestForeignFilesAreNotSealed(t *testing.T) {
	for name, metadata := range map[string]map[string]string{
		"none":    nil,
		"PyTorch": {"format": "pt"},
		"sha256":  {"sha256": "0"},
	} {
		want := &safetensors.File{Metadata: metadata, Tensors: sealed().Tensors}
		f, err := parse(encode(t, want))
		if err != nil || f.Sealed() || !maps.Equal(f.Metadata, metadata) {
			t.Errorf("%s: read %v, %v", name, f, err)
		}
	}
	f, err := safetensors.ReadFile(filepath.Join("testdata", "loss.safetensors"))
	if err != nil || f.Sealed() {
		t.Errorf("a file written by PyTorch: sealed is %v, %v", f.Sealed(), err)
	}
}

// What a header says does not make Read allocate more than in proportion to
// its length, and errors stay short.
func TestHostileHeaders(t *testing.T) {
	const n = 1 << 20
	repeat := func(s string) string { return strings.Repeat(s, n/len(s)) }
	keys := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, header := range map[string]string{
		"nested metadata":         `{"__metadata__":` + repeat(`{"a":`),
		"nested value":            `{"__metadata__":{"a":` + repeat(`[`),
		"nested value, closed":    `{"__metadata__":{"a":` + repeat(`[`) + repeat(`]`) + `}}`,
		"nested tensor":           `{"a":` + repeat(`{"shape":`),
		"nested shape":            `{"a":{"shape":` + repeat(`[`),
		"long value":              `{"__metadata__":{"a":"` + repeat("x") + `"},"b":1}`,
		"long value, open":        `{"__metadata__":{"a":"` + repeat("x"),
		"long value, escapes":     `{"__metadata__":{"a":"` + repeat(`\u00e9`) + `"},"b":1}`,
		"long metadata key":       `{"__metadata__":{"` + repeat("x") + `":1}}`,
		"long metadata key twice": `{"__metadata__":{"` + repeat("x") + `":"","` + repeat("x") + `":""},"b":1}`,
		"long name":               `{"` + repeat("x") + `":{"dtype":"U8","shape":[2],"data_offsets":[0,0]}}`,
		"long key of a tensor":    `{"a":{"` + repeat("x") + `":1}}`,
		"long dtype":              `{"a":{"dtype":"` + repeat("x") + `","shape":[2],"data_offsets":[0,1]}}`,
		"long number":             `{"a":{"dtype":"U8","shape":[` + repeat("9") + `],"data_offsets":[0,1]}}`,
		"many dimensions":         `{"a":{"dtype":"U8","shape":[0` + repeat(",0") + `],"data_offsets":[0,0]}}`,
		"many offsets":            `{"a":{"dtype":"U8","shape":[0],"data_offsets":[0` + repeat(",0") + `]}}`,
		"many keys":               `{"__metadata__":{` + keys(`"%d":"",`) + `},"b":1}`,
		"many tensors":            `{` + keys(`"%d":{"dtype":"U8","shape":[],"data_offsets":[0,0]},`) + `}`,
		"only spaces":             `{` + repeat(" "),
	} {
		file := raw(header, 0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parse(file)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, safetensors.ErrFormat) || len(err.Error()) > 500 {
			t.Errorf("%s: error %.600v", name, err)
		}
		if factor := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(file)); factor > 64 {
			t.Errorf("%s: %.0f bytes were allocated for each one of the file", name, factor)
		}
	}
}

func TestCopy(t *testing.T) {
	x := safetensors.New([]float64{1.5, -2}, 2)
	dst := []float64{0, 0}
	if err := safetensors.Copy(dst, x); err != nil || dst[0] != 1.5 || dst[1] != -2 {
		t.Errorf("got %v, %v", dst, err)
	}
	if n := testing.AllocsPerRun(10, func() { _ = safetensors.Copy(dst, x) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	dst = []float64{3, 3}
	fails(t, "too short", safetensors.Copy(dst[:1], x), safetensors.ErrLength, "got 2, want 1")
	fails(t, "another type", safetensors.Copy(make([]int64, 2), x), safetensors.ErrDType, "")
	if dst[0] != 3 {
		t.Errorf("a failure wrote %v", dst)
	}
}
