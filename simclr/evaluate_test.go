package simclr_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/images"
	"cne/internal/rng"
	"cne/internal/safetensors"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorOf drops what comes with an error.
func errorOf[T any](_ T, err error) error { return err }

// probes returns scikit-learn's results for 300 points; the first 200 are its training
// points.
func probes(t testing.TB) (f *safetensors.File, classes []int32, split simclr.Split) {
	t.Helper()
	f, err := safetensors.ReadFile(filepath.Join("testdata", "probes.safetensors"))
	must(t, err)
	classes, err = f.Tensors["labels"].Int32s()
	must(t, err)
	return f, classes, simclr.Split{Train: rows(300)[:200], Test: rows(300)[200:]}
}

func golden64(t testing.TB, f *safetensors.File, name string) []float64 {
	t.Helper()
	v, err := f.Tensors[name].Float64s()
	must(t, err)
	return v
}

func goldenPoints(t testing.TB, f *safetensors.File, name string) *data.Matrix {
	t.Helper()
	x, err := f.Tensors[name].Float32s()
	must(t, err)
	return &data.Matrix{N: 300, D: 20, X: x}
}

// knnNaive is KNNAccuracy by its definition, in float64.
func knnNaive(m *data.Matrix, classes []int32, split simclr.Split, k int) float64 {
	cosine := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab += float64(a[i]) * float64(b[i])
			aa += float64(a[i]) * float64(a[i])
			bb += float64(b[i]) * float64(b[i])
		}
		if ab == 0 {
			return 0
		}
		return ab / math.Sqrt(aa*bb)
	}
	right := 0
	for _, q := range split.Test {
		order, near := slices.Clone(split.Train), make([]float64, m.N)
		for _, j := range order {
			near[j] = cosine(m.Row(int(q)), m.Row(int(j)))
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(near[b], near[a]) })
		votes := make([]int, 100)
		for _, j := range order[:k] {
			votes[classes[j]]++
		}
		if int32(slices.Index(votes, slices.Max(votes))) == classes[q] {
			right++
		}
	}
	return float64(right) / float64(len(split.Test))
}

func TestKNNAccuracy(t *testing.T) {
	f, classes, split := probes(t)
	x := goldenPoints(t, f, "X")
	got, err := simclr.KNNAccuracy(t.Context(), x, classes, split, 15, nil)
	must(t, err)
	if want := golden64(t, f, "knn_cosine_accuracy")[0]; got != want {
		t.Errorf("accuracy %v, want %v", got, want)
	}

	// Harder points, and some without a direction.
	hard := goldenPoints(t, f, "logreg_X")
	for _, row := range []int{3, 50, 220, 299} {
		clear(hard.Row(row))
	}
	backwards := simclr.Split{Train: slices.Clone(split.Train), Test: split.Test}
	slices.Reverse(backwards.Train)
	for _, s := range []simclr.Split{split, backwards} {
		for _, k := range []int{1, 2, 5, 15, 200} {
			got, err := simclr.KNNAccuracy(t.Context(), hard, classes, s, k, nil)
			must(t, err)
			if want := knnNaive(hard, classes, s, k); got != want {
				t.Errorf("k=%d: accuracy %v, want %v", k, got, want)
			}
		}
	}
}

// With one neighbour of each class, the class with the lower number wins, not the nearer
// one's.
func TestKNNTies(t *testing.T) {
	m := &data.Matrix{N: 3, D: 2, X: []float32{1, 0, 1, 1, 5, 1}} // row 2 is near row 0
	split := simclr.Split{Train: []int32{0, 1}, Test: []int32{2}}
	for _, c := range []struct {
		classes []int32
		want    float64
	}{{[]int32{1, 0, 0}, 1}, {[]int32{0, 1, 0}, 1}, {[]int32{1, 0, 1}, 0}} {
		got, err := simclr.KNNAccuracy(t.Context(), m, c.classes, split, 2, nil)
		if err != nil || got != c.want {
			t.Errorf("classes %v: %v, %v; want %v", c.classes, got, err, c.want)
		}
	}
}

// All images are equally near to one without a direction, so that the first ones of the
// split vote.
func TestKNNWithoutADirection(t *testing.T) {
	const n, d = 200, 7
	s := rng.New(3, rng.Sample)
	m := data.NewMatrix(n+1, d) // the last row stays zero
	classes, split := make([]int32, n+1), simclr.Split{Test: []int32{n}}
	for i := range n {
		for j := range d {
			m.Row(i)[j] = float32(s.Normal())
		}
		classes[i] = int32(i)
	}
	split.Train = make([]int32, n)
	for range 20 {
		for i, j := range s.Perm(n) {
			split.Train[i] = int32(j)
		}
		for _, k := range []int{1, 3} {
			classes[n] = slices.Min(split.Train[:k]) // each its own class: of equals the lowest
			if got, err := simclr.KNNAccuracy(t.Context(), m, classes, split, k, nil); err != nil || got != 1 {
				t.Fatalf("k = %d: accuracy %v, want as for image %d (%v)", k, got, classes[n], err)
			}
		}
	}
}

func TestLogisticGolden(t *testing.T) {
	f, classes, split := probes(t)
	x := goldenPoints(t, f, "logreg_X")
	before := slices.Clone(x.X)
	l, err := simclr.FitLogistic(t.Context(), x, classes, split.Train, 6, simclr.LogisticOptions{Penalty: 1. / 200, Tolerance: 1e-6})
	must(t, err)
	if !l.Converged || l.Gradient > 1e-6 {
		t.Errorf("after %d steps a derivative is %g", l.Steps, l.Gradient)
	}
	for _, c := range []struct {
		name string
		got  []float64
	}{{"logreg_coef", l.Weights}, {"logreg_intercept", l.Bias}} {
		want := golden64(t, f, c.name)
		for i, w := range want {
			if math.Abs(c.got[i]-w) > 3e-4 { // scikit-learn's largest derivative is 2.7e-6, ours below 1e-6
				t.Errorf("%s %d is %v, want %v", c.name, i, c.got[i], w)
			}
		}
	}
	if !slices.Equal(x.X, before) {
		t.Error("the features have changed")
	}
	// The most probable class, by the definition.
	found, err := l.Classify(x, split.Test)
	must(t, err)
	right := 0
	for i, row := range split.Test {
		best, class := math.Inf(-1), int32(-1)
		for c := range 6 {
			z := l.Bias[c]
			for j, v := range x.Row(int(row)) {
				z += l.Weights[c*20+j] * (float64(v) - l.Scaler.Mean[j]) / l.Scaler.SD[j]
			}
			if z > best {
				best, class = z, int32(c)
			}
		}
		if found[i] != class {
			t.Errorf("row %d is of class %d, found %d", row, class, found[i])
		}
		if class == classes[row] {
			right++
		}
	}
	if right < 60 {
		t.Errorf("%d of 100 are right", right)
	}
}

// Without a penalty: of two classes and one feature, the optimum is known in
// closed form, as the model has a parameter for each of the four frequencies.
func TestLogisticClosedForm(t *testing.T) {
	counts := [2][2]int{{30, 10}, {5, 55}} // by the feature's value, by class
	m := &data.Matrix{D: 1}
	var classes []int32
	for v, row := range counts {
		for c, n := range row {
			for range n {
				m.X, classes = append(m.X, float32(v)), append(classes, int32(c))
			}
		}
	}
	m.N = len(m.X)
	l, err := simclr.FitLogistic(t.Context(), m, classes, nil, 2, simclr.LogisticOptions{Tolerance: 1e-7})
	must(t, err)
	for v := range 2 {
		x := (float64(v) - l.Scaler.Mean[0]) / l.Scaler.SD[0]
		got := (l.Weights[1]-l.Weights[0])*x + l.Bias[1] - l.Bias[0]
		if want := math.Log(float64(counts[v][1]) / float64(counts[v][0])); math.Abs(got-want) > 1e-4 {
			t.Errorf("at %d the log odds are %v, want %v", v, got, want)
		}
	}
}

// Classes that a plane separates, constant features, equal features, more
// features than images: the fit ends all the same, and tells the classes apart.
func TestLogisticDegenerate(t *testing.T) {
	s := rng.New(3, rng.Sample)
	noise := func(n, d int) *data.Matrix {
		m := data.NewMatrix(n, d)
		for i := range m.X {
			m.X[i] = float32(s.Normal())
		}
		return m
	}
	separable := noise(100, 5)
	equal := noise(100, 4)
	for i := range 100 {
		separable.Row(i)[2] += float32(20 * (i % 3))
		equal.Row(i)[0] = float32(i % 3)
		equal.Row(i)[1] = equal.Row(i)[0]
		equal.Row(i)[2] = 1e6 + float32(i%3)
		equal.Row(i)[3] = 7
	}
	for name, m := range map[string]*data.Matrix{"separable": separable, "equal": equal, "wide": noise(60, 90), "too wide for a preconditioner": noise(20, 4100)} {
		classes := make([]int32, m.N)
		for i := range classes {
			classes[i] = int32(i % 3)
		}
		l, err := simclr.FitLogistic(t.Context(), m, classes, nil, 3, simclr.LogisticOptions{})
		must(t, err)
		if !l.Converged {
			t.Errorf("%s: after %d steps a derivative is %g", name, l.Steps, l.Gradient)
		}
		if found, err := l.Classify(m, nil); err != nil || !slices.Equal(found, classes) {
			t.Errorf("%s: classes %v, %v", name, found, err)
		}
	}
}

// labelled returns images of random bytes with labels, one class brighter than
// the other, and the split that takes every third for testing.
func labelled(n, size int) *images.Set {
	m := noise(n, size, size)
	labels := make([]string, n)
	m.Train = make([]bool, n)
	for i := range n {
		labels[i] = [...]string{"cat", "dog", "owl"}[i%3]
		m.Train[i] = i%4 != 3
		image := m.Image(i)
		for p := i % 3; p < len(image); p += 3 {
			image[p] = 64 + image[p]/4*3
		}
	}
	m.Labels = data.NewLabels(labels)
	m.Name = "noise"
	return m
}

// The same bits whatever GOMAXPROCS is: the features' classifiers and both
// accuracies.
func TestEvaluationSameBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	images := labelled(1500, 6)
	var want simclr.Result
	var weights []float64
	for i, procs := range []int{1, 2, 3, 8} {
		runtime.GOMAXPROCS(procs)
		features, err := simclr.Pixels(images, nil)
		must(t, err)
		e := simclr.Evaluation{K: 5, Seeds: []uint64{1, 2}, Test: 300}
		got, err := e.Run(t.Context(), features, images)
		must(t, err)
		l, err := simclr.FitLogistic(t.Context(), features, images.Labels.Class, nil, 3, simclr.LogisticOptions{})
		must(t, err)
		if i == 0 {
			want, weights = got, l.Weights
			continue
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || !slices.Equal(l.Weights, weights) {
			t.Errorf("on %d processors %+v, on 1 %+v", procs, got, want)
		}
	}
}

func TestEvaluation(t *testing.T) {
	set := labelled(900, 6)
	features, err := simclr.Pixels(set, nil)
	must(t, err)
	var heard []int
	e := simclr.Evaluation{Progress: func(done, all int) { heard = append(heard, done, all) }}
	got, err := e.Run(t.Context(), features, set)
	must(t, err)
	official, err := simclr.OfficialSplit(set)
	must(t, err)
	knn := knnNaive(features, set.Labels.Class, official, 15)
	if !got.Official || got.K != 15 || got.Train != 675 || got.Test != 225 || len(got.Splits) != 1 ||
		got.KNN != (simclr.Score{Mean: knn}) || got.Linear.Mean < 0.8 || got.Linear.Std != 0 || !got.Splits[0].Converged {
		t.Errorf("%+v, want a kNN accuracy of %v", got, knn)
	}
	if !slices.Equal(heard, []int{1, 2, 2, 2}) {
		t.Errorf("progress %v", heard)
	}

	if _, err := (&simclr.Evaluation{Random: true}).Run(t.Context(), features, set); !errors.Is(err, simclr.ErrOption) {
		t.Errorf("random splits without seeds: error %v", err)
	}
	for _, random := range []bool{false, true} {
		e = simclr.Evaluation{Seeds: []uint64{3, 4, 5}, Random: random, Test: 200, K: 7}
		got, err = e.Run(t.Context(), features, set)
		must(t, err)
		var mean, square float64
		for i, s := range got.Splits {
			split, err := e.Draw(set, s.Seed)
			must(t, err)
			if want := knnNaive(features, set.Labels.Class, split, 7); s.Seed != e.Seeds[i] || s.KNN != want {
				t.Errorf("split %d: %+v, want %v", i, s, want)
			}
			mean += s.KNN / 3
			square += s.KNN * s.KNN
		}
		if deviation := math.Sqrt((square - 3*mean*mean) / 2); math.Abs(got.KNN.Mean-mean) > 1e-12 || math.Abs(got.KNN.Std-deviation) > 1e-9 {
			t.Errorf("%+v, want %v ± %v", got.KNN, mean, deviation)
		}
		if got.Official || got.Random != random || got.Train != 700 || got.Test != 200 {
			t.Errorf("%+v", got)
		}
	}
}

// Classes that differ in directions of less variance are found after whitening, on any scale.
// Features without any variance are no error; those with more values than 2048, or than there
// are images, are not whitened.
func TestWhitening(t *testing.T) {
	set := labelled(900, 2)
	features := data.NewMatrix(set.N, 3)
	noise := rng.New(3, rng.Sample)
	for i := range features.N {
		row := features.Row(i)
		angle := 2 * math.Pi / 3 * (float64(set.Labels.Class[i]) + 0.5*noise.Float64())
		row[0], row[1], row[2] = 5+float32(noise.Normal()), 7+float32(0.2*math.Sin(angle)), 7+float32(0.2*math.Cos(angle))
	}
	e := simclr.Evaluation{}
	for range 2 {
		got, err := e.Run(t.Context(), features, set)
		must(t, err)
		if got.KNN.Mean > 0.9 || got.Whitened.Mean < 0.95 || got.Splits[0].Whitened != got.Whitened.Mean {
			t.Errorf("%+v", got)
		}
		for i := range features.X {
			features.X[i] *= 1e-3
		}
	}
	if got, err := e.Run(t.Context(), data.NewMatrix(set.N, 3), set); err != nil || got.Whitened != got.KNN {
		t.Errorf("equal features: %+v, %v", got, err)
	}
	for d, want := range map[int]bool{2: true, 17: true, 18: false, 2049: false} {
		few := labelled(24, 2) // 18 to train on
		wide := data.NewMatrix(few.N, d)
		for i := range wide.X {
			wide.X[i] = 1 + float32(noise.Float64())
		}
		if got, err := e.Run(t.Context(), wide, few); err != nil || got.IsWhitened != want {
			t.Errorf("%d values: %+v, %v", d, got, err)
		}
		if _, err := simclr.Whiten(t.Context(), wide, rows(18)); errors.Is(err, simclr.ErrShape) == want {
			t.Errorf("%d values: %v", d, err)
		}
	}
}

// A random split ignores the classes: of 60 test images, the number in each class differs
// between seeds.
func TestRandomSplits(t *testing.T) {
	images := labelled(300, 2)
	counts := map[int]bool{}
	for seed := range uint64(20) {
		s, err := (&simclr.Evaluation{Random: true, Test: 60}).Draw(images, seed)
		must(t, err)
		all := slices.Concat(s.Train, s.Test)
		slices.Sort(all)
		if len(s.Test) != 60 || !slices.Equal(all, rows(300)) {
			t.Fatal("images are lost or occur twice")
		}
		first := 0
		for _, row := range s.Test {
			if images.Labels.Class[row] == 0 {
				first++
			}
		}
		counts[first] = true
	}
	if len(counts) < 4 {
		t.Errorf("the numbers of test images of the first class are %v", counts)
	}
}

// Splits are stratified, complete, and a matter of the seed.
func TestSplits(t *testing.T) {
	images := labelled(300, 2)
	for i := range 150 { // one class is larger
		images.Labels.Class[i] = 0
	}
	e := simclr.Evaluation{Test: 60}
	s, err := e.Draw(images, 1)
	must(t, err)
	again, _ := e.Draw(images, 1)
	other, _ := e.Draw(images, 2)
	if !slices.Equal(s.Test, again.Test) || slices.Equal(s.Test, other.Test) {
		t.Error("the seed does not decide")
	}
	all := slices.Concat(s.Train, s.Test)
	slices.Sort(all)
	if !slices.Equal(all, rows(300)) {
		t.Error("images are lost or occur twice")
	}
	shares := func(rows []int32) (n [3]int) {
		for _, r := range rows {
			n[images.Labels.Class[r]]++
		}
		return n
	}
	if got := shares(s.Test); got != [3]int{40, 10, 10} {
		t.Errorf("test images of each class: %v", got)
	}
	sample, err := s.Sample(images, 48, 100, 1)
	must(t, err)
	if got := shares(sample.Train); got != [3]int{32, 8, 8} || !slices.Equal(sample.Test, s.Test) {
		t.Errorf("a sample has %v and %d test images", got, len(sample.Test))
	}
	for _, r := range sample.Train {
		if !slices.Contains(s.Train, r) {
			t.Errorf("image %d is not a training image", r)
		}
	}
}

// average represents an image by the means of its colours and of their squares;
// it counts its calls.
type average struct {
	calls int
	value float32
}

func (a *average) Width() int { return 6 }

func (a *average) RepresentTo(dst, images []float32, height, width int) error {
	a.calls++
	size := height * width
	for i := range len(dst) / 6 {
		for c := range 3 {
			var sum, square float32
			for _, v := range images[(3*i+c)*size : (3*i+c+1)*size] {
				sum += v
				square += v * v
			}
			dst[6*i+c], dst[6*i+3+c] = sum/float32(size)+a.value, square/float32(size)
		}
	}
	return nil
}

func TestFeatures(t *testing.T) {
	images := noise(600, 5, 5)
	a := bare(5)
	var heard []int
	index := []int32{599, 3, 3}
	index = append(index, rows(300)...)
	m, err := simclr.Features(t.Context(), &average{}, &a, images, index, func(done, all int) { heard = append(heard, done, all) })
	must(t, err)
	if m.N != 303 || m.D != 6 || !slices.Equal(heard, []int{256, 303, 303, 303}) {
		t.Errorf("%d×%d, progress %v", m.N, m.D, heard)
	}
	for i, row := range index {
		for c := range 3 {
			var sum float32
			for p := c; p < 75; p += 3 {
				sum += float32(images.Image(int(row))[p]) / 255
			}
			if got := m.Row(i)[c]; math.Abs(float64(got-sum/25)) > 1e-6 {
				t.Fatalf("image %d: mean %v, want %v", row, got, sum/25)
			}
		}
	}
	if m, err := simclr.Features(t.Context(), &average{}, &a, images, nil, nil); err != nil || m.N != 600 {
		t.Errorf("all images: %v", err)
	}
	p, err := simclr.Pixels(images, []int32{7})
	if err != nil || p.N != 1 || p.D != 75 || p.X[4] != float32(images.Image(7)[4])/255 {
		t.Errorf("pixels %+v, %v", p, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simclr.Features(ctx, &average{}, &a, images, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	l := labelled(60, 5)
	all, _ := simclr.Pixels(l, nil)
	e := simclr.Evaluation{}
	if _, err := e.Run(ctx, all, l); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Large images go through a network a few at a time, with the same bits as one by one.
func TestFeaturesOfLargeImages(t *testing.T) {
	net, err := model.NewResNet[float32](model.ResNetOptions{Width: 2}, 1)
	must(t, err)
	images, a := noise(3, 10, 12), bare(8)
	a.WholeSize = 600 // two fit into a step
	var steps []int
	all, err := simclr.Features(t.Context(), net, &a, images, nil, func(done, _ int) { steps = append(steps, done) })
	if err != nil || !slices.Equal(steps, []int{2, 3}) {
		t.Fatalf("after %v images: %v", steps, err)
	}
	for i := range images.N {
		one, err := simclr.Features(t.Context(), net, &a, images, []int32{int32(i)}, nil)
		if err != nil || !slices.Equal(one.X, all.Row(i)) {
			t.Errorf("image %d has other features by itself (%v)", i, err)
		}
	}
}

// Whole images may be seen larger than views, which then stay what they are.
func TestWholeSize(t *testing.T) {
	images := noise(9, 8, 8)
	a, large := bare(4), bare(7)
	a.WholeSize = 7
	got, err := simclr.Features(t.Context(), &average{}, &a, images, nil, nil)
	must(t, err)
	want, err := simclr.Features(t.Context(), &average{}, &large, images, nil, nil)
	must(t, err)
	if !slices.Equal(got.X, want.X) {
		t.Error("images at WholeSize have other features than at that Size")
	}
	if in := a.Input(); in.Size != 7 || simclr.EvalTransform(in).Size != 7 {
		t.Errorf("the images of the network have %d pixels a side", in.Size)
	}
	view := make([]float32, 3*4*4)
	if err := a.ViewTo(view, images.Image(0), 8, 8, simclr.ViewStream(1, 0, 0, 0)); err != nil {
		t.Error(err)
	}
	for _, size := range []int{-1, 5000} {
		a.WholeSize = size
		if err := a.Check(); !errors.Is(err, simclr.ErrOption) || !strings.Contains(err.Error(), "views.whole_size: got") {
			t.Errorf("%d: error %v", size, err)
		}
	}
}

// Evaluation, and a monitor, leave a network as it was, in training or not.
func TestEvaluationChangesNothing(t *testing.T) {
	net, err := model.NewResNet[float32](model.ResNetOptions{Width: 2}, 1)
	must(t, err)
	snapshot := func() map[string][]float32 {
		all := map[string][]float32{}
		for name, a := range net.Tensors() {
			all[name] = slices.Clone(op.Data[float32](a))
		}
		return all
	}
	images := labelled(40, 8)
	a := bare(8)
	for name, v := range net.Tensors() { // running statistics that differ from the batch's
		if strings.HasSuffix(name, "running_mean") {
			op.Data[float32](v)[0] = 0.5
		}
	}
	for _, evaluate := range []bool{false, true} {
		net.Evaluate(evaluate)
		before := snapshot()
		first, err := simclr.Features(t.Context(), net, &a, images, nil, nil)
		must(t, err)
		e := simclr.Evaluation{K: 3}
		if _, err := e.Run(t.Context(), first, images); err != nil {
			t.Fatal(err)
		}
		split, _ := simclr.OfficialSplit(images)
		accuracy := -1.
		hook, err := (&simclr.Monitor{Images: images, Split: split, Augmentation: &a, K: 3,
			Report: func(_ int, a float64) error { accuracy = a; return nil }}).Hook(t.Context())
		must(t, err)
		if err := hook.AfterEpoch(&train.State{Epoch: 1, Model: network{ResNet: net}}); err != nil || accuracy < 0 {
			t.Fatalf("accuracy %v, %v", accuracy, err)
		}
		for name, want := range before {
			if !slices.Equal(op.Data[float32](net.Tensors()[name]), want) {
				t.Errorf("%s has changed", name)
			}
		}
		// A part of the images has the features that it has among all.
		some, err := simclr.Features(t.Context(), net, &a, images, []int32{39, 5}, nil)
		must(t, err)
		for i, row := range []int{39, 5} {
			for j, v := range some.Row(i) {
				if w := first.Row(row)[j]; math.Abs(float64(v-w)) > 1e-5*max(1, math.Abs(float64(w))) {
					t.Errorf("feature %d of image %d is %v, in another batch %v", j, row, w, v)
				}
			}
		}
	}
}

// network makes a ResNet a model, for hooks.
type network struct {
	model.Model
	*model.ResNet[float32]
}

func (n network) Parameters() []model.Parameter { return n.ResNet.Parameters() }

// pretender is a model that represents images as an average does.
type pretender struct {
	model.Model
	*average
}

func TestMonitor(t *testing.T) {
	images := labelled(90, 4)
	split, err := (&simclr.Evaluation{Test: 30}).Draw(images, 1)
	must(t, err)
	split.Train = split.Train[5:50]
	a := bare(4)
	var epochs []int
	var accuracy float64
	enough := errors.New("enough")
	m := &simclr.Monitor{Images: images, Split: split, Augmentation: &a, K: 3, Every: 2, Report: func(epoch int, a float64) error {
		epochs, accuracy = append(epochs, epoch), a
		if epoch == 7 {
			return enough
		}
		return nil
	}}
	hook, err := m.Hook(t.Context())
	must(t, err)
	fake := &average{}
	for epoch := 1; epoch <= 7; epoch++ {
		err := hook.AfterEpoch(&train.State{Epoch: epoch, Epochs: 7, Model: pretender{average: fake}})
		if (epoch == 7) != errors.Is(err, enough) {
			t.Fatalf("epoch %d: %v", epoch, err)
		}
	}
	if !slices.Equal(epochs, []int{2, 4, 6, 7}) || fake.calls != 4 {
		t.Errorf("measured after epochs %v by %d calls", epochs, fake.calls)
	}
	features, err := simclr.Features(t.Context(), fake, &a, images, nil, nil)
	must(t, err)
	if want := knnNaive(features, images.Labels.Class, split, 3); accuracy != want {
		t.Errorf("accuracy %v, want %v", accuracy, want)
	}
	if err := hook.AfterEpoch(&train.State{Epoch: 2, Model: nil}); !errors.Is(err, simclr.ErrOption) {
		t.Errorf("no encoder: %v", err)
	}
}

func TestEvaluationErrors(t *testing.T) {
	ctx := t.Context()
	set := func(change func(m *images.Set)) *images.Set {
		m := labelled(60, 4)
		change(m)
		return m
	}
	run := func(e simclr.Evaluation, m *images.Set) error {
		features, err := simclr.Pixels(m, nil)
		if err != nil {
			return err
		}
		_, err = e.Run(ctx, features, m)
		if checked := e.Check(m); checked != nil && (err == nil || err.Error() != checked.Error()) {
			t.Errorf("Check says %v, Run %v", checked, err)
		} else if checked == nil && (errors.Is(err, simclr.ErrLabels) || errors.Is(err, simclr.ErrSplit)) {
			t.Errorf("Check has not found: %v", err)
		}
		return err
	}
	same := func(*images.Set) {}
	unlabelled := set(func(m *images.Set) { m.Labels = nil })
	full, _ := simclr.OfficialSplit(set(same))
	a := bare(4)
	seeds := []uint64{1}
	knn := func(x []float32, classes []int32, s simclr.Split, k int) error {
		return errorOf(simclr.KNNAccuracy(ctx, &data.Matrix{N: len(x), D: 1, X: x}, classes, s, k, nil))
	}
	fit := func(x []float32, classes, rows []int32, count int, o simclr.LogisticOptions) error {
		return errorOf(simclr.FitLogistic(ctx, &data.Matrix{N: len(x), D: 1, X: x}, classes, rows, count, o))
	}
	monitor := func(m simclr.Monitor) error {
		return errorOf(m.Hook(ctx))
	}
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		err  error
		kind error
		says string
	}{
		{"no labels", run(simclr.Evaluation{}, unlabelled), simclr.ErrLabels, "noise: got no classes"},
		{"no labels to stratify", run(simclr.Evaluation{Seeds: seeds, Test: 9}, unlabelled), simclr.ErrLabels, "noise: got no classes"},
		{"no labels to monitor", monitor(simclr.Monitor{Images: unlabelled, Augmentation: &a, Split: full}), simclr.ErrLabels, "noise: got no classes"},
		{"few labels", run(simclr.Evaluation{}, set(func(m *images.Set) { m.Labels.Class = m.Labels.Class[:50] })), simclr.ErrLabels, "noise: got 50 labels, want 60, one for each image"},
		{"one class", run(simclr.Evaluation{}, set(func(m *images.Set) { m.Labels = data.NewLabels(make([]string, 60)) })), simclr.ErrLabels, "classes: got 1, want 2 or more"},
		{"no split", run(simclr.Evaluation{}, set(func(m *images.Set) { m.Train = nil })), simclr.ErrSplit, "noise: got no published split, want folders train and test, or a stratified or random split"},
		{"no training images", run(simclr.Evaluation{}, set(func(m *images.Set) { clear(m.Train) })), simclr.ErrSplit, "noise: got 0 images for training and 60 for testing, want some of both"},
		{"an empty class", run(simclr.Evaluation{}, set(func(m *images.Set) {
			for i, c := range m.Labels.Class {
				m.Train[i] = c != 1
			}
		})), simclr.ErrSplit, `class "dog": got no training images`},
		{"few neighbours", run(simclr.Evaluation{K: 46}, set(same)), simclr.ErrOption, "neighbours: got 46, want at most 45, the number of training images"},
		{"k below 1", run(simclr.Evaluation{K: -1}, set(same)), simclr.ErrOption, "neighbours: got -1, want 1 or more"},
		{"all for testing", run(simclr.Evaluation{Seeds: seeds, Test: 60}, set(same)), simclr.ErrSplit, "test images: got 60, want 1 to 59"},
		{"10000 for testing", run(simclr.Evaluation{Seeds: seeds, Test: 10000}, set(same)), simclr.ErrSplit, "test images: got 10000, want 1 to 59"},
		{"tolerance", run(simclr.Evaluation{Logistic: simclr.LogisticOptions{Tolerance: -1}}, set(same)), simclr.ErrOption, "logistic regression: got penalty 0, tolerance -1 and 1000 steps, want a penalty of at least 0, a tolerance in (0, 1] and at least 1 step"},
		{"features of others", errorOf(new(simclr.Evaluation).Run(ctx, data.NewMatrix(59, 2), set(same))), simclr.ErrLabels, "classes: got 60, want 59, one for each image"},

		{"not finite", knn([]float32{1, nan, 3}, []int32{0, 1, 0}, simclr.Split{Train: []int32{0, 1}, Test: []int32{2}}, 1), simclr.ErrFeatures, "image 1"},
		{"row twice", knn([]float32{1, 2, 3}, []int32{0, 1, 0}, simclr.Split{Train: []int32{0, 1}, Test: []int32{1}}, 1), simclr.ErrSplit, "image 1 (counted from 0): got it twice"},
		{"no such row", knn([]float32{1, 2, 3}, []int32{0, 1, 0}, simclr.Split{Train: []int32{0, 3}, Test: []int32{1}}, 1), simclr.ErrSplit, "training image: got 3, want 0 to 2"},
		{"no test images", knn([]float32{1, 2, 3}, []int32{0, 1, 0}, simclr.Split{Train: []int32{0, 2}}, 1), simclr.ErrSplit, "test images: got none"},
		{"shape", knn(nil, nil, simclr.Split{}, 1), simclr.ErrShape, "0 values"},

		{"class without images", fit([]float32{1, 2, 3}, []int32{0, 1, 2}, []int32{0, 1}, 3, simclr.LogisticOptions{}), simclr.ErrSplit, "class 2: got no training images"},
		{"class out of range", fit([]float32{1, 2, 3}, []int32{0, 1, 2}, nil, 2, simclr.LogisticOptions{}), simclr.ErrLabels, "image 2"},
		{"row out of range", fit([]float32{1, 2, 3}, []int32{0, 1, 2}, []int32{-1}, 3, simclr.LogisticOptions{}), simclr.ErrSplit, "training row: got -1, want 0 to 2"},
		{"infinite", fit([]float32{1, 2, float32(math.Inf(1))}, []int32{0, 1, 1}, nil, 2, simclr.LogisticOptions{}), simclr.ErrFeatures, "+Inf"},
		{"penalty", fit([]float32{1, 2}, []int32{0, 1}, nil, 2, simclr.LogisticOptions{Penalty: math.NaN()}), simclr.ErrOption, "NaN"},

		{"greyscale", errorOf(simclr.Features(ctx, &average{}, &a, &images.Set{N: 1, H: 4, W: 4, C: 1, Pixels: make([]byte, 16)}, nil, nil)), simclr.ErrShape, "images: got 16 bytes for 1 images of 4×4 with 1 colours, want 3 colours"},
		{"no images", errorOf(simclr.Features(ctx, &average{}, &a, set(same), []int32{}, nil)), simclr.ErrShape, "images: got none"},
		{"diverged", errorOf(simclr.Features(ctx, &average{value: nan}, &a, set(same), []int32{40}, nil)), simclr.ErrFeatures, "image 40"},
		{"pixels of no image", errorOf(simclr.Pixels(set(same), []int32{60})), simclr.ErrShape, "image 60"},
		{"monitor's k", monitor(simclr.Monitor{Images: set(same), Augmentation: &a, Split: full, K: 46}), simclr.ErrOption, "neighbours: got 46, want at most 45, the number of training images"},
		{"monitor's split", monitor(simclr.Monitor{Images: set(same), Augmentation: &a, Split: simclr.Split{Train: []int32{0}}}), simclr.ErrSplit, "test images: got none"},
		{"sample", errorOf(full.Sample(set(same), 0, 5, 1)), simclr.ErrSplit, "points to hold out: got 0, want 1 to 44"},
	} {
		switch {
		case c.err == nil:
			t.Errorf("%s: no error", c.name)
		case !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.says):
			t.Errorf("%s: %v", c.name, c.err)
		case strings.Contains(c.err.Error(), "\n"):
			t.Errorf("%s: more than one line: %v", c.name, c.err)
		}
	}
}

// The linear probe on features as wide as a ResNet18's and as CIFAR's pixels.
// Set to few images, so that it takes seconds.
func BenchmarkLogistic(b *testing.B) {
	for _, c := range []struct{ n, d int }{{5000, 512}, {5000, 3072}} {
		if testing.Short() {
			c.n /= 10
		}
		b.Run(fmt.Sprintf("%dx%d", c.n, c.d), func(b *testing.B) {
			s := rng.New(1, rng.Sample)
			m := data.NewMatrix(c.n, c.d)
			classes := make([]int32, c.n)
			for i := range c.n {
				classes[i] = int32(i % 10)
				var common float64
				for j := range m.Row(i) {
					common = 0.9*common + 0.44*s.Normal()
					m.Row(i)[j] = float32(common)
					if j%10 == i%10 {
						m.Row(i)[j] += 0.15
					}
				}
			}
			for b.Loop() {
				l, err := simclr.FitLogistic(b.Context(), m, classes, nil, 10, simclr.LogisticOptions{})
				must(b, err)
				b.ReportMetric(float64(l.Steps), "steps")
			}
		})
	}
}

// Features with an offset are classified as those without.
func TestClassifiersHeedOffsets(t *testing.T) {
	s := rng.New(1, rng.Init)
	plain, offset := data.NewMatrix(120, 3), data.NewMatrix(120, 3)
	classes := make([]int32, plain.N)
	var split simclr.Split
	for i := range plain.N {
		classes[i] = int32(i % 3)
		for j := range 3 {
			plain.Row(i)[j] = float32(s.IntN(256))/64 + float32(2*((i+j)%3))
			offset.Row(i)[j] = plain.Row(i)[j] - 4
		}
		if i%4 == 0 {
			split.Test = append(split.Test, int32(i))
		} else {
			split.Train = append(split.Train, int32(i))
		}
	}
	offset.Offset = []float64{4, 4, 4}
	want, err := simclr.KNNAccuracy(t.Context(), plain, classes, split, 5, nil)
	must(t, err)
	if got, err := simclr.KNNAccuracy(t.Context(), offset, classes, split, 5, nil); err != nil || got != want {
		t.Errorf("the accuracy is %v, want %v (%v)", got, want, err)
	}
	fitted, err := simclr.FitLogistic(t.Context(), offset, classes, split.Train, 3, simclr.LogisticOptions{Penalty: 1})
	must(t, err)
	a, err := fitted.Classify(offset, split.Test)
	must(t, err)
	b, err := fitted.Classify(plain, split.Test)
	if err != nil || !slices.Equal(a, b) {
		t.Errorf("the classes are %v, and without an offset %v (%v)", a, b, err)
	}
}

// A stratified split tests on a sixth of few images, and on CIFAR-10's 10 000 of 60 000.
func TestEvaluationTestOf(t *testing.T) {
	for _, c := range []struct{ test, n, want int }{{0, 60000, 10000}, {0, 100000, 10000}, {0, 2001, 333}, {0, 2, 1}, {9, 2001, 9}, {10000, 2001, 10000}} {
		if got := (&simclr.Evaluation{Test: c.test}).TestOf(c.n); got != c.want {
			t.Errorf("Test %d of %d images: got %d, want %d", c.test, c.n, got, c.want)
		}
	}
}
