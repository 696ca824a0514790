package rng_test

import (
	"math"
	"slices"
	"testing"

	"cne/internal/rng"
)

// The first outputs of SplitMix64 from state 1234567, as its reference
// implementation prints them.
func TestReferenceOutputs(t *testing.T) {
	state := uint64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		state += 0x9e3779b97f4a7c15
		if got := rng.Mix(state); got != want {
			t.Errorf("output %d: %d, want %d", i, got, want)
		}
	}
}

func TestAtEqualsDrawing(t *testing.T) {
	start := rng.New(7, rng.Shuffle, 3, 4)
	s := start
	for i := range 100 {
		at := start.At(uint64(i))
		if got, want := at.Uint64(), s.Uint64(); got != want {
			t.Fatalf("number %d: %d by At, %d in sequence", i, got, want)
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for name, s := range map[string]rng.Stream{
		"seed 0":          rng.New(0, rng.Init),
		"seed 1":          rng.New(1, rng.Init),
		"other purpose":   rng.New(0, rng.Shuffle),
		"epoch 0":         rng.New(0, rng.Shuffle, 0),
		"epoch 1":         rng.New(0, rng.Shuffle, 1),
		"epoch 0 batch 1": rng.New(0, rng.Shuffle, 0, 1),
		"epoch 1 batch 0": rng.New(0, rng.Shuffle, 1, 0),
	} {
		v := s.Uint64()
		if other, dup := seen[v]; dup {
			t.Errorf("%s and %s begin alike", name, other)
		}
		seen[v] = name
	}
}

func TestIntNIsUniform(t *testing.T) {
	const n, draws = 7, 70000
	s := rng.New(1, rng.Sample)
	var count [n]float64
	for range draws {
		count[s.IntN(n)]++
	}
	var chi2 float64
	for _, c := range count {
		chi2 += (c - draws/n) * (c - draws/n) / (draws / n)
	}
	if chi2 > 22.5 { // 0.1 % point of chi-squared with 6 degrees of freedom
		t.Errorf("chi-squared %.1f", chi2)
	}
}

func TestNormalMoments(t *testing.T) {
	s := rng.New(2, rng.Init)
	const n = 200000
	var sum, sum2, sum4 float64
	for range n {
		x := s.Normal()
		sum += x
		sum2 += x * x
		sum4 += x * x * x * x
	}
	if m := sum / n; math.Abs(m) > 0.01 {
		t.Errorf("mean %g", m)
	}
	if v := sum2 / n; math.Abs(v-1) > 0.02 {
		t.Errorf("variance %g", v)
	}
	if k := sum4 / n; math.Abs(k-3) > 0.15 {
		t.Errorf("fourth moment %g, want 3", k)
	}
}

func TestPerm(t *testing.T) {
	s := rng.New(3, rng.Sample)
	p := s.Perm(1000)
	sorted := slices.Sorted(slices.Values(p))
	for i, v := range sorted {
		if v != i {
			t.Fatalf("value %d is missing", i)
		}
	}
	if slices.Equal(p, sorted) {
		t.Error("not permuted")
	}
}
