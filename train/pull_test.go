package train_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"cne/model"
	"cne/model/op"
	"cne/train"
)

// pulled trains 200 points on a ring and returns the positions before and after.
func pulled[T op.Float](t *testing.T, loss op.Loss, d int, lr float64, epochs int, change func(*train.Options)) (before, after []float64) {
	t.Helper()
	heads, tails := ring(200, 5)
	o := train.Options{Seed: 3, Phases: []train.Phase{{Epochs: epochs, LR: lr, Negatives: 5}}, Towards: normal[float32](200, d, 9)}
	change(&o)
	start := make([]T, 200*d)
	for i, v := range o.Towards {
		start[i] = T(min(v, 9)) + T(i%7)/7 // not at an outlier
	}
	m, err := model.NewEmbedding(start, d, op.ContrastiveOptions{Loss: loss, Clamp: 1e-10})
	must(t, err)
	list := func() []float64 {
		var y []float64
		for _, v := range m.Table() {
			y = append(y, float64(v))
		}
		return y
	}
	before = list()
	trained(t, m, heads, tails, o)
	return before, list()
}

// shape returns the sum of squared distances of y from its mean, and from the nearest scaled
// and shifted t.
func shape(y []float64, t []float32, d int) (squares, rest float64) {
	var products, square float64
	for j := range d {
		var meanY, meanT float64
		for i := j; i < len(y); i += d {
			meanY += y[i] * float64(d) / float64(len(y))
			meanT += float64(t[i]) * float64(d) / float64(len(y))
		}
		for i := j; i < len(y); i += d {
			a, b := y[i]-meanY, float64(t[i])-meanT
			squares, products, square = squares+a*a, products+a*b, square+b*b
		}
	}
	return squares, squares - products*products/square
}

// With a small rate, a pull adds to a step what finite differences of its term say.
func TestPullIsTheGradientOfItsTerm(t *testing.T) {
	const lr = 1e-5
	for _, loss := range op.Losses() {
		for _, d := range []int{1, 2, 3} {
			towards := normal[float32](200, d, 9)
			before, plain := pulled[float64](t, loss, d, lr, 1, func(o *train.Options) { o.FixZ = loss == op.NC })
			_, with := pulled[float64](t, loss, d, lr, 1, func(o *train.Options) { o.Phases[0].Pull, o.FixZ = 0.1, loss == op.NC })
			// V, of every other edge or so.
			heads, tails := ring(200, 5)
			c := map[op.Loss]float64{op.Neg: 1, op.NC: 5}[loss]
			var attraction float64
			for k := 0; k < 256; k++ {
				i, j := int(heads[k*2000/256]), int(tails[k*2000/256])
				var d2 float64
				for a := range d {
					v := plain[i*d+a] - plain[j*d+a]
					d2 += v * v
				}
				slope := 1.
				if q := 1 / (1 + d2); c > 0 {
					slope = c / (q + c)
				}
				attraction += 2 * d2 / (1 + d2) * slope / 256
			}
			squares, _ := shape(plain, towards, d)
			term := func(y []float64) float64 {
				_, rest := shape(y, towards, d)
				return 2000 * 10 * 0.1 * attraction * rest / squares // 2000 edges
			}
			for _, i := range []int{0, 7, 200*d - 1} {
				const h = 1e-4
				y := slices.Clone(plain)
				y[i] += h
				up := term(y)
				y[i] -= 2 * h
				want := -lr * (up - term(y)) / (2 * h)
				if got := with[i] - plain[i]; math.Abs(got-want) > 2e-3*math.Abs(want)+1e-12 {
					t.Errorf("%v in %d dimensions, coordinate %d: the pull moves it by %g, want %g", loss, d, i, got, want)
				}
			}
			if slices.Equal(before, plain) {
				t.Errorf("%v: nothing moved", loss)
			}
		}
	}
}

// Whatever the way of training, a huge pull gives the positions to pull towards, scaled and
// shifted; a stronger one comes nearer to them, and the same strength about as near.
func TestPullReachesItsTarget(t *testing.T) {
	towards := make([]float32, 400) // a figure of eight, which a ring avoids
	for i := range 200 {
		angle := 2 * math.Pi * float64(i) / 200
		towards[2*i], towards[2*i+1] = float32(math.Cos(angle)), float32(math.Sin(2*angle))
	}
	var weak []float64
	for name, x := range map[string]struct {
		loss      op.Loss
		negatives int
		batch     int
	}{
		"all": {op.InfoNC, train.All, 0}, "full": {op.NC, train.Full, 64}, "whole": {op.InfoNC, train.Full, 1 << 20},
		"infonc": {op.InfoNC, 5, 128}, "neg": {op.Neg, 5, 0}, "umap": {op.UMAP, 5, 0},
	} {
		share := func(pull float64) float64 {
			_, y := pulled[float32](t, x.loss, 2, 0.5, 100, func(o *train.Options) {
				o.Phases[0].Pull, o.Towards, o.BatchSize, o.Phases[0].Negatives = pull, towards, x.batch, x.negatives
				if x.negatives == train.All {
					o.Phases[0].LR = 2 // steps are few
				}
			})
			squares, rest := shape(y, towards, 2)
			return rest / squares
		}
		none, some, strong, huge := share(0), share(0.05), share(0.5), share(1e6)
		if !((some < none*0.8 || name == "umap") && strong < none/4 && strong < some/4 && strong > 1e-4 && huge < 1e-9) {
			t.Errorf("%s: the rest is %g without a pull, %g at 0.05, %g at 0.5 and %g at 1e6", name, none, some, strong, huge)
		}
		if name != "infonc" && name != "umap" { // with few negatives they are another shape
			weak = append(weak, some)
		}
	}
	if slices.Max(weak) > 2*slices.Min(weak) {
		t.Errorf("one strength has other effects in other ways of training: %v", weak)
	}
}

// One position far away, as of a point that diverged, does not keep the others from theirs.
func TestPullOfOutlier(t *testing.T) {
	shapeOf := func(outlier float32) float64 {
		_, y := pulled[float32](t, op.InfoNC, 2, 0.5, 100, func(o *train.Options) {
			o.Phases[0].Pull = 1e6
			o.Towards[0] = outlier
		})
		squares, rest := shape(y[2:], normal[float32](200, 2, 9)[2:], 2)
		return rest / squares
	}
	for _, outlier := range []float32{100, 1e12} {
		if got := shapeOf(outlier); got > 1e-9 {
			t.Errorf("an outlier at %g: the rest is %g", outlier, got)
		}
	}
}

// A run with a pull that stops and continues ends with the bits of one that does not.
func TestResumePulled(t *testing.T) {
	for _, negatives := range []int{5, train.All} {
		var saved []*train.Checkpoint
		set := func(o *train.Options) { o.Phases[0].Pull, o.BatchSize, o.Phases[0].Negatives = 0.2, 256, negatives }
		_, want := pulled[float32](t, op.InfoNC, 2, 0.5, 6, func(o *train.Options) {
			set(o)
			o.Checkpoints = &train.Checkpoints{Interval: 1, Save: func(c *train.Checkpoint) error {
				copied, err := c.Clone()
				saved = append(saved, copied)
				return err
			}}
		})
		if len(saved) < 6 {
			t.Fatalf("%d checkpoints", len(saved))
		}
		for _, c := range saved {
			if _, got := pulled[float32](t, op.InfoNC, 2, 0.5, 6, func(o *train.Options) {
				set(o)
				o.Resume = c
			}); !slices.Equal(got, want) {
				t.Errorf("other bits from epoch %d, batch %d", c.Progress.Epochs, c.Progress.Batches)
			}
		}
	}
}

func TestBadPulls(t *testing.T) {
	heads, tails := ring(200, 5)
	table := func(metric op.Metric) model.Model {
		return tableOf[float32](t, 200, 2, 5, op.ContrastiveOptions{Metric: metric})
	}
	network := networkOf(t, normal[float32](200, 3, 1), 3, []int{4}, 2, 1, op.ContrastiveOptions{})
	good := normal[float32](200, 2, 9)
	for want, x := range map[string]struct {
		model   model.Model
		pull    float64
		towards []float32
		by      train.Optimizer
	}{
		"want a number from 0 to 1e6":    {table(0), -1, good, nil},
		"loss.metric cosine, want 0":     {table(op.Cosine), 1, good, nil},
		"without momentum":               {table(0), 1, good, &train.SGD{Momentum: 0.5}},
		"the optimizer sgd":              {table(0), 1, good, new(train.Adam)},
		"without a network":              {network, 1, good, nil},
		"got 0 coordinates":              {table(0), 1, nil, nil},
		"want 400 finite ones":           {table(0), 1, append([]float32{float32(math.NaN())}, good[1:]...), nil},
		"got equal positions to pull to": {table(0), 1, make([]float32, 400), nil},
	} {
		_, err := train.Fit(t.Context(), x.model, heads, tails, train.Options{
			Phases: []train.Phase{{Epochs: 1, LR: 1, Negatives: 1, Pull: x.pull}}, Towards: x.towards, Optimizer: x.by,
		})
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
