package projection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne"
	"cne/data"
)

// aModel returns an embedding by a small network, and its file.
func aModel(t *testing.T) (*cne.Embedding, string) {
	t.Helper()
	points := data.NewMatrix(40, 3)
	for i := range points.X {
		points.X[i] = float32((i*7919)%101) / 10
	}
	e, err := cne.Embed(t.Context(), points, cne.Options{Epochs: 1, Neighbors: 5, Hidden: []int{8}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := e.Save(path); err != nil {
		t.Fatal(err)
	}
	return e, path
}

// newPoints writes a file of points, several blocks of them.
func newPoints(t *testing.T, n int) string {
	t.Helper()
	m := data.NewMatrix(n, 3)
	for i := range m.X {
		m.X[i] = float32((i * 31) % 97)
	}
	path := filepath.Join(t.TempDir(), "points.npy")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(data.WriteNPY(f, m), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A stopping source ends a context when it has delivered so many blocks.
type stopping struct {
	Source
	blocks int
	stop   context.CancelFunc
}

func (s *stopping) Next(dst *data.Matrix) (int, error) {
	if s.blocks--; s.blocks < 0 {
		s.stop()
		<-make(chan int) // what reads now is left behind
	}
	return s.Source.Next(dst)
}

// A part that is interrupted, again and again, goes on where it was and has the bits of one
// that was not; what cannot go on begins anew.
func TestInterruptedPart(t *testing.T) {
	_, model := aModel(t)
	input := newPoints(t, 5*MaxBlockRows)
	folder := t.TempDir()
	var log bytes.Buffer
	request := func(output string) *Request {
		return &Request{Output: filepath.Join(folder, output), ModelFiles: []string{model}, Inputs: []string{input}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	}
	place := func(r *Request, shard data.Shard, blocks int) (p *Projection, done int, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// What an interrupt leaves behind may still be at work with the model, which a
		// process that goes on has anew.
		e, err := cne.Load(model)
		if err != nil {
			t.Fatal(err)
		}
		p = &Projection{Embedding: e}
		placed, there, err := p.WritePart(ctx, r, shard, func() (Source, error) {
			s, err := Open(t.Context(), e, r.Inputs, data.Options{}, &shard)
			if err == nil && blocks > 0 {
				s = &stopping{s, blocks, cancel}
			}
			return s, err
		})
		if there != (err == nil && placed == 0) {
			t.Errorf("%d points are placed of a part, which is there: %v", placed, there)
		}
		return p, p.Count - placed, err
	}
	shard := data.Shard{Index: 0, Count: 1}
	if _, _, err := place(request("whole.npy"), shard, 0); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(folder, "whole.npy.part-0-of-1"))
	if err != nil {
		t.Fatal(err)
	}

	r := request("some.npy")
	path := Name(r.Output, shard)
	if _, _, err := place(r, shard, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted before anything was placed: %v", err)
	}
	if files, _ := filepath.Glob(r.Output + "*"); files != nil {
		t.Errorf("there are %q", files)
	}
	for i, blocks := range []int{3, 2} {
		p, done, err := place(r, shard, blocks)
		if !errors.Is(err, ErrInterrupted) || (done > 0) != (i > 0) || p.Count <= done {
			t.Fatalf("interrupted: %d of %d points had been there before, %v", done, p.Count, err)
		}
		if _, _, _, err := Merge(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "there are no parts") {
			t.Errorf("a part that is not complete is put together: %v", err)
		}
	}
	p, done, err := place(r, shard, 0)
	if err != nil || done == 0 || done >= p.Count || p.Count != 5*MaxBlockRows {
		t.Fatalf("%d of %d points had been there before, %v", done, p.Count, err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the part is another than that which was not interrupted (%v)", err)
	}
	if files, _ := filepath.Glob(r.Output + "*"); len(files) != 1 {
		t.Errorf("there are %q", files)
	}
	if p, done, err := place(r, shard, 0); err != nil || done != p.Count || p.Count != 5*MaxBlockRows {
		t.Errorf("a part that is there: %d of %d, %v", done, p.Count, err)
	}

	// What there is belongs to other options, or is damaged.
	for _, tc := range []struct {
		spoil func(r *Request)
		want  string
	}{
		{func(r *Request) { r.Reading.SkipBad = true }, "it is of other options"},
		{func(r *Request) { r.Device = "cuda" }, "it was made by cne"},
		{func(r *Request) { truncate(t, path+unfinished) }, "it is damaged"},
		{func(r *Request) { spoil(t, path+unfinished) }, "it is damaged"},
	} {
		r := request("some.npy")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, _, err := place(r, shard, 3); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		log.Reset()
		tc.spoil(r)
		if _, done, err := place(r, shard, 0); err != nil || done != 0 || !strings.Contains(log.String(), tc.want) {
			t.Errorf("%d points had been there before, %v, and the log is\n%s\nwant %s", done, err, &log, tc.want)
		}
	}
}

// Several that place the same part at once all succeed, and one that is interrupted
// meanwhile does not put its beginning into the place of the whole.
func TestPartByManyAtOnce(t *testing.T) {
	e, model := aModel(t)
	input, output := newPoints(t, 5*MaxBlockRows), filepath.Join(t.TempDir(), "out.npy")
	r := &Request{Output: output, ModelFiles: []string{model}, Inputs: []string{input}, Log: slog.New(slog.DiscardHandler)}
	shard := data.Shard{Index: 0, Count: 1}
	write := func(ctx context.Context, before func(Source) Source) error {
		_, _, err := (&Projection{Embedding: e}).WritePart(ctx, r, shard, func() (Source, error) {
			s, err := Open(t.Context(), e, r.Inputs, data.Options{}, &shard)
			if err == nil && before != nil {
				s = before(s)
			}
			return s, err
		})
		return err
	}
	// One is at its end when another has ended, and a third was interrupted before.
	err := write(t.Context(), func(s Source) Source {
		return &meanwhile{Source: s, f: func() {
			ctx, cancel := context.WithCancel(t.Context())
			if err := write(ctx, func(s Source) Source { return &stopping{s, 3, cancel} }); !errors.Is(err, ErrInterrupted) {
				t.Error(err)
			}
			if err := write(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}}
	})
	if err != nil {
		t.Error(err)
	}
	if rows, _, _, err := Merge(t.Context(), r, nil); err != nil || rows != 5*MaxBlockRows {
		t.Errorf("%d rows, %v", rows, err)
	}
	if files, _ := filepath.Glob(output + ".*"); len(files) != 1 {
		t.Errorf("there are %q", files)
	}
}

// A source with something that is done meanwhile, before the second block.
type meanwhile struct {
	Source
	blocks int
	f      func()
}

func (m *meanwhile) Next(dst *data.Matrix) (int, error) {
	if m.blocks++; m.blocks == 2 {
		m.f()
	}
	return m.Source.Next(dst)
}

// What is in the place of a part and never was one is left as it is, and told before any
// work.
func TestPartInThePlaceOfSomethingElse(t *testing.T) {
	e, model := aModel(t)
	input := newPoints(t, 10)
	shard := data.Shard{Index: 0, Count: 2}
	for name, x := range map[string]struct {
		output string
		make   func(path string) error
		want   string
	}{
		"a folder":             {"out.npy", func(path string) error { return os.Mkdir(path, 0o777) }, "is no regular file"},
		"an unfinished folder": {"out.npy", func(path string) error { return os.Mkdir(path+unfinished, 0o777) }, "is no regular file"},
		"another file":         {"out.npy", func(path string) error { return os.WriteFile(path, []byte("1,2\n"), 0o666) }, "is none; remove it, or choose another --output"},
		"a name too long":      {strings.Repeat("n", 240) + ".npy", func(string) error { return nil }, "choose another --output"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Request{Output: filepath.Join(t.TempDir(), x.output), ModelFiles: []string{model}, Inputs: []string{input}, Log: slog.New(slog.DiscardHandler)}
			if err := x.make(Name(r.Output, shard)); err != nil {
				t.Fatal(err)
			}
			before, _ := filepath.Glob(r.Output + "*")
			_, _, err := (&Projection{Embedding: e}).WritePart(t.Context(), r, shard, func() (Source, error) {
				t.Error("the points are opened")
				return nil, io.EOF
			})
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v\nwant %s", err, x.want)
			}
			if after, _ := filepath.Glob(r.Output + "*"); !slices.Equal(after, before) {
				t.Errorf("there are %q", after)
			}
		})
	}
}

func truncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 1000); err != nil {
		t.Fatal(err)
	}
}

// spoil changes a byte of a block.
func spoil(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[1000] ^= 1
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Parts that were made otherwise are put together, with a warning.
func TestMergeOfPartsMadeOtherwise(t *testing.T) {
	e, model := aModel(t)
	input, output := newPoints(t, 100), filepath.Join(t.TempDir(), "out.npy")
	var log bytes.Buffer
	r := &Request{Output: output, ModelFiles: []string{model}, Inputs: []string{input}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	for i := range 2 {
		r.Device = fmt.Sprint("device ", i)
		shard := data.Shard{Index: i, Count: 2}
		p := &Projection{Embedding: e}
		if _, _, err := p.WritePart(t.Context(), r, shard, func() (Source, error) { return Open(t.Context(), e, r.Inputs, data.Options{}, &shard) }); err != nil {
			t.Fatal(err)
		}
	}
	rows, bad, count, err := Merge(t.Context(), r, nil)
	if rows != 100 || bad != 0 || count != 2 || err != nil || !strings.Contains(log.String(), "parts were made in different ways") {
		t.Errorf("%d rows, %d bad, %d parts, %v, log %s", rows, bad, count, err, &log)
	}
	got, err := data.Open(t.Context(), []string{output}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	points, err := data.Open(t.Context(), []string{input}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := e.Project(t.Context(), points.Points)
	if err != nil || !slices.Equal(got.Points.X, want.X) {
		t.Errorf("the positions are others than Project gives (%v)", err)
	}
}

// aPart returns the bytes of a part.
func aPart(t testing.TB, labels []string, x ...float32) []byte {
	t.Helper()
	var b bytes.Buffer
	p, err := newPartWriter("part", &b, Part{About: About{Count: 3, Dim: 2, Labeled: labels != nil}, Index: 1})
	if err == nil {
		err = p.write(&data.Matrix{N: len(x) / 2, D: 2, X: x}, labels)
	}
	if err := errors.Join(err, p.close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Whatever is in a file, it is a part or an error, and takes no more memory than the file.
func FuzzReadPart(f *testing.F) {
	f.Add(aPart(f, nil, 1, 2, 3, 4))
	f.Add(aPart(f, []string{"a", ""}, 1, 2, float32(math.NaN()), 4))
	f.Add([]byte(partMagic + strings.Repeat("\x00", 8) + partMagic))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := readPart("part", bytes.NewReader(file), int64(len(file)))
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatal(err)
			}
			return
		}
		var x []float32
		var labels []string
		err = r.each(func(m *data.Matrix, l []string) error {
			x, labels = append(x, m.X...), append(labels, l...)
			return nil
		})
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatal(err)
			}
			return
		}
		if len(x) != r.Rows*r.Dim || r.Labeled && len(labels) != r.Rows || len(x) > len(file) {
			t.Fatalf("%d values and %d labels in %d rows", len(x), len(labels), r.Rows)
		}
	})
}

// What is written is read again.
func TestPartRoundTrip(t *testing.T) {
	x, names := []float32{1, -2, 3e30, float32(math.Inf(1)), 0, 5}, []string{"a", "", strings.Repeat("é", 200)}
	b := aPart(t, names, x...)
	r, err := readPart("part", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	m, labels, err := r.next()
	if err != nil || !slices.Equal(m.X, x) || !slices.Equal(labels, names) || r.Rows != 3 || r.Index != 1 {
		t.Errorf("%v, %q, %+v, %v", m.X, labels, r.Part, err)
	}
	if _, _, err := r.next(); err != io.EOF {
		t.Error(err)
	}
	for n := range b {
		cut := b[:n]
		if _, err := readPart("part", bytes.NewReader(cut), int64(n)); !errors.Is(err, errDamaged) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

func TestParseShard(t *testing.T) {
	for given, want := range map[string]data.Shard{"0/1": {Index: 0, Count: 1}, "3/4": {Index: 3, Count: 4}, "007/100": {Index: 7, Count: 100}} {
		if got, err := ParseShard(given); got != want || err != nil {
			t.Errorf("%s: %v, %v", given, got, err)
		}
	}
	for _, given := range []string{"", "1", "/", "1/", "/1", "a/2", "1/b", "1/2/3", "2/2", "-1/2", "0/0", "0/-1", "0/100001", "99999999999999999999/2"} {
		if _, err := ParseShard(given); err == nil {
			t.Errorf("%q is a part", given)
		}
	}
}

// Names sort as the parts do.
func TestName(t *testing.T) {
	for index, want := range map[int]string{0: "a.npy.part-00-of-12", 11: "a.npy.part-11-of-12"} {
		if got := Name("a.npy", data.Shard{Index: index, Count: 12}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := Name("a.npy", data.Shard{Index: 9, Count: 10}); got != "a.npy.part-9-of-10" {
		t.Error(got)
	}
}
