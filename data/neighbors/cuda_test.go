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

// The result is the CPU's to the last bit, whatever the points are.
func TestKNNOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, kind := range kinds {
		for _, size := range []struct{ n, d, k int }{{80, 1, 3}, {130, 2, 15}, {300, 8, 15}, {270, 9, 15}, {140, 33, 1}, {310, 12, 60}} {
			t.Run(fmt.Sprintf("%s/n=%d,D=%d,k=%d", kind.name, size.n, size.d, size.k), func(t *testing.T) {
				m := data.NewMatrix(size.n, size.d)
				kind.fill(m, rand.New(rand.NewPCG(uint64(size.n), 7)))
				want := knnTree(m, size.k)
				got, _, err := knnRemote(d, m, size.k)
				fatal(t, err)
				same(t, got, want)
			})
		}
	}
}

// Several blocks of points, and sizes about their edges.
func TestKNNOnDeviceInBlocks(t *testing.T) {
	d := fakecuda.Open(t)
	for _, size := range []struct{ n, d, k int }{{513, 9, 5}, {650, 12, 128}, {2049, 10, 5}, {1025, 3, 5}} {
		m := normal(size.n, size.d, 4)
		copy(m.Row(size.n-1), m.Row(0)) // a pair in the first and the last block
		got, searched, err := knnRemote(d, m, size.k)
		fatal(t, err)
		want, err := KNN(m, size.k)
		fatal(t, err)
		same(t, got, want)
		if searched > 0 {
			t.Errorf("n=%d, D=%d: %d normal points were searched in the tree", size.n, size.d, searched)
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
		got, err := KNNOn(c.on, m, c.k)
		fatal(t, err)
		want, err := KNN(m, c.k)
		fatal(t, err)
		same(t, got, want)
	}
	if _, err := KNNOn(d, m, 60); err == nil {
		t.Error("60 neighbours among 60 points are found")
	}
	for k, want := range map[int]bool{15: true, 128: true, mostRoom - slack - warp: true, mostRoom - slack - warp + 1: false} {
		if got := remotely(d, 1<<20, k); got != want {
			t.Errorf("a search for %d neighbours of many points is remote: %v", k, got)
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
			index, err := NewIndexOn(d, base)
			fatal(t, err)
			got, err := index.Search(points, size.k)
			fatal(t, err)
			want, err := Search(base, points, size.k)
			fatal(t, err)
			same(t, got, want)
			// The whole base, too many for the accelerator.
			got, err = index.Search(points, size.n)
			fatal(t, err)
			if want, err = SearchOn(d, base, points, size.n); err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
		}
	}
	base, points := normal(130, 9, 1), normal(queryBlock+4, 9, 2)
	got, err := SearchOn(d, base, points, 3)
	fatal(t, err)
	want, err := Search(base, points, 3)
	fatal(t, err)
	same(t, got, want)
}

func TestMemoryOnDeviceIsGivenBack(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(300, 10, 1)
	_, err := KNNOn(d, m, 5)
	fatal(t, err)
	_, err = SearchOn(d, m, m, 5)
	fatal(t, err)
	_, err = RanksOn(d, m, someOthers(300, 2, rand.New(rand.NewPCG(1, 1))), 2)
	fatal(t, err)
	if used, _ := d.Usage(); used != 0 {
		t.Errorf("%d bytes of the device's memory are in use", used)
	}
}

func TestFailuresOnDeviceAreReported(t *testing.T) {
	d := fakecuda.Open(t)
	m := normal(300, 10, 1)
	fakecuda.Memory(t, 100<<10)
	var full *device.MemoryError
	if _, err := KNNOn(d, m, 5); !errors.As(err, &full) {
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
			got, err := RanksOn(d, m, index, size.k)
			fatal(t, err)
			want, err := Ranks(m, index, size.k)
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
	got, err := RanksOn(d, m, index, 3)
	fatal(t, err)
	want, err := Ranks(m, index, 3)
	fatal(t, err)
	if !slices.Equal(got, want) {
		t.Error("the ranks differ")
	}
}
