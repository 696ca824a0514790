package file_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"cne/data"
	"cne/data/file"
	"cne/data/pca"
	"cne/internal/rng"
)

// drawn returns n×d numbers about 0.
func drawn(seed uint64, n, d int) [][]float64 {
	s := rng.New(seed, rng.Init)
	rows := make([][]float64, n)
	for i := range rows {
		for range d {
			rows[i] = append(rows[i], 5*s.Normal())
		}
	}
	return rows
}

// moved returns rows with numbers added to their columns.
func moved(rows [][]float64, by ...float64) [][]float64 {
	far := make([][]float64, len(rows))
	for i, row := range rows {
		for j, v := range row {
			far[i] = append(far[i], v+by[j])
		}
	}
	return far
}

// wholes returns the thousandfold of rows as whole numbers, with numbers added.
func wholes[T int32 | int64](rows [][]float64, by ...T) []T {
	var all []T
	for _, row := range rows {
		for j, v := range row {
			all = append(all, T(1000*v)+by[j])
		}
	}
	return all
}

func tableOf(rows [][]float64) []byte {
	var b bytes.Buffer
	for _, row := range rows {
		for j, v := range row {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%.17g", v)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func npyOf(dtype string, n, d int, values any) []byte {
	return npy(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }\n", dtype, n, d), body(binary.LittleEndian, values)...)
}

// differences checks that differences between points of m agree with want, to a millionth
// of their spread.
func differences(t *testing.T, m *data.Matrix, want func(i, j int) float64) {
	t.Helper()
	for j := range m.D {
		spread := 0.0
		for i := range m.N {
			spread = max(spread, math.Abs(want(i, j)-want(0, j)))
		}
		for i := range m.N {
			got := float64(m.X[i*m.D+j]) - float64(m.X[j])
			if math.Abs(got-(want(i, j)-want(0, j))) > 1e-6*spread {
				t.Fatalf("value %d of points 0 and %d differs by %v, want %v", j, i, got, want(i, j)-want(0, j))
			}
		}
	}
}

// Points far from zero keep their differences, for every format with values beyond float32.
func TestOffset(t *testing.T) {
	const n, d = 1300, 3
	rows := drawn(1, n, d)
	far := moved(rows, 1e8, 0, -3e9)
	var flat []float64
	for _, row := range far {
		flat = append(flat, row...)
	}
	value := func(i, j int) float64 { return far[i][j] }
	short, long := wholes[int32](rows, 2e9, 0, -2e9), wholes[int64](rows, 1e18, 0, -1e15)
	var text bytes.Buffer
	for i, v := range long {
		fmt.Fprintf(&text, "%d%s", v, []string{",", ",", "\n"}[i%d])
	}
	for _, tc := range []struct {
		name    string
		content []byte
		value   func(i, j int) float64
	}{
		{"x.csv", tableOf(far), value},
		{"x.csv.gz", gz(tableOf(far)), value},
		{"x.npy", npyOf("<f8", n, d, flat), value},
		{"x.npz", zipOf(zip.Deflate, entry{"x.npy", npyOf("<f8", n, d, flat)}), value},
		{"x.idx", idx(0x0e, []uint32{n, d}, body(binary.BigEndian, flat)...), value},
		{"short.npy", npyOf("<i4", n, d, short), func(i, j int) float64 { return float64(short[i*d+j]) }},
		// Relative to the first row, which is exact.
		{"long.npy", npyOf("<i8", n, d, long), func(i, j int) float64 { return float64(long[i*d+j] - long[j]) }},
		{"long.csv", text.Bytes(), func(i, j int) float64 { return float64(long[i*d+j] - long[j]) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := put(t, t.TempDir(), tc.name, tc.content)
			log, said := logged()
			ds := need(file.Read(t.Context(), []string{path}, file.Options{Log: log}))(t)
			differences(t, ds.Points, tc.value)
			if o := ds.Points.Offset; o == nil || o[0] == 0 || o[1] != 0 || o[2] == 0 {
				t.Fatalf("the offset is %v", ds.Points.Offset)
			}
			if !strings.Contains(said.String(), `columns="1, 3"`) || strings.Contains(said.String(), "WARN") {
				t.Errorf("the log says %q", said)
			}
			// The column without an offset keeps its bits.
			if got, want := ds.Points.X[1], float32(tc.value(0, 1)); got != want && !strings.HasPrefix(tc.name, "long") {
				t.Errorf("the second column begins with %v, want %v", got, want)
			}
			// Blocks, and files of their own, are read relative to the same.
			blocks := need(file.Open(t.Context(), []string{path}, file.Options{Offset: ds.Points.Offset}))(t)
			defer blocks.Close()
			block := data.NewMatrix(n+1, d)
			if got, err := blocks.Next(block); got != n || err != nil && err != io.EOF {
				t.Fatal(got, err)
			}
			sameMatrix(t, block.Rows(0, n), ds.Points)
			if !slices.Equal(block.Offset, ds.Points.Offset) {
				t.Errorf("the block has the offset %v", block.Offset)
			}
			differences(t, need(file.Read(t.Context(), []string{path, path}, file.Options{}))(t).Points, func(i, j int) float64 { return tc.value(i%n, j) })
		})
	}
}

// Everything after reading sees the points that are far from zero as it would see
// them near it.
func TestOffsetTakesNoPart(t *testing.T) {
	rows := drawn(2, 400, 3)
	near, err := data.FromRows(rows)
	if err != nil || near.Offset != nil {
		t.Fatal(near.Offset, err)
	}
	far, err := data.FromRows(moved(rows, 1e8, 1e9, -1e8))
	if err != nil || far.Offset == nil {
		t.Fatal(far.Offset, err)
	}
	new1, err := data.FromRows(moved(rows[:50], 1e8, 1e9, -1e8))
	if err != nil || slices.Equal(new1.Offset, far.Offset) {
		t.Fatal("the offset of others is expected to be another", err)
	}
	close := func(t *testing.T, got, want *data.Matrix, shift bool) {
		t.Helper()
		for i := range got.X {
			g, w := float64(got.X[i]), float64(want.X[i])
			if shift {
				g, w = g-float64(got.X[i%got.D]), w-float64(want.X[i%want.D])
			}
			if math.Abs(g-w) > 1e-5 {
				t.Fatalf("value %d is %v, want %v", i, got.X[i], want.X[i])
			}
		}
	}
	for _, kind := range []data.Scaling{data.ScaleNone, data.ScaleStandard, data.ScaleUnit} {
		t.Run(string(kind), func(t *testing.T) {
			scaledNear, scaledFar := near.Clone(), far.Clone()
			a := need((&data.Dataset{Points: scaledNear}).Scale(t.Context(), kind))(t)
			b, err := (&data.Dataset{Points: scaledFar}).Scale(t.Context(), kind)
			if err != nil || scaledFar.Offset != nil {
				t.Fatal(scaledFar.Offset, err)
			}
			again := new1.Clone()
			must(t, b.Apply(again))
			close(t, again, scaledFar.Rows(0, 50), false)
			if kind == data.ScaleUnit {
				return // the largest magnitude is another
			}
			close(t, scaledFar, scaledNear, kind == data.ScaleNone)
			alone := need(data.FromRows(moved(rows[:50], 0, 0, 0)))(t)
			must(t, a.Apply(alone))
			close(t, again, alone, kind == data.ScaleNone)
		})
	}
	t.Run("PCA", func(t *testing.T) {
		a := need(pca.Fit(t.Context(), near, 2))(t)
		b, err := pca.Fit(t.Context(), far, 2)
		if err != nil || math.Abs(b.Mean[1]-a.Mean[1]-1e9) > 1e-4 {
			t.Fatal(b.Mean, err)
		}
		want := need(a.Transform(t.Context(), near.Rows(0, 50)))(t)
		got := need(b.Transform(t.Context(), new1))(t)
		close(t, got, want, false)
	})
	t.Run("At, Rows and Split", func(t *testing.T) {
		if got, want := far.Rows(3, 9).At(2, 1), rows[5][1]+1e9; math.Abs(got-want) > 1e-5 {
			t.Errorf("the value is %v, want %v", got, want)
		}
		_, held, heldRows, err := (&data.Dataset{Points: far}).Split(0.5, 1)
		if err != nil || math.Abs(held.Points.At(0, 0)-rows[heldRows[0]][0]-1e8) > 1e-5 {
			t.Error("the part that is held out is elsewhere", err)
		}
	})
	t.Run("written", func(t *testing.T) {
		var array, table bytes.Buffer
		must(t, file.WriteNPY(&array, far))
		must(t, file.WriteCSV(&table, far, nil, nil))
		want := float32(rows[7][1] + 1e9)
		if ds, err := decode(&array); err != nil || ds.Points.X[22] != want {
			t.Errorf("the array has %v, want %v (%v)", ds.Points.X[22], want, err)
		}
		if ds, err := file.Decode(&table, file.Options{}); err != nil || float32(ds.Points.At(7, 1)) != want {
			t.Errorf("the table has %v, want %v (%v)", ds.Points.At(7, 1), want, err)
		}
	})
	t.Run("within a stream", func(t *testing.T) {
		table := bytes.NewReader(append([]byte("before\n"), tableOf(moved(rows, 1e9, 1e9, 1e9))...))
		if _, err := table.Seek(7, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		ds := need(decode(table))(t)
		differences(t, ds.Points, func(i, j int) float64 { return rows[i][j] })
	})
	t.Run("Relative", func(t *testing.T) {
		if far.Relative(slices.Clone(far.Offset)) != far {
			t.Error("points are copied for the offset that they have")
		}
		m := far.Relative([]float64{1e8, 1e9, -1e8})
		for i, row := range rows {
			for j, v := range row {
				if math.Abs(float64(m.X[3*i+j])-v) > 1e-5 {
					t.Fatalf("value %d of point %d is %v, want %v", j, i, m.X[3*i+j], v)
				}
			}
		}
		if m := near.Relative([]float64{1, 0, 0}); m.X[0] != float32(float64(near.X[0])-1) || m.X[1] != near.X[1] {
			t.Error("points near zero are moved wrongly")
		}
	})
}

// What is no farther from zero than usual, and what float32 holds, keeps its bits.
func TestNoOffset(t *testing.T) {
	s := rng.New(3, rng.Init)
	columns := map[string]func() float64{
		"about zero":       func() float64 { return s.Normal() },
		"petals":           func() float64 { return math.Round(58+8*s.Normal()) / 10 },
		"years":            func() float64 { return 2000 + math.Round(10*s.Normal()) },
		"far, but float32": func() float64 { return float64(float32(1e8 + 50*s.Normal())) },
		"kelvin":           func() float64 { return 293.15 + math.Round(30*s.Normal())/10 },
		"mostly one value": func() float64 { return 0.99 + max(0, math.Floor(s.Normal()-1)) },
		"constant":         func() float64 { return 0.1 },
		"noise":            func() float64 { return 0.1 * math.Floor(3*s.Float64()) * (1 + 1e-16*math.Floor(3*s.Float64())) },
		"wide":             func() float64 { return math.Exp(20 * s.Normal()) },
		"small":            func() float64 { return 1e-60 * s.Normal() },
	}
	for name, draw := range columns {
		t.Run(name, func(t *testing.T) {
			s = rng.New(3, rng.Init) // the same numbers in whatever order the columns come
			var rows [][]float64
			for range 2000 {
				rows = append(rows, []float64{draw()})
			}
			m := need(data.FromRows(rows))(t)
			if m.Offset != nil {
				t.Fatal(m.Offset)
			}
			log, said := logged()
			ds := need(file.Decode(bytes.NewReader(tableOf(rows)), file.Options{Log: log}))(t)
			if ds.Points.Offset != nil {
				t.Fatal(ds.Points.Offset)
			}
			for i, row := range rows {
				if want := float32(row[0]); m.X[i] != want || ds.Points.X[i] != want {
					t.Fatalf("value %d is %v and %v, want %v", i, m.X[i], ds.Points.X[i], want)
				}
			}
			if lost := name == "small"; strings.Contains(said.String(), "WARN") != lost {
				t.Errorf("the log says %q", said)
			}
		})
	}
}

// FromMat takes any matrix, and one of ours with all that it has.
func TestFromMatOffset(t *testing.T) {
	far := moved(drawn(4, 300, 2), 1e9, 1e9)
	dense := mat.NewDense(300, 2, nil)
	for i, row := range far {
		dense.SetRow(i, row)
	}
	want := need(data.FromRows(far))(t)
	want.Columns = []string{"a", "b"}
	for name, from := range map[string]mat.Matrix{"rows": dense, "any": dense.T().T(), "transposed": mat.DenseCopyOf(dense.T()).T(), "ours": want} {
		got := need(data.FromMat(from))(t)
		sameMatrix(t, got, want)
		if !slices.Equal(got.Offset, want.Offset) || (got.Columns != nil) != (name == "ours") {
			t.Errorf("%s: offset %v, columns %q", name, got.Offset, got.Columns)
		}
	}
	want.Offset[1] = math.Inf(1)
	wantError(t, errorOf(data.FromMat(want)), data.ErrNotFinite, "offset of column 2")
}

// What float32 does not keep apart all the same is said.
func TestLostPrecisionIsLogged(t *testing.T) {
	var rows [][]float64
	for i, row := range drawn(5, 800, 2) {
		rows = append(rows, []float64{row[0], row[1] + 1e9*float64(i%2)})
	}
	path := put(t, t.TempDir(), "x.csv", append([]byte("a,b\n"), tableOf(rows)...))
	log, said := logged()
	need(file.Read(t.Context(), []string{path}, file.Options{Log: log}))(t)
	if !strings.Contains(said.String(), "WARN") || !strings.Contains(said.String(), "columns=b worst=b values_in_a_sample=") {
		t.Errorf("the log says %q", said)
	}
}
