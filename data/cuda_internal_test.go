//go:build cu

package data

import (
	"errors"
	"math"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/internal/rng"
)

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// More points than are on the device at a time.
func TestPCAOnDeviceInChunks(t *testing.T) {
	d := fakecuda.Open(t)
	before := deviceBytes
	deviceBytes = 4 * 5 * 300
	defer func() { deviceBytes = before }()
	m, s := NewMatrix(1000, 5), rng.New(1, rng.Init)
	for i := range m.X {
		m.X[i] = float32(s.Normal() * float64(1+i%5))
	}
	want, err := FitPCA(t.Context(), m, 3, nil)
	must(t, err)
	got, err := FitPCA(t.Context(), m, 3, d)
	must(t, err)
	for i, v := range want.Axes {
		if math.Abs(got.Axes[i]-v) > 1e-12 {
			t.Errorf("component %d of the axes is %g, want %g", i, got.Axes[i], v)
		}
	}
	y, err := want.Transform(t.Context(), m, d)
	must(t, err)
	here, err := want.Transform(t.Context(), m, nil)
	must(t, err)
	for i, v := range here.X {
		if math.Abs(float64(y.X[i]-v)) > 1e-6*(1+math.Abs(float64(v))) {
			t.Fatalf("coordinate %d is %g, want %g", i, y.X[i], v)
		}
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
	d.Notify(func(string) { said++ })
	find := func(name string) (launches, sentences int) {
		launches, sentences = fakecuda.Launches(), said
		values, vectors, err := largestEigen(t.Context(), a, n, k, d)
		must(t, err)
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
