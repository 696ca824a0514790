//go:build cu

package device_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

// open returns the device as runs use it: pooled, and with TF32.
func open(b *testing.B) *device.Device {
	d := fakecuda.Open(b)
	d.TF32, d.Unpooled = true, false
	return d
}

// repeat calls f b.N times, and returns the seconds of one call.
func repeat(b *testing.B, d *device.Device, f func() error) (seconds float64) {
	b.Helper()
	// The first call, which loads kernels and libraries, is not timed.
	check(b, f())
	check(b, d.Synchronize())
	b.ResetTimer()
	for range b.N {
		check(b, f())
	}
	check(b, d.Synchronize())
	b.StopTimer()
	return b.Elapsed().Seconds() / float64(b.N)
}

// random returns memory full of random numbers: zeros take a GPU less power, which may
// raise its clock.
func random(b *testing.B, d *device.Device, floats int) device.Pointer {
	b.Helper()
	m, err := d.Alloc(4 * floats)
	check(b, err)
	b.Cleanup(m.Free)
	rng := rand.New(rand.NewPCG(1, 2))
	some := make([]float32, min(floats, 1<<20))
	for first := 0; first < floats; first += len(some) {
		some = some[:min(len(some), floats-first)]
		for i := range some {
			some[i] = rng.Float32() - 0.5
		}
		check(b, device.Upload(d, m.Pointer().At(first, 4), some))
	}
	return m.Pointer()
}

// BenchmarkDeviceLaunch times a kernel that sets one number.
func BenchmarkDeviceLaunch(b *testing.B) {
	d := open(b)
	x := random(b, d, 1)
	repeat(b, d, func() error { return d.Each("sum", 1, device.Arg(x), device.Arg(x), device.Arg(x), device.Int(1)) })
}

// BenchmarkDeviceCopy times copies within the device's memory, whose bandwidth bounds
// kernels.
func BenchmarkDeviceCopy(b *testing.B) {
	mib := 512
	if testing.Short() {
		mib = 1
	}
	b.Run(fmt.Sprintf("MiB=%d", mib), func(b *testing.B) {
		d := open(b)
		from, to := random(b, d, mib<<18), random(b, d, mib<<18)
		s := repeat(b, d, func() error { return d.Copy(to, from, mib<<20) })
		b.ReportMetric(2*float64(mib<<20)/s*1e-9, "GB/s")
	})
}

// BenchmarkDeviceProduct times products of square matrices with and without TF32, and of
// bfloat16. Their rates bound layers.
func BenchmarkDeviceProduct(b *testing.B) {
	n := 8192
	if testing.Short() {
		n = 64
	}
	for _, exact := range []bool{false, true} {
		unit := "TFLOP/s-tf32"
		if exact {
			unit = "TFLOP/s"
		}
		b.Run(fmt.Sprintf("n=%d/exact=%v", n, exact), func(b *testing.B) {
			d := open(b)
			x, y, z := random(b, d, n*n), random(b, d, n*n), random(b, d, n*n)
			s := repeat(b, d, func() error {
				return d.Multiply(device.Product{M: n, N: n, K: n, Alpha: 1, A: x, LDA: n, B: y, LDB: n, C: z, LDC: n, Exact: exact})
			})
			b.ReportMetric(2*float64(n)*float64(n)*float64(n)/s*1e-12, unit)
		})
	}
	b.Run(fmt.Sprintf("n=%d/bf16", n), func(b *testing.B) {
		d := open(b)
		x, y, z := halves(b, d, n*n), halves(b, d, n*n), halves(b, d, n*n)
		s := repeat(b, d, func() error {
			return d.Multiply(device.Product{M: n, N: n, K: n, Alpha: 1, A: x, LDA: n, B: y, LDB: n, C: z, LDC: n, BFloat16: true, RoundC: true})
		})
		b.ReportMetric(2*float64(n)*float64(n)*float64(n)/s*1e-12, "TFLOP/s-bf16")
	})
}

// halves returns n random numbers of bfloat16 on a device.
func halves(b *testing.B, d *device.Device, n int) device.Pointer {
	b.Helper()
	m, err := d.Alloc(2 * n)
	check(b, err)
	b.Cleanup(m.Free)
	var some []uint16
	for _, v := range normal(min(n, 1<<20), 1) {
		_, bits := half(v)
		some = append(some, bits)
	}
	for first := 0; first < n; first += len(some) {
		check(b, device.Upload(d, m.Pointer().At(first, 2), some[:min(len(some), n-first)]))
	}
	return m.Pointer()
}
