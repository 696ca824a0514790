//go:build cu

package op_test

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/device"
	"cne/internal/device/fakecuda"
	"cne/model/op"
)

// far moves each channel of images away from 0 by another distance.
func far(x *op.Array, by float32) *op.Array {
	c := x.Shape()[len(x.Shape())-1]
	data := op.Data[float32](x)
	for i := range data {
		data[i] += by * float32(i%c+1)
	}
	return x
}

func TestBatchNormOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, c := range []struct {
		shape    [4]int
		by       float32 // see far
		act      op.Activation
		evaluate bool
		within   float64
	}{
		{[4]int{2, 1, 1, 1}, 0, op.NoActivation, false, 1e-4},
		{[4]int{1, 1, 5, 4}, 0, op.ReLUActivation, false, 1e-4},
		{[4]int{3, 5, 3, 3}, 1, op.ReLUActivation, false, 2e-5},
		{[4]int{3, 5, 3, 8}, 1, op.NoActivation, false, 2e-5},
		{[4]int{5, 7, 3, 257}, 0, op.ReLUActivation, false, 2e-5}, // more than one strip
		{[4]int{2, 3, 5, 132}, 0, op.ReLUActivation, false, 2e-5},
		{[4]int{9, 16, 16, 4}, 0, op.ReLUActivation, false, 2e-5}, // several parts
		{[4]int{3, 17, 17, 6}, 0, op.NoActivation, false, 2e-5},
		{[4]int{4, 8, 8, 8}, 3000, op.ReLUActivation, false, 2e-5}, // far from 0
		{[4]int{4, 8, 8, 8}, 3000, op.NoActivation, false, 2e-5},
		{[4]int{3, 5, 3, 3}, 1, op.ReLUActivation, true, 2e-5},
		{[4]int{3, 5, 3, 12}, 1, op.NoActivation, true, 2e-5},
		{[4]int{0, 5, 3, 12}, 0, op.ReLUActivation, true, 0},
	} {
		t.Run(fmt.Sprint(c.shape, c.by, c.act, c.evaluate), func(t *testing.T) {
			channels := c.shape[3]
			x, g := far(filled(t, 1, c.shape[:]...), c.by), filled(t, 2, c.shape[:]...)
			scale, shift := filled(t, 3, channels), filled(t, 4, channels)
			mean, variance := filled(t, 5, channels), filled(t, 6, channels)
			for k, v := range op.Data[float32](variance) {
				op.Data[float32](variance)[k] = 0.1 + v*v
			}
			var stats []*op.BatchStats
			where := []*device.Device{device.CPU(), d}
			onBoth(t, d, c.within, func(graph *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
				s, err := op.NewBatchStats(where[len(stats)], tensor.Float32, channels)
				must(t, err)
				if c.evaluate {
					s.Evaluate = true
					for to, from := range map[*op.Array]*op.Array{s.Mean: mean, s.Var: variance} {
						must(t, op.Copy(to, from))
					}
				}
				stats = append(stats, s)
				nodes, in := inputs(graph, x, scale, shift, g)
				y := gorgonia.Must(op.BatchNorm(nodes[0], nodes[1], nodes[2], s, c.act))
				outputs := append(gorgonia.Nodes{y}, weighted(t, y, nodes[3], nodes[:3]...)...)
				// The end of a residual block, which has the same statistics and, but for a
				// ReLU's, the same gradient.
				sum := gorgonia.Must(op.BatchNormAddReLU(nodes[0], nodes[1], nodes[2], nodes[3], s))
				return in, append(outputs, sum)
			})
			compareArrays(t, "the running mean", onHost(t, stats[1].Mean), stats[0].Mean, 1e-5)
			compareArrays(t, "the running variance", onHost(t, stats[1].Var), stats[0].Var, max(c.within, 1e-6))
		})
	}
}

func TestImageLayoutsOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	for _, shape := range [][]int{{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 4, 2, 2}, {2, 257, 3, 1}, {0, 3, 2, 2}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			x := filled(t, 1, shape...)
			gradientsOnBoth(t, d, 0, func(in gorgonia.Nodes) (*gorgonia.Node, error) { return op.ChannelsLast(in[0]) }, 1, x)
			gradientsOnBoth(t, d, 1e-6, func(in gorgonia.Nodes) (*gorgonia.Node, error) { return op.GlobalAvgPool(in[0]) }, 1, x)
		})
	}
}

// ways opens the device with cuDNN, and without. Its notes on convolutions that cuDNN
// does not support go to the test's log; behind the stand-in these are the ones with
// two columns.
func ways(t *testing.T, test func(t *testing.T, d *device.Device)) {
	twoColumns := regexp.MustCompile(`with \[\d+,\d+,2,`)
	for name, wanted := range map[string]bool{"cuDNN": true, "patches": false} {
		t.Run(name, func(t *testing.T) {
			fakecuda.Convolutions(t, wanted)
			d := fakecuda.Open(t)
			d.OnNote(func(sentence string) {
				t.Log(sentence)
				if fakecuda.InUse() && strings.Contains(sentence, "no way") && !twoColumns.MatchString(sentence) {
					t.Error("the stand-in has one")
				}
			})
			test(t, d)
			switch has := strings.Contains(d.Properties().Software, "cuDNN"); {
			case wanted && !has && !fakecuda.InUse():
				t.Skipf("which was tested without cuDNN: the device has %s", d.Properties().Software)
			case has != wanted:
				t.Errorf("the device has %s", d.Properties().Software)
			}
		})
	}
}

// convolved adds a convolution with both gradients to a graph.
func (c convCase) convolved(t *testing.T, g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
	t.Helper()
	oh, ow := c.result()
	x, w := filled(t, 1, c.n, c.h, c.w, c.c), filled(t, 2, c.k, c.c, c.kh, c.kw)
	of := filled(t, 3, c.n, oh, ow, c.k)
	nodes, in := inputs(g, x, w, of)
	y := gorgonia.Must(op.Conv2d(nodes[0], nodes[1], c.stride, c.pad, op.Float32))
	return in, append(gorgonia.Nodes{y}, weighted(t, y, nodes[2], nodes[:2]...)...)
}

// deviceConvCases are the convolutions that a device computes, in either precision.
var deviceConvCases = append([]convCase{
	{0, 3, 8, 8, 4, 3, 3, 1, 1},
	{3, 4, 9, 7, 5, 3, 3, 1, 1}, // five output channels: see the stand-in for cuDNN
	{2, 8, 6, 6, 12, 3, 3, 2, 1},
	{2, 16, 6, 6, 12, 3, 3, 2, 1},
	{2, 16, 8, 8, 32, 3, 3, 1, 1},
	{5, 8, 7, 5, 16, 1, 1, 2, 0},
	{5, 8, 7, 5, 16, 1, 1, 1, 0},
	{1, 33, 3, 3, 31, 3, 3, 2, 1},
	{3, 4, 5, 6, 3, 1, 2, 1, 0}, // the stand-in knows no two columns
}, convCases...)

func TestConv2dOnDevice(t *testing.T) {
	ways(t, func(t *testing.T, d *device.Device) {
		for _, c := range deviceConvCases {
			t.Run(c.String(), func(t *testing.T) {
				onBoth(t, d, 2e-5, func(g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
					return c.convolved(t, g)
				})
			})
		}
	})
}

// im2col in several parts, the last one smaller.
func TestConv2dInTurnOnDevice(t *testing.T) {
	fakecuda.Convolutions(t, false)
	d := fakecuda.Open(t)
	for _, bytes := range []int{1, 3 * 4 * 25 * 9 * 4} {
		defer op.SetIm2colBytes(bytes)()
		onBoth(t, d, 2e-5, func(g *gorgonia.ExprGraph) (map[*gorgonia.Node]*op.Array, gorgonia.Nodes) {
			return convCase{7, 4, 5, 5, 3, 3, 3, 1, 1}.convolved(t, g)
		})
	}
}

// A view keeps its memory alive, even where nothing else refers to it.
func TestViewKeepsMemoryOnDevice(t *testing.T) {
	d := fakecuda.Open(t)
	view := func() *op.Array {
		var arrays [3]*op.Array
		for i := range arrays {
			var err error
			arrays[i], err = op.NewArray(d, tensor.Float32, 4, 3)
			must(t, err)
		}
		err := errors.Join(op.Copy(arrays[0], filled(t, 1, 4, 3)), arrays[1].View(arrays[0], 3, 3, 3), arrays[2].View(arrays[1], 3, 2, 3))
		must(t, err)
		return arrays[2] // a view of a view
	}()
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	want := filled(t, 1, 4, 3)
	for i, v := range op.Data[float32](onHost(t, view)) {
		if w := op.Data[float32](want)[6+i]; v != w {
			t.Fatalf("element %d is %g, want %g", i, v, w)
		}
	}
}
