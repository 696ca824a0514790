package op

import (
	"testing"

	"gorgonia.org/tensor"
)

// The scratch memory of convolutions of whole images is what they allocate.
func TestScratchOfWholeImages(t *testing.T) {
	const n, c, k = 5, 32, 64
	for _, precision := range []Precision{Float32, BFloat16} {
		for part, name := range map[convPart]string{convResult: "result", convImages: "images", convWeights: "weights"} {
			images, weights, result := zeros(t, n, 2, 2, c), zeros(t, k, c, 3, 3), zeros(t, n, 2, 2, k)
			g, err := newWindows(images, weights, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			memory := singleWhole.Get()
			*memory = wholeMemory[float32]{}
			singleWhole.Put(memory)
			new(convolution).run(g, precision, part, images, weights, result)
			memory = singleWhole.Get()
			got := 4 * int64(len(memory.matrix)+len(memory.left)+len(memory.right))
			singleWhole.Put(memory)
			if want := convScratch(images, weights, 1, 1, precision, part); got != want || got == 0 {
				t.Errorf("%v, %s: %d bytes, estimated %d", precision, name, got, want)
			}
		}
	}
}

func zeros(t *testing.T, shape ...int) *Array {
	t.Helper()
	a, err := NewArray(nil, tensor.Float32, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
