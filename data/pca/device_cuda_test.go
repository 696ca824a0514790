//go:build cu

package pca

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"cne/data"
	"cne/data/datatest"
	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/rng"
)

// Components agree with the CPU's for sizes around tiles and slices, and for more points
// than fit on the device at a time.
func TestPCAOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, c := range []struct{ n, d, k, chunk int }{{600, 63, 5, 0}, {513, 65, 65, 0}, {70, 129, 66, 0}, {33, 300, 2, 0}, {2, 1, 1, 0}, {1000, 5, 3, 300}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			if c.chunk > 0 {
				defer func(before int) { deviceBytes = before }(deviceBytes)
				deviceBytes = 4 * c.d * c.chunk
			}
			m, s := data.NewMatrix(c.n, c.d), rng.New(1, rng.Init)
			for i := range m.X {
				m.X[i] = float32(s.Normal() * float64(c.d-i%c.d))
			}
			want, err := Fit(t.Context(), m, c.k, nil)
			datatest.Must(t, err)
			got, err := Fit(t.Context(), m, c.k, d)
			datatest.Must(t, err)
			for a, v := range want.Variance {
				if math.Abs(got.Variance[a]-v) > 1e-12*want.Variance[0] {
					t.Errorf("variance %d is %g, want %g", a, got.Variance[a], v)
				}
			}
			if c.chunk > 0 {
				for i, v := range want.Axes {
					if math.Abs(got.Axes[i]-v) > 1e-12 {
						t.Errorf("number %d of the axes is %g, want %g", i, got.Axes[i], v)
					}
				}
			}
			here, err := want.Transform(t.Context(), m, nil)
			datatest.Must(t, err)
			there, err := want.Transform(t.Context(), m, d)
			datatest.Must(t, err)
			for i, v := range here.X {
				if math.Abs(float64(there.X[i]-v)) > 1e-6*(1+math.Abs(float64(v))) {
					t.Fatalf("coordinate %d is %g, want %g", i, there.X[i], v)
				}
			}
		})
	}
}

// A device multiplies with the same bounds of residuals.
func TestSubspaceEigenOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	if fakecuda.Checked() {
		t.Skip("that takes a minute; TestLargestEigenOnDevice launches the same")
	}
	testSubspaceEigen(t, d)
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

// A device multiplies where few eigenvectors of a large matrix are wanted. If it has no room
// for the matrix the CPU does, and a sentence says so.
func TestLargestEigenOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	const n, k = 515, 8
	wanted := make([]float64, n)
	for i := range wanted {
		wanted[i] = math.Pow(2, -float64(i))
	}
	a := symmetric(5, wanted)
	said := 0
	d.OnNote(func(string) { said++ })
	find := func(name string) (launches, sentences int) {
		launches, sentences = fakecuda.Launches(), said
		values, vectors, err := largestEigen(t.Context(), a, n, k, d)
		datatest.Must(t, err)
		checkEigen(t, name, a, wanted, values, vectors)
		return fakecuda.Launches() - launches, said - sentences
	}
	launches, sentences := find("enough memory")
	if fakecuda.InUse() && (launches == 0 || sentences != 0) {
		t.Errorf("with enough memory %d kernels are launched, and %d sentences said", launches, sentences)
	}
	used, _ := fakecuda.Usage()
	fakecuda.Memory(t, used+1<<20)
	if launches, sentences := find("little memory"); launches != 0 || sentences != 1 {
		t.Errorf("with little memory %d kernels are launched, and %d sentences said", launches, sentences)
	}
	fakecuda.Memory(t, 1<<30)
	fakecuda.Fail(t, 3, fakecuda.LaunchFailed)
	if _, _, err := largestEigen(t.Context(), a, n, k, d); !errors.Is(err, device.ErrLost) {
		t.Errorf("if the device fails the error is %v", err)
	}
}

func TestPCAContextOnDevice(t *testing.T) { testPCAContext(t, fakecuda.Open(t)) }
