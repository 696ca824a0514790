package quality

import (
	"errors"
	"math"
	"slices"
	"testing"

	"cne/data"
	"cne/internal/rng"
)

// around returns n points of d coordinates around a centre.
func around(n, d int, seed uint64) *data.Matrix {
	s := rng.New(seed, rng.Sample)
	m := data.NewMatrix(n, d)
	for i := range m.X {
		m.X[i] = float32(3 + float64(i%d+1)*s.Normal())
	}
	return m
}

func TestAlign(t *testing.T) {
	quarter := func(x []float32) { x[0], x[1] = -x[1], x[0] }
	for name, move := range map[string]func(x []float32){
		"nothing":              func([]float32) {},
		"translation":          func(x []float32) { x[0] += 7 },
		"quarter turn":         quarter,
		"reflection":           func(x []float32) { x[1] = -x[1] },
		"reflection and turn":  func(x []float32) { x[0] = -x[0]; quarter(x) },
		"small turn":           func(x []float32) { turn(x, 0.1) },
		"turn and translation": func(x []float32) { turn(x, 2); x[1] -= 5 },
	} {
		for _, size := range []float32{0.25, 1, 3} {
			for _, d := range []int{2, 3, 5} {
				reference := around(50, d, 1)
				moved := &data.Matrix{N: reference.N, D: d, X: slices.Clone(reference.X)}
				for i := range moved.N {
					move(moved.Row(i))
					for j := range moved.Row(i) {
						moved.Row(i)[j] *= size
					}
				}
				before := pairwise(moved)
				scale, disparity, err := Align(moved, reference, false)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if !nearly(scale, 1/float64(size), 1e-5) || disparity > 1e-6 {
					t.Errorf("%s of a copy of size %v in %d dimensions: scale %v and disparity %v, want %v and 0", name, size, d, scale, disparity, 1/size)
				}
				for k, want := range before {
					if got := pairwise(moved)[k]; !nearly(got, want, 1e-4) {
						t.Fatalf("%s: a distance was %v and is %v after the alignment", name, want, got)
					}
				}
				if size != 1 {
					continue
				}
				for k, v := range moved.X {
					if math.Abs(float64(v-reference.X[k])) > 1e-4 {
						t.Fatalf("%s in %d dimensions: coordinate %d is %v, want %v", name, d, k, v, reference.X[k])
					}
				}
			}
		}
	}
}

// No turn or reflection of many tried may bring a noisy copy nearer than Align
// does.
func TestAlignIsBest(t *testing.T) {
	reference, noise := around(80, 2, 2), around(80, 2, 3)
	moved := data.NewMatrix(80, 2)
	for i, v := range reference.X {
		moved.X[i] = v + noise.X[i]
	}
	for i := range moved.N {
		turn(moved.Row(i), 1)
	}
	if _, _, err := Align(moved, reference, false); err != nil {
		t.Fatal(err)
	}
	distance := func(m *data.Matrix) (sum float64) {
		for i, v := range m.X {
			sum += math.Pow(float64(v-reference.X[i]), 2)
		}
		return sum
	}
	best := distance(moved)
	for _, flip := range []float32{1, -1} {
		for step := range 360 {
			tried := &data.Matrix{N: 80, D: 2, X: slices.Clone(moved.X)}
			var x, y float32
			for i := range tried.N {
				x, y = x+tried.X[2*i]/80, y+tried.X[2*i+1]/80
			}
			for i := range tried.N {
				row := tried.Row(i)
				row[0], row[1] = (row[0]-x)*flip, row[1]-y
				turn(row, float64(step)*math.Pi/180)
				row[0], row[1] = row[0]+x, row[1]+y
			}
			if d := distance(tried); d < best*(1-1e-5) {
				t.Fatalf("turned by %d° and flipped by %v the distance is %v, after Align %v", step, flip, d, best)
			}
		}
	}
}

// What is said of scale and disparity is what stretching by the scale leaves, and
// no other scale leaves less.
func TestAlignScaleAndDisparity(t *testing.T) {
	line := around(20, 2, 6)
	for i := range line.N { // of rank 1
		line.Row(i)[1] = 2 * line.Row(i)[0]
	}
	for name, tt := range map[string]struct{ embedding, reference *data.Matrix }{
		"one dimension":    {around(30, 1, 1), around(30, 1, 2)},
		"two dimensions":   {around(30, 2, 3), around(30, 2, 4)},
		"five dimensions":  {around(30, 5, 3), around(30, 5, 4)},
		"two points":       {around(2, 2, 3), around(2, 2, 4)},
		"points of a line": {line, around(20, 2, 5)},
	} {
		scale, disparity, err := Align(tt.embedding, tt.reference, false)
		must(t, err)
		n, d := tt.reference.N, tt.reference.D
		centre := make([]float64, d) // of both, after the alignment
		for i, v := range tt.reference.X {
			centre[i%d] += float64(v) / float64(n)
		}
		remains := func(scale float64) (sum float64) {
			for i, v := range tt.reference.X {
				sum += math.Pow(centre[i%d]+scale*(float64(tt.embedding.X[i])-centre[i%d])-float64(v), 2)
			}
			return sum
		}
		if got, want := disparity*remains(0), remains(scale); math.Abs(got-want) > 1e-5*remains(0) {
			t.Errorf("%s: the disparity %v stands for %v, and %v remains", name, disparity, got, want)
		}
		for _, other := range []float64{0, 0.9 * scale, 1.1 * scale} {
			if remains(other) < remains(scale) {
				t.Errorf("%s: the scale %v leaves more than %v", name, scale, other)
			}
		}
	}
}

// With directions the origin stays where it is: a turned copy of another size
// comes to lie on the reference, and of one that was moved, too, the points keep
// their distances from the origin.
func TestAlignDirections(t *testing.T) {
	for _, by := range []float32{0, 5} {
		reference := around(50, 2, 1)
		moved := &data.Matrix{N: 50, D: 2, X: slices.Clone(reference.X)}
		for i := range moved.N {
			row := moved.Row(i)
			turn(row, 2)
			row[0], row[1] = 2*row[0]+by, 2*row[1]
		}
		before := slices.Clone(moved.X)
		scale, disparity, err := Align(moved, reference, true)
		must(t, err)
		if same := nearly(scale, 0.5, 1e-5) && disparity < 1e-6; same != (by == 0) {
			t.Errorf("moved by %v: scale %v and disparity %v", by, scale, disparity)
		}
		for i := range moved.N {
			x, y := moved.Row(i), before[2*i:2*i+2]
			if got, want := math.Hypot(float64(x[0]), float64(x[1])), math.Hypot(float64(y[0]), float64(y[1])); !nearly(got, want, 1e-5) {
				t.Fatalf("moved by %v: point %d was at %v from the origin and is at %v", by, i, want, got)
			}
			if want := reference.Row(i); by == 0 && (!nearly(float64(x[0]), 2*float64(want[0]), 1e-4) || !nearly(float64(x[1]), 2*float64(want[1]), 1e-4)) {
				t.Fatalf("point %d is at %v, want twice %v", i, x, want)
			}
		}
	}
}

func TestAlignRefuses(t *testing.T) {
	good := around(4, 2, 1)
	broken := around(4, 2, 1)
	broken.X[3] = float32(math.NaN())
	for name, tt := range map[string]struct {
		embedding, reference *data.Matrix
		want                 error
	}{
		"other number of points": {around(5, 2, 1), good, ErrInput},
		"other width":            {around(4, 3, 1), good, ErrInput},
		"NaN":                    {broken, good, ErrNotFinite},
		"coinciding points":      {data.NewMatrix(4, 2), good, ErrUndefined},
		"coinciding reference":   {good, data.NewMatrix(4, 2), ErrUndefined},
	} {
		if _, _, err := Align(tt.embedding, tt.reference, false); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", name, err, tt.want)
		}
	}
}

// Embeddings far from zero are aligned where they are.
func TestAlignRelatesOffsets(t *testing.T) {
	s := rng.New(1, rng.Init)
	near, far := data.NewMatrix(100, 2), data.NewMatrix(100, 2)
	for i := range near.X {
		near.X[i] = float32(s.IntN(4096)) / 64
		far.X[i] = near.X[i] - 32
	}
	far.Offset = []float64{32, 32}
	for name, directions := range map[string]bool{"Align": false, "directions": true} {
		moved := far.Clone()
		scale, disparity, err := Align(moved, near, directions)
		if err != nil || math.Abs(scale-1) > 1e-6 || disparity > 1e-6 || moved.Offset != nil {
			t.Errorf("%s: scale %v, disparity %v, offset %v, %v", name, scale, disparity, moved.Offset, err)
		}
		for i, v := range moved.X {
			if math.Abs(float64(v-near.X[i])) > 1e-4 {
				t.Fatalf("%s: coordinate %d is %v, want %v", name, i, v, near.X[i])
			}
		}
		if scale, disparity, err := Align(near.Clone(), far, directions); err != nil || math.Abs(scale-1) > 1e-6 || disparity > 1e-6 {
			t.Errorf("%s to one with an offset: scale %v, disparity %v, %v", name, scale, disparity, err)
		}
	}
}

func turn(x []float32, angle float64) {
	s, c := math.Sincos(angle)
	a, b := float64(x[0]), float64(x[1])
	x[0], x[1] = float32(c*a-s*b), float32(s*a+c*b)
}

func pairwise(m *data.Matrix) (d []float64) {
	for i := range 10 {
		for j := range i {
			var sum float64
			for k := range m.D {
				sum += math.Pow(float64(m.Row(i)[k]-m.Row(j)[k]), 2)
			}
			d = append(d, math.Sqrt(sum))
		}
	}
	return d
}

func nearly(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))
}
