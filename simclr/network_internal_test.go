package simclr

import (
	"slices"
	"testing"

	"cne/data/images"
	"cne/internal/rng"
	"cne/model"
)

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The first half of a batch is view 0 of its images, the second view 1. A view depends on
// its image's row, not on the batch or the subset.
func TestViewsOfABatch(t *testing.T) {
	images := &images.Set{N: 9, H: 6, W: 6, C: 3}
	s := rng.New(1, rng.Sample)
	for range 9 * 6 * 6 * 3 {
		images.Pixels = append(images.Pixels, byte(s.Uint64()))
	}
	p := PaperPretraining()
	p.Augmentation.Size, p.BatchSize, p.Seed, p.Network = 4, 2, 11, model.ResNetOptions{Width: 1}
	n, err := p.stage(p.stages(), 0, nil, images, []int32{8, 2, 5, 7})
	must(t, err)
	heads, tails := edges(4)
	if !slices.Equal(heads, []int32{0, 1, 2, 3}) || !slices.Equal(tails, []int32{4, 5, 6, 7}) {
		t.Fatalf("edges from %v to %v", heads, tails)
	}
	const epoch, size = 3, 3 * 4 * 4
	source := &viewSource{Network: n}
	if got := source.Shape(); got != [3]int{3, 4, 4} {
		t.Fatalf("views of shape %v", got)
	}
	got := make([]float32, 6*size)
	must(t, source.ImagesTo(got, []int32{2, 0, 1, 6, 4, 5}, epoch))
	want := make([]float32, size)
	for i, x := range []struct{ row, view int }{{5, 0}, {8, 0}, {2, 0}, {5, 1}, {8, 1}, {2, 1}} {
		must(t, p.Augmentation.ViewTo(want, images.Image(x.row), 6, 6, ViewStream(11, epoch, x.row, x.view)))
		if !slices.Equal(got[i*size:(i+1)*size], want) {
			t.Errorf("image %d of the batch is not view %d of row %d", i, x.view, x.row)
		}
	}
	// A smaller batch comes after it.
	must(t, source.ImagesTo(got[:2*size], []int32{3, 7}, epoch))
	must(t, p.Augmentation.ViewTo(want, images.Image(7), 6, 6, ViewStream(11, epoch, 7, 0)))
	if !slices.Equal(got[:size], want) {
		t.Error("image 0 of the smaller batch is not view 0 of row 7")
	}
}
