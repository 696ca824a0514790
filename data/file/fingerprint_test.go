package file_test

import (
	"testing"

	"cne/data"
	"cne/data/file"
)

// Whatever changes the values of points that are kept as bytes changes their fingerprint,
// and nothing else does.
func TestFingerprint(t *testing.T) {
	const n, d = 6000, 500 // several pieces
	values := make([]byte, n*d)
	for i := range values {
		values[i] = byte(i * i >> 3)
	}
	folder := t.TempDir()
	content := func(name string, n, d uint32, values []byte) string {
		return put(t, folder, name, gz(idx(0x08, []uint32{n, d}, values...)))
	}
	whole := content("whole.idx.gz", n, d, values)
	changed := append([]byte(nil), values...)
	changed[len(changed)-1] ^= 1
	open := func(scaling data.Scaling, paths ...string) data.Source {
		t.Helper()
		set, err := file.Read(t.Context(), paths, file.Options{StreamFrom: 1, StreamAbove: 3})
		if err == nil && scaling != "" {
			_, err = set.Scale(t.Context(), scaling)
		}
		if err != nil || set.Stored == nil {
			t.Fatal(set, err)
		}
		return set.Stored
	}
	fingerprint := func(points data.Source) string {
		t.Helper()
		f, ok := data.Fingerprint(points)
		if !ok || len(f) != 64 {
			t.Fatalf("%q, %t", f, ok)
		}
		return f
	}

	withProcs(t, func(t *testing.T, _ int) {
		want := fingerprint(open(data.ScaleUnit, whole))
		if got := fingerprint(open(data.ScaleUnit, content("copy.idx.gz", n, d, values))); got != want {
			t.Error("the same points in another file have another fingerprint")
		}
		seen := map[string]string{want: "the points"}
		for name, points := range map[string]data.Source{
			"points that are not scaled":       open("", whole),
			"points with a bit changed":        open(data.ScaleUnit, content("changed.idx.gz", n, d, changed)),
			"points of another width":          open(data.ScaleUnit, content("narrow.idx.gz", 2*n, d/2, values)),
			"the points, one left out":         open(data.ScaleUnit, content("fewer.idx.gz", n-1, d, values[:(n-1)*d])),
			"the points twice":                 open(data.ScaleUnit, whole, whole),
			"the points, changed at the end":   open(data.ScaleUnit, whole, content("changed.idx.gz", n, d, changed)),
			"the points, changed at the start": open(data.ScaleUnit, content("changed.idx.gz", n, d, changed), whole),
		} {
			f := fingerprint(points)
			if other := seen[f]; other != "" {
				t.Errorf("%s and %s have one fingerprint", other, name)
			}
			seen[f] = name
		}
	})

	plain := put(t, folder, "plain.idx", idx(0x08, []uint32{n, d}, values...))
	memory := need(file.Read(t.Context(), []string{whole}, file.Options{}))(t)
	set := need(file.Read(t.Context(), []string{whole}, file.Options{StreamFrom: 1, StreamAbove: 3}))(t)
	rest, _, _, err := set.Split(0.5, 1)
	must(t, err)
	for name, points := range map[string]data.Source{
		"in memory": memory.Points, "in a file": open(data.ScaleUnit, plain),
		"split": rest.Source(), "standardised": open(data.ScaleStandard, whole),
	} {
		if f, ok := data.Fingerprint(points); ok || f != "" {
			t.Errorf("points %s have the fingerprint %q", name, f)
		}
	}
}
