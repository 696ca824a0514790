package simclr_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"cne/data/images"
	"cne/model"
	"cne/simclr"
	"cne/train"
)

// A narrow network is pretrained on images that need no labels, saved, loaded
// again, and asked for representations.
func ExamplePretraining() {
	images := &images.Set{C: 3, N: 64, H: 8, W: 8}
	for i := range images.N {
		for p := range 64 {
			images.Pixels = append(images.Pixels, byte(4*i), byte(30*(p%8)), byte(255-4*i))
		}
	}
	pretraining := simclr.PaperPretraining()
	pretraining.Augmentation.Size = 8
	pretraining.Augmentation.Jitter, pretraining.Augmentation.Gray = 0, 0 // colour is all there is
	pretraining.Network = model.ResNetOptions{Width: 4}
	pretraining.BatchSize, pretraining.Epochs, pretraining.WarmUp = 16, 10, 1
	var losses []float64
	pretraining.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
		losses = append(losses, s.Loss)
		return nil
	})}
	network, result, err := pretraining.Run(context.Background(), images, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Epochs, "epochs; the loss falls:", losses[9] < losses[0])

	dir, err := os.MkdirTemp("", "cne")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	if err := network.Save(path, &model.Description{Images: pretraining.Augmentation.Input()}); err != nil {
		fmt.Println(err)
		return
	}
	saved, err := model.Load(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	plain := simclr.EvalTransform(saved.Images)
	input := make([]float32, 2*3*plain.Size*plain.Size)
	if err := plain.EvalBatchTo(input, images, []int32{0, 63}); err != nil {
		fmt.Println(err)
		return
	}
	representations := make([]float32, 2*saved.ResNet.Width())
	if err := saved.ResNet.RepresentTo(representations, input, plain.Size, plain.Size); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(representations), "numbers for two images")
	// Output:
	// 10 epochs; the loss falls: true
	// 64 numbers for two images
}

// Two views of each of two small images, as a pair for contrastive learning.
func Example() {
	images := &images.Set{C: 3, N: 2, H: 8, W: 8}
	for i := range images.N {
		for p := range 64 {
			images.Pixels = append(images.Pixels, byte(30*(p%8)), byte(30*(p/8)), byte(200*i)) // red to the right, green downwards
		}
	}
	augmentation := simclr.Paper()
	augmentation.Size = 4

	const epoch, seed = 0, 1
	index := []int32{0, 1}
	for view := range 2 {
		batch := make([]float32, len(index)*3*4*4)
		if err := augmentation.BatchTo(batch, images, index, epoch, view, seed); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("view %d of image 1, upper row of red: %.2f\n", view, batch[48:52])
	}
	// Output:
	// view 0 of image 1, upper row of red: [-0.25 0.84 1.94 1.89]
	// view 1 of image 1, upper row of red: [-1.11 -1.73 -2.36 -2.43]
}
