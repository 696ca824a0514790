//go:build cu

package model_test

import (
	"errors"
	"slices"
	"testing"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model"
)

// A network that does not fit a device's memory stays where it was.
func TestNetworksThatDoNotFitOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	if !fakecuda.InUse() {
		t.Skip("a GPU's memory cannot be changed")
	}
	mlp := newMLP[float32](t, 5, []int{7}, 3, 1)
	points := make([]float32, 4*5)
	for i := range points {
		points[i] = float32(i%7) - 3
	}
	resnet := newResNet[float32](t, model.ResNetOptions{Width: 2, Hidden: 4, Out: 3}, 1)
	images := make([]float32, 2*3*8*8)
	for i := range images {
		images[i] = float32(i%11) / 11
	}
	for name, n := range map[string]struct {
		use     func(d *model.Device) error
		compute func() ([]float32, error)
	}{
		"MLP": {mlp.UseDevice, func() ([]float32, error) {
			y := make([]float32, 4*3)
			return y, mlp.ProjectTo(y, points)
		}},
		"ResNet": {resnet.UseDevice, func() ([]float32, error) {
			y := make([]float32, 2*resnet.Width())
			return y, resnet.RepresentTo(y, images, 8, 8)
		}},
	} {
		want, err := n.compute()
		must(t, err)
		failures := 0
		for more := int64(0); ; more += 64 + more/2 {
			used, _ := fakecuda.Usage()
			fakecuda.Memory(t, used+more)
			failed := n.use(d)
			fakecuda.Memory(t, 1<<30)
			if failed == nil {
				break
			}
			failures++
			if full := new(device.MemoryError); !errors.As(failed, &full) {
				t.Fatalf("%s: %v", name, failed)
			}
			if got, err := n.compute(); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: after %v it computes something else (%v)", name, failed, err)
			}
		}
		if failures < 3 {
			t.Errorf("%s: the memory was at an end only %d times", name, failures)
		}
		must(t, n.use(device.CPU()))
		if got, err := n.compute(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: back on the CPU it computes something else (%v)", name, err)
		}
	}
}
