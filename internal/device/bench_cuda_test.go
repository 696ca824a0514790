//go:build cu

package device_test

import (
	"fmt"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

// open returns the device as runs use it, which keep memory and round to TF32.
func open(b *testing.B) *device.Device {
	d := fakecuda.Open(b)
	d.TF32, d.Unpooled = true, false
	return d
}

// repeat times f, b.N times in a row, and returns the seconds of one.
func repeat(b *testing.B, d *device.Device, f func() error) (seconds float64) {
	b.Helper()
	// What is loaded when it is first needed is not timed.
	if err := f(); err != nil {
		b.Fatal(err)
	}
	if err := d.Synchronise(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	if err := d.Synchronise(); err != nil {
		b.Fatal(err)
	}
	return b.Elapsed().Seconds() / float64(b.N)
}

// zeros returns memory full of zeros.
func zeros(b *testing.B, d *device.Device, floats int) device.Pointer {
	b.Helper()
	m, err := d.Alloc(4 * floats)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Free)
	if err := d.Zero(m.Pointer(), 4*floats); err != nil {
		b.Fatal(err)
	}
	return m.Pointer()
}

// BenchmarkDeviceLaunch times the shortest thing that a device can be asked for.
func BenchmarkDeviceLaunch(b *testing.B) {
	d := open(b)
	at := zeros(b, d, 1)
	repeat(b, d, func() error { return d.Fill(at, 1, 1) })
}

// BenchmarkDeviceCopy times copies within the device's memory: what it reads and writes
// at most, to which the rates of kernels compare.
func BenchmarkDeviceCopy(b *testing.B) {
	mib := 512
	if testing.Short() {
		mib = 1
	}
	b.Run(fmt.Sprintf("MiB=%d", mib), func(b *testing.B) {
		d := open(b)
		from, to := zeros(b, d, mib<<18), zeros(b, d, mib<<18)
		s := repeat(b, d, func() error { return d.Copy(to, from, mib<<20) })
		b.ReportMetric(2*float64(mib<<20)/s*1e-9, "GB/s")
	})
}

// BenchmarkDeviceProduct times products of square matrices, with and without TF32: what
// it computes at most.
func BenchmarkDeviceProduct(b *testing.B) {
	n := 8192
	if testing.Short() {
		n = 64
	}
	for _, exact := range []bool{false, true} {
		b.Run(fmt.Sprintf("n=%d/exact=%v", n, exact), func(b *testing.B) {
			d := open(b)
			x, y, z := zeros(b, d, n*n), zeros(b, d, n*n), zeros(b, d, n*n)
			s := repeat(b, d, func() error {
				return d.Multiply(device.Product{M: n, N: n, K: n, Alpha: 1, A: x, LDA: n, B: y, LDB: n, C: z, LDC: n, Exact: exact})
			})
			b.ReportMetric(2*float64(n)*float64(n)*float64(n)/s*1e-12, "TFLOP/s")
		})
	}
}
