//go:build cu

package device_test

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/device/kernels"
	"cne/internal/rng"
)

// functions holds the kernels that only tests launch: see kerneltest/src.
//
//go:embed kernels/kerneltest/functions.ptx
var functions string

func init() { kernels.Add("kerneltest/functions.ptx", functions) }

// upload returns device memory with these elements.
func upload[T any](t *testing.T, d *device.Device, v []T) device.Pointer {
	t.Helper()
	var zero T
	m, err := d.Alloc(max(len(v), 1) * int(tensorSize(zero)))
	check(t, err)
	t.Cleanup(func() { m.Free() }) // before the device is closed, and no earlier
	check(t, device.Upload(d, m.Pointer(), v))
	return m.Pointer()
}

func tensorSize(v any) uintptr {
	switch v.(type) {
	case byte:
		return 1
	case float32, int32, uint32:
		return 4
	}
	return 8
}

func download[T any](t *testing.T, d *device.Device, at device.Pointer, n int) []T {
	t.Helper()
	v := make([]T, n)
	check(t, device.Download(d, v, at))
	return v
}

func check(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func normal(n int, seed uint64) []float32 {
	s, v := rng.New(seed, rng.Init), make([]float32, n)
	for i := range v {
		v[i] = float32(s.Normal())
	}
	return v
}

func TestDeviceDescribesItself(t *testing.T) {
	d := fakecuda.Open(t)
	p := d.Properties()
	if d.Name() != "cuda:0" || d.OnHost() || p.Name == "" || p.Multiprocessors < 1 || p.SharedPerBlock < 48<<10 || p.Major < 8 || !strings.HasPrefix(p.Software, "CUDA ") {
		t.Errorf("%s is %+v", d.Name(), p)
	}
	if want := fmt.Sprintf("computing on cuda:0, %s, as asked for", p); d.Reason() != want {
		t.Errorf("it says %q, want %q", d.Reason(), want)
	}
	auto, err := device.Open("auto")
	check(t, err)
	if auto.Name() != "cuda:0" {
		t.Errorf("auto is %s, want cuda:0", auto.Name())
	}
	check(t, auto.Close())
	if _, err := device.Open("cuda:99"); !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("the error of cuda:99 is %v", err)
	}
}

func testCopies[T comparable](t *testing.T, d *device.Device, make func(i int) T) {
	for _, n := range []int{1, 3, 64, 1025, 100003} {
		var want []T
		for i := range n {
			want = append(want, make(i))
		}
		at := upload(t, d, want)
		if got := download[T](t, d, at, n); !slices.Equal(got, want) {
			t.Errorf("%d elements of %T came back changed", n, want[0])
		}
		size := int(tensorSize(want[0]))
		to := upload(t, d, want[:1])
		if n > 1 {
			check(t, d.Copy(to, at.At(n-1, size), size))
			if got := download[T](t, d, to, 1); got[0] != want[n-1] {
				t.Errorf("the last of %d elements was copied as %v, want %v", n, got[0], want[n-1])
			}
		}
	}
}

func TestDeviceCopies(t *testing.T) {
	d := fakecuda.Open(t)
	testCopies(t, d, func(i int) byte { return byte(i * 7) })
	testCopies(t, d, func(i int) int32 { return int32(-i) })
	testCopies(t, d, func(i int) float32 { return float32(i) / 3 })
	testCopies(t, d, func(i int) uint64 { return rng.Mix(uint64(i)) })
}

func TestDeviceFills(t *testing.T) {
	d := fakecuda.Open(t)
	at := upload(t, d, normal(1000, 1))
	check(t, d.Fill(at.At(10, 4), math.Float32bits(2.5), 900), d.Zero(at.At(20, 4), 4*30))
	want := normal(1000, 1)
	for i := range 900 {
		want[10+i] = 2.5
	}
	clear(want[20:50])
	if got := download[float32](t, d, at, 1000); !slices.Equal(got, want) {
		t.Error("fills have left other elements than they should")
	}
}

// TestDeviceMultiplies compares all forms of products with sums in float64. The rows
// are further apart than they are long; what lies between them must not change.
func TestDeviceMultiplies(t *testing.T) {
	d := fakecuda.Open(t)
	type form struct{ m, n, k, gap int }
	for _, f := range []form{{1, 1, 1, 0}, {3, 5, 7, 0}, {33, 17, 65, 3}, {64, 2, 31, 1}, {2, 100, 1, 5}, {4, 6, 0, 2}} {
		for variant := range 16 {
			ta, tb, exact := variant&1 != 0, variant&2 != 0, variant&4 != 0
			beta := float32(0)
			if variant&8 != 0 {
				beta = -0.5
			}
			rowsA, columnsA, rowsB, columnsB := f.m, f.k, f.k, f.n
			if ta {
				rowsA, columnsA = columnsA, rowsA
			}
			if tb {
				rowsB, columnsB = columnsB, rowsB
			}
			lda, ldb, ldc := max(columnsA, 1)+f.gap, max(columnsB, 1)+f.gap, f.n+f.gap
			a, b, c := normal(rowsA*lda, 1), normal(rowsB*ldb, 2), normal(f.m*ldc, 3)
			at := upload(t, d, c)
			check(t, d.Multiply(device.Product{
				TransA: ta, TransB: tb, M: f.m, N: f.n, K: f.k, Alpha: 1.25, A: upload(t, d, a), LDA: lda, B: upload(t, d, b), LDB: ldb,
				Beta: beta, C: at, LDC: ldc, Exact: exact,
			}))
			got := download[float32](t, d, at, len(c))
			for i := range f.m {
				for j := range ldc {
					want := float64(c[i*ldc+j])
					if j < f.n {
						want *= float64(beta)
						for l := range f.k {
							x, y := a[min(i*lda+l, len(a)-1)], b[min(l*ldb+j, len(b)-1)]
							if ta {
								x = a[l*lda+i]
							}
							if tb {
								y = b[j*ldb+l]
							}
							want += 1.25 * float64(x) * float64(y)
						}
					}
					if v := float64(got[i*ldc+j]); !(math.Abs(v-want) <= 1e-5*math.Sqrt(float64(f.k+1))) {
						t.Fatalf("%+v, form %04b: element %d, %d is %g, want %g", f, variant, i, j, v, want)
					}
				}
			}
		}
	}
}

// With TF32, elements of operands keep 10 bits of mantissa, unless the product is
// Exact; sums are still float32.
func TestDeviceRoundsToTF32(t *testing.T) {
	d := fakecuda.Open(t)
	fakecuda.TF32(t, d, func(t *testing.T, unit float64) { roundsToTF32(t, d, unit) })
}

// roundsToTF32 compares products with exact ones. Operands may be off by a relative
// unit.
func roundsToTF32(t *testing.T, d *device.Device, unit float64) {
	t.Helper()
	const m, n = 30, 20
	for _, k := range []int{1, 7, 64, 513} {
		for _, exact := range []bool{false, true} {
			a, b := normal(m*k, 1), normal(k*n, 2)
			at := upload(t, d, make([]float32, m*n))
			check(t, d.Multiply(device.Product{M: m, N: n, K: k, Alpha: 1, A: upload(t, d, a), LDA: k, B: upload(t, d, b), LDB: n, C: at, LDC: n, Exact: exact}))
			farthest := 0.
			for e, v := range download[float32](t, d, at, m*n) {
				want, size := 0., 0.
				for l := range k {
					x := float64(a[e/n*k+l]) * float64(b[l*n+e%n])
					want += x
					size += math.Abs(x)
				}
				// Both factors are rounded, and then k additions round as float32 does.
				bound := float64(k+1) * 0x1p-24
				if !exact {
					bound += 2*unit + unit*unit
				}
				far := math.Abs(float64(v)-want) / size
				if !(far <= bound) {
					t.Fatalf("k=%d, exact %v: element %d is %g, want %g: off by %.2g of what is added up, where rounding makes %.2g", k, exact, e, v, want, far, bound)
				}
				farthest = max(farthest, far)
			}
			if fakecuda.InUse() && !exact && farthest < unit/16 {
				t.Errorf("k=%d: no element is off by more than %.2g: nothing was rounded to TF32", k, farthest)
			}
		}
	}
}

// half rounds a number to bfloat16, and returns it with its bits.
func half(v float32) (rounded float32, bits uint16) {
	u := math.Float32bits(v)
	bits = uint16((u + 0x7fff + u>>16&1) >> 16)
	return math.Float32frombits(uint32(bits) << 16), bits
}

// Products of bfloat16 are exact, and their sums float32: each of the k additions, and of
// the steps with alpha and beta, rounds by 2⁻²⁴ of what is added up. With RoundC the result
// then has eight bits of mantissa.
func TestDeviceMultipliesHalves(t *testing.T) {
	d := fakecuda.Open(t)
	const m, n, gap = 13, 18, 3
	halves := func(count int, seed uint64) (numbers []float64, at device.Pointer) {
		var bits []uint16
		for _, v := range normal(count, seed) {
			rounded, b := half(v)
			numbers, bits = append(numbers, float64(rounded)), append(bits, b)
		}
		return numbers, upload(t, d, bits)
	}
	for _, k := range []int{1, 8, 65} {
		for variant := range 16 {
			ta, tb, round, beta := variant&1 != 0, variant&2 != 0, variant&4 != 0, float32(variant>>3)
			rowsA, columnsA, rowsB, columnsB := m, k, k, n
			if ta {
				rowsA, columnsA = columnsA, rowsA
			}
			if tb {
				rowsB, columnsB = columnsB, rowsB
			}
			lda, ldb, ldc := columnsA+gap, columnsB+gap, n+gap
			a, atA := halves(rowsA*lda, 1)
			b, atB := halves(rowsB*ldb, 2)
			before, at := halves(m*ldc, 3)
			if !round {
				var floats []float32
				for _, v := range before {
					floats = append(floats, float32(v))
				}
				at = upload(t, d, floats)
			}
			check(t, d.Multiply(device.Product{
				TransA: ta, TransB: tb, M: m, N: n, K: k, Alpha: 1.25, A: atA, LDA: lda, B: atB, LDB: ldb, Beta: beta, C: at, LDC: ldc, BFloat16: true, RoundC: round,
			}))
			var got []float64
			if round {
				for _, v := range download[uint16](t, d, at, m*ldc) {
					got = append(got, float64(math.Float32frombits(uint32(v)<<16)))
				}
			} else {
				for _, v := range download[float32](t, d, at, m*ldc) {
					got = append(got, float64(v))
				}
			}
			for i := range m {
				for j := range ldc {
					want, size := before[i*ldc+j], 0.
					if j < n {
						want *= float64(beta)
						size = math.Abs(want)
						for l := range k {
							x, y := i*lda+l, l*ldb+j
							if ta {
								x = l*lda + i
							}
							if tb {
								y = j*ldb + l
							}
							want += 1.25 * a[x] * b[y]
							size += 1.25 * math.Abs(a[x]*b[y])
						}
					}
					bound := 1.01 * float64(k+2) * 0x1p-24 * size
					if round && j < n {
						bound += 0x1p-8 * math.Abs(want)
					}
					if v := got[i*ldc+j]; !(math.Abs(v-want) <= bound) {
						t.Fatalf("k=%d, form %04b: element %d, %d is %g, want %g within %.2g", k, variant, i, j, v, want, bound)
					}
				}
			}
		}
	}
}

func TestDeviceRefusesLaunches(t *testing.T) {
	d := fakecuda.Open(t)
	x := upload(t, d, normal(64, 1))
	one := device.Launch{Grid: 1, Block: 32}
	for _, c := range []struct {
		kernel string
		l      device.Launch
		args   int
		says   string
	}{
		{"sum", device.Launch{Grid: 1, Block: 257}, 4, "cuda:0: kernel sum: CUDA's error "}, // more than its PTX allows
		{"no_such_kernel", one, 1, "cuda:0: kernel no_such_kernel: there is no such kernel"},
		{"sum", one, 3, "cuda:0: kernel sum: got 3 arguments, want 4"},
		{"test_dynamic", device.Launch{Grid: 1, Block: 32, Shared: 1 << 20}, 3, "cuda:0: kernel test_dynamic: it cannot have 1048576 bytes of shared memory"},
	} {
		if err := d.Launch(c.kernel, c.l, make([]device.Arg, c.args)...); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, want %s", c.kernel, err, c.says)
		}
	}
	y := upload(t, d, make([]float32, 64))
	check(t, d.Each("sum", 64, device.Arg(y), device.Arg(x), device.Arg(x), device.Int(64)))
	if got := download[float32](t, d, y, 64); got[5] != 2*normal(64, 1)[5] {
		t.Error("after what was refused, a kernel does not run")
	}
}

// A block gets at most 65 536 registers: 64 for each of 1024 threads.
func TestDeviceRefusesRegisters(t *testing.T) {
	if !fakecuda.InUse() {
		t.Skip("a GPU's compiler cannot be told how many registers a kernel has")
	}
	d := fakecuda.Open(t)
	const n = 1024
	x, y, z := upload(t, d, make([]float32, n)), upload(t, d, make([]float32, n)), upload(t, d, make([]float32, n))
	for _, c := range []struct {
		registers, block int
		fits             bool
	}{
		{64, 1024, true}, {65, 1024, false}, {72, 896, true}, {73, 896, false}, {73, 800, true}, {255, 256, true}, {255, 288, false},
	} {
		fakecuda.Registers(t, "test_sums", c.registers)
		err := d.Launch("test_sums", device.Launch{Grid: 1, Block: c.block}, device.Arg(y), device.Arg(z), device.Arg(z), device.Arg(x), device.Arg(x))
		if c.fits != (err == nil) || err != nil && err.Error() != "cuda:0: kernel test_sums: CUDA's error LaunchOutOfResources" {
			t.Errorf("%d threads of %d registers: the error is %v", c.block, c.registers, err)
		}
	}
	check(t, d.Synchronize())
}

// Every kernel is there, and on a GPU its driver compiles it.
func TestDeviceHasAllKernels(t *testing.T) {
	d := fakecuda.Open(t)
	for _, name := range kernels.Names() {
		_, params, _ := kernels.Find(name)
		if params == 0 {
			t.Errorf("kernel %s has no parameters", name)
		}
		// This error comes after the kernel was found.
		want := fmt.Sprintf("cuda:0: kernel %s: got 0 arguments, want %d", name, params)
		if err := d.Launch(name, device.Launch{Grid: 1, Block: 32}); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestDeviceReplaysWhatItCaptured(t *testing.T) {
	d := fakecuda.Open(t)
	const n = 100
	x := upload(t, d, normal(n, 1))
	y, z := upload(t, d, make([]float32, n)), upload(t, d, make([]float32, n))
	one := upload(t, d, []float32{2})
	// A first launch and product load the kernel and cuBLAS, as in a run.
	step := func() error {
		return errors.Join(
			d.Each("sum", n, device.Arg(x), device.Arg(x), device.Arg(x), device.Int(n)), // x doubles
			d.Fill(z, math.Float32bits(1), n),
			d.Multiply(device.Product{M: n, N: 1, K: 1, Alpha: 1, A: x, LDA: 1, B: one, LDB: 1, Beta: 1, C: z, LDC: 1, Exact: true}), // z = 2x + 1
			d.Copy(y, z, 4*n),
		)
	}
	check(t, step())
	before := download[float32](t, d, x, n)
	r, err := d.Capture(step)
	check(t, err)
	if got := download[float32](t, d, x, n); !slices.Equal(got, before) {
		t.Error("what is captured was done")
	}
	for run := range 3 {
		check(t, r.Run())
		gotX, gotY := download[float32](t, d, x, n), download[float32](t, d, y, n)
		for i, v := range before {
			if v *= float32(int(2) << run); gotX[i] != v || gotY[i] != 2*v+1 {
				t.Fatalf("run %d: element %d is %g and %g, want %g and %g", run, i, gotX[i], gotY[i], v, 2*v+1)
			}
		}
	}
	check(t, r.Close())

	broken := errors.New("broken")
	if _, err := d.Capture(func() error { return errors.Join(d.Fill(z, 0, n), broken) }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	check(t, d.Synchronize())
}

func TestDeviceHasTooLittleMemory(t *testing.T) {
	d := fakecuda.Open(t)
	d.Unpooled = false
	fakecuda.Memory(t, 100<<20) // cuBLAS has 32 MiB of it
	m, err := d.Alloc(32 << 20)
	check(t, err)
	_, err = d.Alloc(40 << 20)
	want := device.MemoryError{Device: "cuda:0", Needed: 40 << 20, Free: 36 << 20, Total: 100 << 20}
	var full *device.MemoryError
	if !errors.As(err, &full) || *full != want {
		t.Fatalf("the error is %v, want %v", err, &want)
	}
	m.Free()
	// The pool frees memory of other sizes.
	m, err = d.Alloc(40 << 20)
	check(t, err)
	m.Free()
}

// Memory that nothing refers to any more is freed before an allocation fails.
func TestDeviceReclaimsMemory(t *testing.T) {
	d := fakecuda.Open(t)
	d.Unpooled = false
	fakecuda.Memory(t, 64<<20)
	for i := range 200 { // each of another size, and all unreferenced
		m, err := d.Alloc(1<<20 + i<<14)
		check(t, err)
		if m.Bytes() != 1<<20+i<<14 {
			t.Fatal("the memory is not what was asked for")
		}
	}
}

func TestDeviceDoesNotLeak(t *testing.T) {
	d := fakecuda.Open(t)
	d.Unpooled = false
	run := func(times int) {
		for i := range times {
			m, err := d.Alloc(256 << (i % 8))
			check(t, err, d.Zero(m.Pointer(), m.Bytes()))
			m.Free()
			if i%100 == 0 {
				r, err := d.Capture(func() error { return d.Fill(m.Pointer(), 1, 4) })
				check(t, err, r.Run(), r.Close())
			}
		}
	}
	run(8)
	bytes, count := fakecuda.Usage()
	used, kept := d.Usage()
	run(10000)
	if u, k := d.Usage(); u != used || k != kept {
		t.Errorf("%d bytes are in use and %d kept, before it were %d and %d", u, k, used, kept)
	}
	if b, c := fakecuda.Usage(); b != bytes || c != count {
		t.Errorf("%d bytes in %d pieces are allocated, before it were %d in %d", b, c, bytes, count)
	}
}

func TestDeviceIsLost(t *testing.T) {
	d := fakecuda.Open(t)
	x := upload(t, d, normal(64, 1))
	sum := func() error {
		return d.Each("sum", 64, device.Arg(x), device.Arg(x), device.Arg(x), device.Int(64))
	}
	fakecuda.Fail(t, 2, fakecuda.IllegalAddress)
	check(t, sum(), sum())
	check(t, sum()) // no call has seen the failure yet
	err := sum()
	if err == nil { // it may show only when the program waits for the device
		err = d.Synchronize()
	}
	if !errors.Is(err, device.ErrLost) || !strings.HasPrefix(err.Error(), "cuda:0: kernel sum: the device failed (CUDA's error ") && !strings.HasPrefix(err.Error(), "cuda:0: the device failed (CUDA's error ") {
		t.Errorf("the error is %v", err)
	}
	_, allocated := d.Alloc(100)
	for what, err := range map[string]error{
		"a launch": sum(), "Synchronize": d.Synchronize(), "Alloc": allocated, "Download": device.Download(d, make([]float32, 64), x),
	} {
		if !errors.Is(err, device.ErrLost) {
			t.Errorf("%s on a lost device returns %v", what, err)
		}
	}
}

func TestDeviceAsEngine(t *testing.T) {
	d := fakecuda.Open(t)
	e := device.NewEngine(d)
	a := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(4, 5), tensor.WithEngine(e))
	b := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(4, 5), tensor.WithEngine(e))
	check(t, e.Memset(a, float32(3)), e.Memcpy(b, a))
	at := func(x *tensor.Dense) device.Pointer { return device.Pointer(x.Uintptr()) }
	check(t, d.Each("sum", 20, device.Arg(at(a)), device.Arg(at(a)), device.Arg(at(b)), device.Int(20)))
	for _, v := range download[float32](t, d, at(a), 20) {
		if v != 6 {
			t.Fatalf("3 + 3 is %g", v)
		}
	}
	check(t, e.Free(a, 80), e.Free(b, 80))
}

// Two goroutines share a device, and two others have one each, all on one GPU.
func TestDeviceIsShared(t *testing.T) {
	d := fakecuda.Open(t)
	others := []*device.Device{d, d, fakecuda.Open(t), fakecuda.Open(t)}
	var all sync.WaitGroup
	for g, d := range others {
		all.Go(func() {
			const n = 300
			want := normal(n, uint64(g))
			m, err := d.Alloc(4 * n)
			if err != nil {
				t.Error(err)
				return
			}
			defer m.Free()
			failed := device.Upload(d, m.Pointer(), want)
			for range 20 { // float32 has room for that
				failed = errors.Join(failed, d.Each("sum", n, device.Arg(m.Pointer()), device.Arg(m.Pointer()), device.Arg(m.Pointer()), device.Int(n)))
			}
			got := make([]float32, n)
			if failed = errors.Join(failed, device.Download(d, got, m.Pointer())); failed != nil {
				t.Error(failed)
			}
			for i := range got {
				if got[i] != want[i]*(1<<20) {
					t.Errorf("goroutine %d: element %d is %g, want %g", g, i, got[i], want[i]*(1<<20))
					return
				}
			}
		})
	}
	all.Wait()
}

func TestClosedDeviceGivesItsMemoryBack(t *testing.T) {
	d := fakecuda.Open(t)
	d.Unpooled = false
	bytes, count := fakecuda.Usage()
	second, err := device.Open("cuda")
	check(t, err)
	used, err := second.Alloc(1000)
	check(t, err)
	kept, err := second.Alloc(5000)
	check(t, err)
	kept.Free()
	check(t, second.Close(), second.Close())
	used.Free()
	if b, c := fakecuda.Usage(); b != bytes || c != count {
		t.Errorf("%d bytes in %d pieces are allocated, before it were %d in %d", b, c, bytes, count)
	}
	check(t, d.Synchronize())
}
