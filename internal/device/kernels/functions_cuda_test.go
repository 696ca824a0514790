//go:build cu

package kernels_test

import (
	_ "embed"
	"errors"
	"math"
	"slices"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/device/kernels"
	"cne/internal/rng"
)

// functions holds the kernels that only tests launch: see kerneltest/src.
//
//go:embed kerneltest/functions.ptx
var functions string

func init() { kernels.Add("kerneltest/functions.ptx", functions) }

// upload returns, as a kernel's argument, device memory with these elements of size
// bytes each.
func upload[T any](t *testing.T, d *device.Device, v []T, size int) device.Arg {
	t.Helper()
	m, err := d.Alloc(len(v) * size)
	check(t, err)
	t.Cleanup(m.Free)
	check(t, device.Upload(d, m.Pointer(), v))
	return device.Arg(m.Pointer())
}

func download[T any](t *testing.T, d *device.Device, at device.Arg, n int) []T {
	t.Helper()
	v := make([]T, n)
	check(t, device.Download(d, v, device.Pointer(at)))
	return v
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestFunctionsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	inf, nan := math.Inf(1), math.NaN()
	// values returns numbers from a range, evenly spaced or, if positive, by logarithm.
	values := func(from, to float64, logarithmic bool) (v []float32) {
		const n = 20000
		for i := range n {
			if p := float64(i) / (n - 1); logarithmic {
				v = append(v, float32(from*math.Pow(to/from, p)))
			} else {
				v = append(v, float32(from+(to-from)*p))
			}
		}
		return v
	}
	for f, c := range []struct {
		name     string
		of       func(float64) float64
		within   float64 // relative
		numbers  []float32
		special  []float64 // pairs of argument and value
		absolute float64   // where the value is near 0
	}{
		{"exponential", math.Exp, 2e-7, values(-86.9, 88.7, false),
			[]float64{0, 1, -87.5, 0, -1e9, 0, -inf, 0, 88.73, inf, 1e9, inf, inf, inf, nan, nan}, 0},
		{"logarithm", math.Log, 2e-7, values(1e-44, 3e38, true),
			[]float64{1, 0, 0, -inf, -1, nan, -inf, nan, inf, inf, nan, nan}, 1e-12},
		{"logarithm near 1", math.Log, 2e-7, values(0.7, 1.45, false), nil, 1e-12},
		{"root", math.Sqrt, 6e-8, values(1e-37, 3e38, true), []float64{0, 0, -1, nan, inf, inf, nan, nan}, 0},
		{"1/x", func(x float64) float64 { return 1 / x }, 6e-8, values(1e-37, 8e37, true), []float64{0, inf, inf, 0, nan, nan}, 0},
		{"clip", func(x float64) float64 { return min(max(x, -1.5), 1.5) }, 0, values(-3, 3, false), []float64{inf, 1.5, -inf, -1.5, nan, nan}, 0},
	} {
		number := f
		if f > 1 {
			number-- // log is in the table twice
		}
		x := slices.Clone(c.numbers)
		for i := 0; i < len(c.special); i += 2 {
			x = append(x, float32(c.special[i]))
		}
		y := upload(t, d, make([]float32, len(x)), 4)
		check(t, d.Each("test_function", len(x), y, upload(t, d, x, 4), device.Int(number), device.F32(1.5), device.Int(len(x))))
		got, worst := download[float32](t, d, y, len(x)), 0.
		for i := range c.numbers {
			want := c.of(float64(x[i]))
			if away := math.Abs(float64(got[i]) - want); away > c.absolute {
				worst = max(worst, away/math.Abs(want))
			}
			if math.IsNaN(float64(got[i])) {
				t.Errorf("%s(%g) is NaN", c.name, x[i])
			}
		}
		if worst > c.within {
			t.Errorf("%s has a relative error of %.3g, want at most %g", c.name, worst, c.within)
		}
		for i := 0; i < len(c.special); i += 2 {
			if v, want := float64(got[len(c.numbers)+i/2]), c.special[i+1]; v != want && !(math.IsNaN(v) && math.IsNaN(want)) {
				t.Errorf("%s(%g) is %g, want %g", c.name, c.special[i], v, want)
			}
		}
	}
}

func TestRandomNumbersOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	const n, bound = 1000, 2047
	words, streams, below := upload(t, d, make([]uint64, n), 8), upload(t, d, make([]uint64, n), 8), upload(t, d, make([]uint32, n), 4)
	s := rng.New(7, rng.Negatives, 3)
	check(t, d.Each("test_random", n, words, streams, below, device.Word(s.State()), device.Int(bound), device.Int(n)))
	gotWords, gotStreams, gotBelow := download[uint64](t, d, words, n), download[uint64](t, d, streams, n), download[uint32](t, d, below, n)
	for i := range n {
		indexed := rng.New(7, rng.Negatives, 3, uint64(i))
		w := s.Uint64()
		if gotWords[i] != w || gotStreams[i] != indexed.State() || gotBelow[i] != rng.Bounded(uint32(w>>32), bound) {
			t.Fatalf("number %d is %x, %x, %d, want %x, %x, %d", i, gotWords[i], gotStreams[i], gotBelow[i], w, indexed.State(), rng.Bounded(uint32(w>>32), bound))
		}
	}
}

func TestSumsOfBlocksOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	const grid = 3
	for _, block := range []int{32, 64, 256, 1024} {
		n := grid * block
		x, k := make([]float32, n), make([]int32, n)
		s := rng.New(uint64(block), rng.Init)
		for i := range x {
			x[i], k[i] = float32(s.IntN(2000)-1000)/8, int32(s.IntN(1000)) // so that sums are exact
		}
		sums, greatest, counts := upload(t, d, make([]float32, n), 4), upload(t, d, make([]float32, n), 4), upload(t, d, make([]int32, n), 4)
		check(t, d.Launch("test_sums", device.Launch{Grid: grid, Block: block}, sums, greatest, counts, upload(t, d, x, 4), upload(t, d, k, 4)))
		gotSums, gotGreatest, gotCounts := download[float32](t, d, sums, n), download[float32](t, d, greatest, n), download[int32](t, d, counts, n)
		for i := range n {
			var sum float32
			for _, v := range x[i/block*block:][:block] {
				sum += v
			}
			var count int32
			for _, v := range k[i/32*32:][:32] {
				count += v
			}
			if largest := slices.Max(x[i/32*32:][:32]); gotSums[i] != sum || gotGreatest[i] != largest || gotCounts[i] != count {
				t.Fatalf("blocks of %d: thread %d got %g, %g and %d, want %g, %g and %d", block, i, gotSums[i], gotGreatest[i], gotCounts[i], sum, largest, count)
			}
		}
	}
}

func TestFixedPointOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	random := make([]float32, 5000)
	exact := 0.
	s := rng.New(1, rng.Init)
	for i := range random {
		random[i] = float32(s.Normal() * 100)
		exact += float64(random[i])
	}
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		what string
		x    []float32
		want float64
	}{
		{"nothing", []float32{0}, 0},
		{"the smallest unit", []float32{0x1p-36}, 0x1p-36},
		{"random numbers", random, exact},
		{"numbers that cancel out", []float32{1e6, 3, -1e6}, 3},
		{"more than fits", []float32{1e30}, 1 << 26},
		{"less than fits", []float32{-inf}, -(1 << 26)},
		{"a NaN", []float32{float32(math.NaN()), 1}, 1<<26 + 1},
	} {
		for range 2 { // twice, with the same bits
			sum, y := upload(t, d, []int64{0}, 8), upload(t, d, []float32{0}, 4)
			check(t,
				d.Each("test_fixed", len(c.x), sum, upload(t, d, c.x, 4), device.Int(len(c.x))),
				d.Launch("test_from_fixed", device.Launch{Grid: 1, Block: 32}, y, sum))
			if got := float64(download[float32](t, d, y, 1)[0]); math.Abs(got-c.want) > 1e-7*math.Abs(c.want) {
				t.Errorf("the sum of %s is %g, want %g", c.what, got, c.want)
			}
		}
	}
}

// A kernel gets more than 48 KiB of shared memory, static and dynamic, if it asks for
// it.
func TestSharedMemoryOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	most := (d.Properties().SharedPerBlock - 1024) / 4
	for _, n := range []int{1, 1000, 12000, 12288, 20000, 40000, most, most + 1} {
		if n > most {
			if err := d.Launch("test_dynamic", device.Launch{Grid: 1, Block: 128, Shared: 4 * n}, 0, 0, 0); err == nil {
				t.Error("a block has more shared memory than there is")
			}
			break // small GPUs
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i)
		}
		y := upload(t, d, make([]float32, n), 4)
		check(t, d.Launch("test_dynamic", device.Launch{Grid: 1, Block: 128, Shared: 4 * n}, y, upload(t, d, x, 4), device.Int(n)))
		got := download[float32](t, d, y, n)
		slices.Reverse(got)
		if !slices.Equal(got, x) {
			t.Errorf("%d numbers were not turned round", n)
		}
	}
}

// The stand-in runs threads in the order that is set.
func TestOrderOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	if !fakecuda.InUse() {
		t.Skip("a GPU cannot be told in which order threads run")
	}
	const n, block = 256, 128
	run := func(order uint64) (came, met []int32) {
		fakecuda.Order(t, order)
		zeros := make([]int32, n)
		x, y, count := upload(t, d, zeros, 4), upload(t, d, zeros, 4), upload(t, d, zeros[:2], 4)
		check(t, d.Launch("test_order", device.Launch{Grid: n / block, Block: block}, x, y, count, device.Int(n)))
		return download[int32](t, d, x, n), download[int32](t, d, y, n)
	}
	came, met := run(fakecuda.Forwards)
	if !slices.IsSorted(came) {
		t.Errorf("forwards the threads come as %v", came)
	}
	slices.Sort(met)
	came, back := run(fakecuda.Backwards)
	if came[0] != n-1 || came[31] != n-32 {
		t.Errorf("backwards the threads come as %v", came)
	}
	// Each warp is past its barrier before the next begins.
	if last := back[31]; back[0]/32 != n/32-1 || last/32 != n/32-1 {
		t.Errorf("backwards the threads meet as %v", back)
	}
	var before []int32
	for seed := range uint64(3) {
		came, _ := run(2 + seed)
		again, _ := run(2 + seed)
		if !slices.Equal(came, again) || slices.Equal(came, before) || slices.IsSorted(came) {
			t.Errorf("seed %d shuffles them as %v, and then as %v", 2+seed, came, again)
		}
		before = slices.Clone(came)
		if slices.Sort(came); !slices.Equal(came, met) {
			t.Errorf("seed %d: not all threads come once", 2+seed)
		}
	}
}
