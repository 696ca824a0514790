package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cne/internal/safetensors"
)

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func encode(t testing.TB, f *safetensors.File) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, f.Write(&b))
	return b.Bytes()
}

// parse reads a file from memory.
func parse(b []byte) (*safetensors.File, error) {
	return safetensors.Read(bytes.NewReader(b), int64(len(b)))
}

// one returns a file of one tensor.
func one(name string, x safetensors.Tensor) *safetensors.File {
	return &safetensors.File{Tensors: map[string]safetensors.Tensor{name: x}}
}

// fails compares an error with the sentinel it wraps and its words.
func fails(t *testing.T, what string, err, is error, want string) {
	t.Helper()
	if !errors.Is(err, is) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want one with %q", what, err, want)
	}
}

// raw puts the header's length before a header and its data.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, data)...)
}

func TestReadsReferenceFile(t *testing.T) {
	f, err := safetensors.ReadFile(filepath.Join("testdata", "loss.safetensors"))
	must(t, err)
	if got := f.Metadata["temperature"]; got != "0.5" {
		t.Errorf("temperature %q, want 0.5", got)
	}
	x, err := f.Tensor("features")
	must(t, err)
	if want := []int{14, 2}; !reflect.DeepEqual(x.Shape, want) {
		t.Errorf("features: shape %v, want %v", x.Shape, want)
	}
	if v, err := x.Float64s(); err != nil || len(v) != 28 || v[0] == 0 || math.Abs(v[0]) > 100 {
		t.Errorf("features: %v, %v", v, err)
	}
	tails, _ := f.Tensor("tails")
	v := make([]int64, 14)
	must(t, safetensors.Copy(v, tails))
	for i := range 7 { // column 0 is the head's own tail, row 7+i
		if v[2*i] != int64(7+i) {
			t.Errorf("tails[%d][0] = %d, want %d", i, v[2*i], 7+i)
		}
	}
	if _, err := f.Tensor("nosuch"); !errors.Is(err, safetensors.ErrNoTensor) {
		t.Errorf("nosuch: %v", err)
	}
	if _, err := x.Float32s(); !errors.Is(err, safetensors.ErrDType) {
		t.Errorf("Float32s of F64: %v", err)
	}
}

func example() *safetensors.File {
	return &safetensors.File{
		Metadata: map[string]string{"b": "2", "a": "quotes \" <&> ☃ \\ \n"},
		Tensors: map[string]safetensors.Tensor{
			"bytes":  safetensors.New([]uint8{1, 2, 255}, 3),
			"f32":    safetensors.New([]float32{1, -2.5, float32(math.Inf(1)), 4, 5, 6}, 2, 3),
			"f64":    safetensors.New([]float64{math.Pi}),
			"i32":    safetensors.New([]int32{-1, math.MaxInt32}, 2, 1),
			"i64":    safetensors.New([]int64{math.MinInt64, 7}, 2),
			"empty":  safetensors.New([]float32{}, 0, 5),
			"half":   {DType: "F16", Shape: []int{2}, Data: []byte{1, 2, 3, 4}},
			"future": {DType: "X9", Shape: []int{3}, Data: []byte{9}},
			"ünï/<>": safetensors.New([]float32{1}, 1),
		},
	}
}

func TestRoundTrip(t *testing.T) {
	want := example()
	b := encode(t, want)
	if n := binary.LittleEndian.Uint64(b); n%8 != 0 {
		t.Errorf("header of %d bytes is not padded to 8", n)
	}
	got, err := parse(b)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	f32, _ := got.Tensors["f32"].Float32s()
	f64, _ := got.Tensors["f64"].Float64s()
	i32, _ := got.Tensors["i32"].Int32s()
	i64 := make([]int64, 2)
	must(t, safetensors.Copy(i64, got.Tensors["i64"]))
	u8 := make([]uint8, 3)
	must(t, safetensors.Copy(u8, got.Tensors["bytes"]))
	if got, want := fmt.Sprint(f32, f64, i32, i64, u8), fmt.Sprint("[1 -2.5 +Inf 4 5 6] [", math.Pi, "] [-1 2147483647] [-9223372036854775808 7] [1 2 255]"); got != want {
		t.Errorf("the values %s, want %s", got, want)
	}
	if again := encode(t, got); !bytes.Equal(again, b) {
		t.Error("the same contents gave other bytes")
	}
}

// The exact bytes of a small file, worked out by hand from the specification.
func TestLayout(t *testing.T) {
	f := &safetensors.File{
		Metadata: map[string]string{"k": "v"},
		Tensors: map[string]safetensors.Tensor{
			"a": safetensors.New([]uint8{9}, 1),
			"c": safetensors.New([]float32{2}, 1),
			"b": safetensors.New([]float32{1}, 1, 1),
		},
	}
	header := `{"__metadata__":{"k":"v"},` +
		`"b":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},` +
		`"c":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},` +
		`"a":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	want := append(raw(header, 0), 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 9)
	if got := encode(t, f); !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.safetensors")
	must(t, example().WriteFile(path))
	if got, err := safetensors.ReadFile(path); err != nil || !reflect.DeepEqual(got, example()) {
		t.Errorf("read back %v, %v", got, err)
	}

	fails(t, "bad contents", one("w", safetensors.New([]float32{1}, 2)).WriteFile(path), safetensors.ErrFormat, path)
	if got, err := safetensors.ReadFile(path); err != nil || len(got.Tensors) != len(example().Tensors) {
		t.Errorf("a failed write harmed the old file: %v", err)
	}
	if err := example().WriteFile(filepath.Join(dir, "no", "folder")); err == nil {
		t.Error("wrote into a folder that does not exist")
	}
	if _, err := safetensors.ReadFile(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("reading a folder: %v", err)
	}
	if _, err := safetensors.ReadFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading no file: %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		file *safetensors.File
		want string
	}{
		"shape too large": {one("w", safetensors.New([]float32{1}, 2)), "shape [2] of F32: got 4 bytes, want 8"},
		"negative":        {one("w", safetensors.New([]float32{1}, -1, -1)), "want no negative dimension"},
		"rank":            {one("w", safetensors.New([]float32{}, make([]int, 65)...)), "tensor \"w\": got 65 dimensions, want at most 64"},
		"no dtype":        {one("w", safetensors.Tensor{}), "no dtype"},
		"reserved name":   {one("__metadata__", safetensors.New([]float32{1}, 1)), "tensor name: got \"__metadata__\", which is reserved"},
		"name not UTF-8":  {one("\xff", safetensors.New([]float32{1}, 1)), "got \"\\xff\", want UTF-8"},
		"value not UTF-8": {&safetensors.File{Metadata: map[string]string{"a": "\xff"}}, "got \"\\xff\", want UTF-8"},
	} {
		var b bytes.Buffer
		fails(t, name, tc.file.Write(&b), safetensors.ErrFormat, tc.want)
		if b.Len() > 0 {
			t.Errorf("%s: %d bytes were written", name, b.Len())
		}
	}
}

var invalid = map[string]struct {
	file []byte
	want string
}{
	"empty":              {nil, "length of the header: got 0 bytes, want 8; the file is truncated or of another format"},
	"cut in the length":  {make([]byte, 7), "length of the header: got 7 bytes, want 8; the file is truncated or of another format"},
	"huge header":        {binary.LittleEndian.AppendUint64(nil, 1<<62), "the file is of another format; PyTorch writes weights with safetensors.torch.save_file(model.state_dict(), path)"},
	"header beyond file": {binary.LittleEndian.AppendUint64(nil, 1_000_000), "header: got 0 bytes, want 1000000; the file is truncated or of another format"},
	"no header":          {raw(``, 0), "header: got no '{'; the file is probably of another format"},
	"space first":        {raw(` {}`, 0), "header: got no '{'; the file is probably of another format"},
	"array":              {raw(`[]`, 0), "header: got no '{'; the file is probably of another format"},
	"cut JSON":           {raw(`{"a":`, 0), "header: invalid JSON: "},
	"bad JSON":           {raw(`{"a" 1}`, 0), "header: invalid JSON: "},
	"not UTF-8":          {raw("{\"\xff\":1}", 0), "not UTF-8"},
	"two values":         {raw(`{}{}`, 0), "header: invalid JSON: "},
	"trailing data":      {raw(`{}  `, 1), "tensors: got 1 bytes, want 0"},
	"entry not object":   {raw(`{"a":3}`, 0), `tensor "a": got "3", want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"entry nested":       {raw(`{"a":[[[[1]]]]}`, 0), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"metadata not text":  {raw(`{"__metadata__":{"k":1}}`, 0), `__metadata__: got "{\"k\":1}", want an object of strings`},
	"metadata null":      {raw(`{"__metadata__":null}`, 0), `__metadata__: got "null", want an object of strings`},
	"field missing":      {raw(`{"a":{"dtype":"U8","shape":[1]}}`, 0), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"field unknown":      {raw(`{"a":{"dtype":"U8","shape":[1],"offset":1}}`, 0), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"dtype not text":     {raw(`{"a":{"dtype":1,"shape":[1],"data_offsets":[0,1]}}`, 1), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"dtype empty":        {raw(`{"a":{"dtype":"","shape":[1],"data_offsets":[0,1]}}`, 1), "no dtype"},
	"shape not array":    {raw(`{"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}}`, 1), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"shape negative":     {raw(`{"a":{"dtype":"U8","shape":[2,-1],"data_offsets":[0,1]}}`, 1), "shape: got [2 -1], want no negative dimension"},
	"shape fraction":     {raw(`{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}`, 1), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"shape text":         {raw(`{"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}}`, 1), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"shape overflow":     {raw(`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), "tensor \"a\": shape: got [4294967296 4294967296], too large for memory"},
	"offset overflow":    {raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551616]}}`, 1), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"rank":               {raw(`{"a":{"dtype":"U8","shape":[1`+strings.Repeat(",1", 64)+`],"data_offsets":[0,1]}}`, 1), "tensor \"a\": got 65 dimensions, want at most 64"},
	"three offsets":      {raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}`, 1), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"offsets reversed":   {raw(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[1,0]}}`, 1), "tensor \"a\": got its end at byte 0, before its start at byte 1"},
	"beyond the file":    {raw(`{"a":{"dtype":"U8","shape":[1000000000],"data_offsets":[0,1000000000]}}`, 1), "tensors: got 1 bytes, want 1000000000; the file is truncated"},
	"shape disagrees":    {raw(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4), "shape [2] of F32: got 4 bytes, want 8"},
	"offset negative":    {raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[-1,1]}}`, 1), `want an object with a dtype, a shape and two data_offsets, which are whole numbers`},
	"half a byte":        {raw(`{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}}`, 1), "tensor \"a\": shape: got [1] of F4, want whole bytes"},
	"tensor twice":       {raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), "tensor \"a\": got unused bytes 0 to 1 before it"},
	"hole at the start":  {raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), "tensor \"a\": got unused bytes 0 to 1 before it"},
	"hole":               {raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), "tensor \"b\": got unused bytes 1 to 2 before it"},
	"overlap":            {raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), "inside another tensor"},
	"shared":             {raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), "inside another tensor"},
}

func TestReadRefuses(t *testing.T) {
	for name, tc := range invalid {
		_, err := parse(tc.file)
		fails(t, name, err, safetensors.ErrFormat, tc.want)
	}
	path := filepath.Join(t.TempDir(), "short.safetensors")
	must(t, os.WriteFile(path, []byte("abc"), 0o600))
	_, err := safetensors.ReadFile(path)
	fails(t, "a short file", err, safetensors.ErrFormat, path)
	b := encode(t, example())
	for _, n := range []int{0, 4, 20, len(b) - 1} {
		if _, err := safetensors.Read(bytes.NewReader(b[:n]), int64(len(b))); err == nil {
			t.Errorf("%d of %d bytes: no error", n, len(b))
		}
	}
}

// What Read takes, Write gives back in a form that Read takes for the same.
func FuzzRead(f *testing.F) {
	f.Add(encode(f, example()))
	if b, err := os.ReadFile(filepath.Join("testdata", "loss.safetensors")); err == nil {
		f.Add(b)
	}
	for _, tc := range invalid {
		f.Add(tc.file)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parse(b)
		if err != nil {
			return
		}
		out := encode(t, file)
		again, err := parse(out)
		if err != nil {
			t.Fatalf("written back and refused: %v", err)
		}
		if len(file.Metadata) == 0 { // an empty map is not written
			again.Metadata = file.Metadata
		}
		if !reflect.DeepEqual(again, file) {
			t.Fatalf("got %v, want %v", again, file)
		}
	})
}
