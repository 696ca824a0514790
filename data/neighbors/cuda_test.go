//go:build cu

package neighbors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"cne/data"
	"cne/internal/device"
	"cne/internal/device/fakecuda"
)

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// knnOnDevice is KNN by ranking a device's candidates. It also returns how many
// points had to be searched in the tree.
func knnOnDevice(t *testing.T, d *data.Device, m *data.Matrix, k int) (nb *Neighbors, improved int) {
	t.Helper()
	b, err := newDeviceBlocks(t.Context(), d, m)
	fatal(t, err)
	defer b.free()
	x := treeIndex(m)
	x.candidates, x.frame = b, &b.frame
	nb = newNeighbors(m.N, k)
	improved, err = x.findAmongCandidates(t.Context(), nb, m, true)
	fatal(t, err)
	return nb, improved
}

// The result is the CPU's, bit for bit, whatever the points are.
func TestKNNOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, kind := range kinds {
		for _, size := range []struct{ n, d, k int }{{80, 1, 3}, {130, 2, 15}, {300, 8, 15}, {270, 9, 15}, {140, 33, 1}, {310, 12, 60}} {
			t.Run(fmt.Sprintf("%s/n=%d,D=%d,k=%d", kind.name, size.n, size.d, size.k), func(t *testing.T) {
				m := data.NewMatrix(size.n, size.d)
				kind.fill(m, rand.New(rand.NewPCG(uint64(size.n), 7)))
				want := knnTree(t, m, size.k)
				got, _ := knnOnDevice(t, d, m, size.k)
				same(t, got, want)
			})
		}
	}
}

// Several blocks of points, and sizes around those of blocks.
func TestKNNOnDeviceInBlocks(t *testing.T) {
	d := fakecuda.Open(t)
	for _, size := range []struct{ n, d, k int }{{513, 9, 5}, {650, 12, 128}, {2049, 10, 5}, {1025, 3, 5}} {
		m := normal(size.n, size.d, 4)
		copy(m.Row(size.n-1), m.Row(0)) // a pair in the first and the last block
		got, improved := knnOnDevice(t, d, m, size.k)
		want, err := KNN(t.Context(), m, size.k, Options{})
		fatal(t, err)
		same(t, got, want)
		if improved > 0 {
			t.Errorf("n=%d, D=%d: %d normal points were searched in the tree", size.n, size.d, improved)
		}
	}
}

func TestKNNOnDeviceChoosesTheCPU(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(60, 10, 1)
	for _, c := range []struct {
		on *device.Device
		k  int
	}{{nil, 3}, {device.CPU(), 3}, {d, 40}, {d, 15}} {
		got, err := KNN(t.Context(), m, c.k, Options{Device: c.on})
		fatal(t, err)
		want, err := KNN(t.Context(), m, c.k, Options{})
		fatal(t, err)
		same(t, got, want)
	}
	if _, err := KNN(t.Context(), m, 60, Options{Device: d}); err == nil {
		t.Error("60 neighbours among 60 points are found")
	}
	for k, want := range map[int]bool{15: true, 128: true, deviceMaxK: true, deviceMaxK + 1: false} {
		if got := roomFor(k+slack) <= maxRoom; got != want {
			t.Errorf("a device has room for the candidates of %d neighbours: %v", k, got)
		}
	}
}

func TestSearchOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, kind := range kinds {
		for _, size := range []struct{ n, d, k int }{{150, 2, 4}, {260, 9, 15}, {200, 20, 3}} {
			base := data.NewMatrix(size.n, size.d)
			kind.fill(base, rand.New(rand.NewPCG(9, uint64(size.d))))
			points := queriesFor(base, kind.fill)
			index, err := NewIndex(t.Context(), base, Options{Device: d})
			fatal(t, err)
			got, err := index.Search(t.Context(), points, size.k)
			fatal(t, err)
			want, err := Search(t.Context(), base, points, size.k, Options{})
			fatal(t, err)
			same(t, got, want)
			// The whole base, too many for the device.
			got, err = index.Search(t.Context(), points, size.n)
			fatal(t, err)
			if want, err = Search(t.Context(), base, points, size.n, Options{Device: d}); err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
		}
	}
	base, points := normal(130, 9, 1), normal(queryBlock+4, 9, 2)
	got, err := Search(t.Context(), base, points, 3, Options{Device: d})
	fatal(t, err)
	want, err := Search(t.Context(), base, points, 3, Options{})
	fatal(t, err)
	same(t, got, want)
}

func TestMemoryOnDeviceIsGivenBack(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(300, 10, 1)
	_, err := KNN(t.Context(), m, 5, Options{Device: d})
	fatal(t, err)
	_, err = Search(t.Context(), m, m, 5, Options{Device: d})
	fatal(t, err)
	_, err = Ranks(t.Context(), m, someOthers(300, 2, rand.New(rand.NewPCG(1, 1))), 2, Options{Device: d})
	fatal(t, err)
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

func TestContextOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	testContext(t, Options{Device: d})
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

func TestFailuresOnDeviceAreReported(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(300, 10, 1)
	fakecuda.Memory(t, 100<<10)
	var full *device.MemoryError
	if _, err := KNN(t.Context(), m, 5, Options{Device: d}); !errors.As(err, &full) {
		t.Errorf("with too little memory the error is %v", err)
	}
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

func TestRanksOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, kind := range kinds {
		for _, size := range []struct{ n, d, k int }{{2, 1, 1}, {60, 2, 15}, {130, 9, 3}, {257, 33, 8}, {150, 20, 40}} {
			m := data.NewMatrix(size.n, size.d)
			r := rand.New(rand.NewPCG(5, uint64(size.d)))
			kind.fill(m, r)
			index := someOthers(size.n, size.k, r)
			got, err := Ranks(t.Context(), m, index, size.k, Options{Device: d})
			fatal(t, err)
			want, err := Ranks(t.Context(), m, index, size.k, Options{})
			fatal(t, err)
			if !slices.Equal(got, want) {
				t.Errorf("%s, n=%d, D=%d, k=%d: the ranks differ", kind.name, size.n, size.d, size.k)
			}
		}
	}
}

// Several blocks of points and of queries.
func TestRanksOnDeviceInBlocks(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(4100, 9, 3)
	index := someOthers(m.N, 3, rand.New(rand.NewPCG(1, 2)))
	got, err := Ranks(t.Context(), m, index, 3, Options{Device: d})
	fatal(t, err)
	want, err := Ranks(t.Context(), m, index, 3, Options{})
	fatal(t, err)
	if !slices.Equal(got, want) {
		t.Error("the ranks differ")
	}
}
