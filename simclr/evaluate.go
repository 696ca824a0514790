package simclr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"cne/data"
	"cne/data/images"
	"cne/data/neighbors"
	"cne/data/pca"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/model"
	"cne/train"
	"cne/train/quality"
)

// Kinds of errors of evaluation, in addition to ErrOption and ErrShape.
var (
	// ErrLabels is wrapped by errors about labels that a classifier needs: they are missing,
	// not one for each image, or of a single class.
	ErrLabels = errors.New("simclr: labels are missing")
	// ErrSplit is wrapped by errors about splits on which a classifier cannot be trained or
	// tested.
	ErrSplit = errors.New("simclr: unusable split")
	// ErrFeatures is wrapped by errors about representations with a value that is NaN or
	// infinite.
	ErrFeatures = errors.New("simclr: unusable features")
)

// A Split has the rows, counted from 0, of the images that a classifier is trained and
// tested on.
type Split struct{ Train, Test []int32 }

// OfficialSplit returns the published split of images. The error wraps ErrSplit if there is
// none, or one of its parts is empty.
func OfficialSplit(images *images.Set) (_ Split, err error) {
	defer kind.Catch(&err)
	kind.Expect(images != nil, ErrSplit, "images: got none")
	kind.Expect(images.Train != nil, ErrSplit,
		"%s: got no published split, want folders train and test, or a stratified or random split", images.Name)
	n := len(images.Train)
	s := Split{
		Train: selection.Where(n, func(i int32) bool { return images.Train[i] }),
		Test:  selection.Where(n, func(i int32) bool { return !images.Train[i] }),
	}
	kind.Expect(n == images.N && len(s.Train) > 0 && len(s.Test) > 0, ErrSplit,
		"%s: got %d images for training and %d for testing, want some of both", images.Name, len(s.Train), len(s.Test))
	return s, nil
}

// Sample draws a smaller, stratified split of at most train training images and test test
// images; the share of each class is kept to within one. The draw depends on the seed.
// Errors wrap ErrLabels or ErrSplit.
func (s Split) Sample(images *images.Set, train, test int, seed uint64) (_ Split, err error) {
	defer kind.Catch(&err)
	checkLabels(images)
	parts := [2][]int32{s.Train, s.Test}
	for i, count := range [2]int{train, test} {
		if count >= len(parts[i]) {
			continue
		}
		_, parts[i], err = images.Labels.Split(parts[i], count, seed)
		kind.Expect(err == nil, ErrSplit, "%w", err)
	}
	return Split{Train: parts[0], Test: parts[1]}, nil
}

// check fails as kind.Expect does unless classifiers of the images can be trained and
// tested on the split.
func (s Split) check(images *images.Set) {
	checkLabels(images)
	s.checkRows(images.N)
	names := images.Labels.Names
	checkClasses(images.Labels.Class, s.Train, len(names), func(c int) string { return fmt.Sprintf("class %q", names[c]) })
}

// checkRows fails as kind.Expect does unless both parts have rows of the n images, and no row
// twice.
func (s Split) checkRows(n int) {
	seen := make([]bool, n)
	for _, part := range [...]struct {
		name string
		rows []int32
	}{{"training", s.Train}, {"test", s.Test}} {
		kind.Expect(len(part.rows) > 0, ErrSplit, "%s images: got none", part.name)
		for _, row := range part.rows {
			if row < 0 || int(row) >= n || seen[row] { // for every row, the arguments of Expect would take memory
				kind.Expect(row >= 0 && int(row) < n, ErrSplit, "%s image: got %d, want 0 to %d", part.name, row, n-1)
				kind.Expect(false, ErrSplit, "image %d (counted from 0): got it twice", row)
			}
			seen[row] = true
		}
	}
}

// checkLabels fails as kind.Expect does unless every image has a label.
func checkLabels(images *images.Set) {
	kind.Expect(images != nil, ErrLabels, "images: got none")
	l := images.Labels
	kind.Expect(l != nil, ErrLabels, "%s: got no classes, want a folder for each class, or a file of labels", images.Name)
	kind.Expect(len(l.Class) == images.N, ErrLabels, "%s: got %d labels, want %d, one for each image", images.Name, len(l.Class), images.N)
}

// checkClasses fails as kind.Expect does unless there are at least two classes and each has a
// training row. name returns the name of a class.
func checkClasses(classes, rows []int32, count int, name func(c int) string) {
	kind.Expect(count >= 2, ErrLabels, "classes: got %d, want 2 or more", count)
	size := make([]int, count)
	for _, row := range rows {
		if row < 0 || int(row) >= len(classes) {
			kind.Expect(false, ErrSplit, "training row: got %d, want 0 to %d", row, len(classes)-1)
		}
		c := classes[row]
		if c < 0 || int(c) >= count {
			kind.Expect(false, ErrLabels, "class of image %d (counted from 0): got %d, want 0 to %d", row, c, count-1)
		}
		size[c]++
	}
	for c, n := range size {
		kind.Expect(n > 0, ErrSplit, "%s: got no training images", name(c))
	}
}

// checkFeatures fails as kind.Expect does unless the features are finite, and there is a
// class for each row.
func checkFeatures(features *data.Matrix, classes []int32) {
	kind.Expect(features != nil, ErrShape, "features: got none")
	kind.Expect(features.N >= 1 && features.D >= 1 && len(features.X) == features.N*features.D, ErrShape,
		"features: got %d values, want %d images with %d each", len(features.X), features.N, features.D)
	kind.Expect(len(classes) == features.N, ErrLabels, "classes: got %d, want %d, one for each image", len(classes), features.N)
	if at := simd.FirstNotFinite(features.X); at >= 0 {
		kind.Check(fmt.Errorf("%w: feature %d of image %d (both counted from 0): got %v, want a finite number", ErrFeatures,
			at%features.D, at/features.D, features.X[at]))
	}
}

// An Evaluation measures the accuracy of classifiers on frozen features. The zero value is
// the usual protocol on the published split.
type Evaluation struct {
	// K is the number of neighbours that vote; 0 means 15.
	K int `key:"k" in:"[1,inf)"`
	// Seeds are the seeds of stratified splits, or, if Random, of random ones; results are
	// averaged over them. Without seeds, the published split is used, once. The paper uses one
	// random split per run, so its accuracies vary more than means over several splits.
	Seeds  []uint64 `key:"seeds"`
	Random bool
	// Test is the number of test images of a drawn split; 0 means 10 000, or a sixth of the
	// images if there are fewer than 60 000.
	Test int `key:"test,null" in:"[1,inf)"`
	// Logistic says how the linear probe is fitted.
	Logistic LogisticOptions
	// Device searches neighbours; nil means the CPU.
	Device *model.Device
	// Progress, if not nil, is called with the number of classifiers done and their total,
	// two for each split.
	Progress func(done, all int)
}

// Draw draws the split for seed: e.TestOf of the images are for testing, the others for
// training. The number of test images of each class is proportional to its size, to within
// one, or with Random left to chance: the paper's program draws 10 000 of CIFAR-10's 60 000
// images in this way. Errors wrap ErrLabels or ErrSplit.
func (e *Evaluation) Draw(images *images.Set, seed uint64) (_ Split, err error) {
	defer kind.Catch(&err)
	checkLabels(images)
	test := e.TestOf(images.N)
	kind.Expect(images.N <= 1 || test >= 1 && test < images.N, ErrSplit, "test images: got %d, want 1 to %d", test, images.N-1)
	strata := images.Labels
	if e.Random {
		strata = &data.Labels{Class: make([]int32, images.N), Names: []string{"image"}}
	}
	train, held, err := strata.Split(nil, test, seed)
	kind.Expect(err == nil, ErrSplit, "%w", err)
	return Split{Train: train, Test: held}, nil
}

// TestOf returns the number of test images of a drawn split of n images.
func (e *Evaluation) TestOf(n int) int {
	return cmp.Or(e.Test, max(1, min(10000, n/6)))
}

// A Score is the mean of an accuracy, from 0 to 1, over splits, and its standard
// deviation (of a sample: divided by one less than their number; 0 for a single one).
// NumPy's standard deviation, reported in the paper, divides by their number.
type Score struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

// A SplitResult has the accuracies on one split.
type SplitResult struct {
	Seed uint64  `json:"seed"` // of a drawn split
	KNN  float64 `json:"knn"`
	// Whitened is 0 if features were not whitened: see Result.
	Whitened float64 `json:"knn_whitened"`
	Linear   float64 `json:"linear"`
	// Steps, Gradient and Converged are the fields of the linear probe's Logistic.
	Steps     int     `json:"steps"`
	Gradient  float64 `json:"gradient"`
	Converged bool    `json:"converged"`
}

// A Result is the result of an Evaluation.
type Result struct {
	K        int  `json:"k"`
	Official bool `json:"official_split"`
	Random   bool `json:"random_split,omitempty"`
	Train    int  `json:"train"` // images of a split
	Test     int  `json:"test"`
	// KNN is the accuracy of KNNAccuracy, Linear the accuracy of a Logistic. Whitened is KNN
	// after Whiten with the training images. IsWhitened is false, and Whitened 0, if features
	// have more than 2048 values, or as many as there are training images or more.
	KNN        Score         `json:"knn"`
	IsWhitened bool          `json:"whitened"`
	Whitened   Score         `json:"knn_whitened"`
	Linear     Score         `json:"linear"`
	Splits     []SplitResult `json:"splits"`
}

// Run evaluates features: row i is image i, by Features or Pixels. Errors wrap ErrOption,
// ErrShape, ErrLabels, ErrSplit or ErrFeatures, or come from ctx or the device. All
// options are checked before anything is computed.
func (e *Evaluation) Run(ctx context.Context, features *data.Matrix, images *images.Set) (_ Result, err error) {
	defer kind.Catch(&err)
	splits, k := e.prepare(images)
	classes := images.Labels.Class
	checkFeatures(features, classes)
	r := Result{K: k, Official: len(e.Seeds) == 0, Random: e.Random, Train: len(splits[0].Train), Test: len(splits[0].Test)}
	r.IsWhitened = features.D <= memory.MaxWhitened && features.D < r.Train
	progress := func(done int) {
		if e.Progress != nil {
			e.Progress(done, 2*len(splits))
		}
	}
	var knn, whitened, linear []float64
	for i, s := range splits {
		var one SplitResult
		if !r.Official {
			one.Seed = e.Seeds[i]
		}
		one.KNN = kind.Got(KNNAccuracy(ctx, features, classes, s, k, e.Device))
		if r.IsWhitened {
			white := kind.Got(Whiten(ctx, features, s.Train))
			one.Whitened = kind.Got(KNNAccuracy(ctx, white, classes, s, k, e.Device))
		}
		progress(2*i + 1)
		l := kind.Got(FitLogistic(ctx, features, classes, s.Train, len(images.Labels.Names), e.Logistic))
		found := kind.Got(l.Classify(features, s.Test))
		right := 0
		for j, c := range found {
			if c == classes[s.Test[j]] {
				right++
			}
		}
		one.Linear = float64(right) / float64(len(found))
		one.Steps, one.Gradient, one.Converged = l.Steps, l.Gradient, l.Converged
		progress(2*i + 2)
		r.Splits = append(r.Splits, one)
		knn, whitened, linear = append(knn, one.KNN), append(whitened, one.Whitened), append(linear, one.Linear)
	}
	r.KNN, r.Whitened, r.Linear = score(knn), score(whitened), score(linear)
	return r, nil
}

// Whiten returns the coordinates of features along the principal axes of some of them (nil:
// all), divided by about the standard deviation there (pca.PCA.Whiten). With many rows, nearest
// neighbours by cosine are more often of the same class. With no more rows than values, all
// would be equally far from each other. The error then wraps ErrShape; others are ctx's.
func Whiten(ctx context.Context, features *data.Matrix, rows []int32) (_ *data.Matrix, err error) {
	defer kind.Catch(&err)
	from := features
	if rows != nil {
		from, _ = pick(features, nil, rows)
	}
	kind.Expect(from.N > from.D, ErrShape, "got %d images, want more than the %d values of a representation", from.N, from.D)
	p := kind.Got(pca.Fit(ctx, from, from.D))
	p.Whiten()
	return p.Transform(ctx, features)
}

// Plane is Run's kNN classifier on positions, such as a Projection's, with Euclidean
// distance. If classes tie, the class with the nearest member wins. Errors are as for Run.
func (e *Evaluation) Plane(ctx context.Context, positions *data.Matrix, images *images.Set) (_ Score, err error) {
	defer kind.Catch(&err)
	splits, k := e.prepare(images)
	checkFeatures(positions, images.Labels.Class)
	var found []float64
	for _, s := range splits {
		known, knownClasses := pick(positions, images.Labels.Class, s.Train)
		test, testClasses := pick(positions, images.Labels.Class, s.Test)
		accuracy := kind.Got(quality.HeldOutAccuracy(ctx, known, knownClasses, test, testClasses, k, e.Device))
		found = append(found, accuracy)
	}
	return score(found), nil
}

// pick returns some rows of features, and their classes; without classes, nil.
func pick(features *data.Matrix, classes, rows []int32) (*data.Matrix, []int32) {
	return features.Take(selection.As[int](rows)), selection.Pick(classes, rows)
}

// Check returns the errors of Run about the images and the options. It needs no features,
// so it can be called before a long training.
func (e *Evaluation) Check(images *images.Set) (err error) {
	defer kind.Catch(&err)
	e.prepare(images)
	return nil
}

// prepare returns the splits to evaluate on, at least one and all usable, and the number
// of neighbours that vote, or fails as kind.Need does.
func (e *Evaluation) prepare(images *images.Set) (splits []Split, k int) {
	checkLabels(images)
	kind.Expect(!e.Random || len(e.Seeds) > 0, ErrOption, "seeds of random splits: got none, want at least one")
	k, splits = cmp.Or(e.K, defaultK), make([]Split, max(1, len(e.Seeds)))
	for i := range splits {
		if len(e.Seeds) == 0 {
			splits[i] = kind.Got(OfficialSplit(images))
		} else {
			splits[i] = kind.Got(e.Draw(images, e.Seeds[i]))
		}
		splits[i].check(images)
		splits[i].checkNeighbors(k)
	}
	return splits, k
}

// score returns mean and standard deviation.
func score(x []float64) Score {
	var s Score
	for _, v := range x {
		s.Mean += v / float64(len(x))
	}
	if len(x) > 1 {
		for _, v := range x {
			s.Std += (v - s.Mean) * (v - s.Mean) / float64(len(x)-1)
		}
		s.Std = math.Sqrt(s.Std)
	}
	return s
}

// KNNAccuracy returns the accuracy, from 0 to 1, of a k-nearest-neighbour classifier on the
// test images. Row i of features is image i, classes[i] its class. The nearest training
// images are those with the largest cosine; ties go to the first in split.Train. Every
// neighbour has one vote; if classes tie, the lower number wins, as in scikit-learn.
// Features that are all zero have the cosine 0 with all others, so the neighbours of such a
// test image are the first k in split.Train.
//
// The search is exact for the features scaled to unit length in float32, and the result is
// the same on any device; nil is the CPU. Errors wrap ErrOption, ErrShape, ErrLabels,
// ErrSplit or ErrFeatures, or come from ctx or the device.
func KNNAccuracy(ctx context.Context, features *data.Matrix, classes []int32, split Split, k int, on *model.Device) (_ float64, err error) {
	defer kind.Catch(&err)
	checkFeatures(features, classes)
	split.checkRows(features.N)
	split.checkNeighbors(k)
	features = features.Relative(nil) // directions are those from the origin
	base := directions(features, split.Train, true)
	index := kind.Got(neighbors.NewIndex(ctx, base, neighbors.Options{Search: neighbors.Exact, Device: on}))
	defer index.Free()
	first := selection.UpTo[int32](k) // equally near to a query without a direction are all
	right := 0
	const queries = 4096
	for lo := 0; lo < len(split.Test); lo += queries {
		kind.Check(ctx.Err())
		test := split.Test[lo:min(lo+queries, len(split.Test))]
		to := directions(features, test, false)
		nb := kind.Got(index.Search(ctx, to, k))
		votes := map[int32]int{}
		for i, row := range test {
			clear(votes)
			nearest := nb.Of(i)
			if !slices.ContainsFunc(to.Row(i), func(v float32) bool { return v != 0 }) {
				nearest = first // the distances differ only by rounding
			}
			for _, j := range nearest {
				votes[classes[split.Train[j]]]++
			}
			winner := slices.MaxFunc(slices.Collect(maps.Keys(votes)), func(a, b int32) int {
				return cmp.Or(cmp.Compare(votes[a], votes[b]), cmp.Compare(b, a)) // of equally many, the lowest class
			})
			if winner == classes[row] {
				right++
			}
		}
	}
	return float64(right) / float64(len(split.Test)), nil
}

// defaultK is the number of neighbours that vote.
const defaultK = 15

// checkNeighbors fails as kind.Expect does unless the split has k training images.
func (s Split) checkNeighbors(k int) {
	kind.Expect(k >= 1, ErrOption, "neighbours: got %d, want 1 or more", k)
	kind.Expect(k <= len(s.Train), ErrOption, "neighbours: got %d, want at most %d, the number of training images", k, len(s.Train))
}

// directions returns the given rows scaled to unit length. One more column is 1 for the
// rows of the base that are zero, and 0 for all others. The squared distance of a query
// to any point of the base is then 2 − 2·cosine, or 1 up to rounding if the query is
// zero.
func directions(features *data.Matrix, rows []int32, base bool) *data.Matrix {
	d := features.D
	m := data.NewMatrix(len(rows), d+1)
	parallel.For(len(rows), max(1, 1<<16/d), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			from, to := features.Row(int(rows[i])), m.Row(i)
			var square float64
			for _, v := range from {
				square += float64(float64(v) * float64(v))
			}
			if square == 0 {
				if base {
					to[d] = 1
				}
				continue
			}
			scale := 1 / math.Sqrt(square)
			for j, v := range from {
				to[j] = float32(float64(v) * scale)
			}
		}
	})
	return m
}

// A Monitor measures KNNAccuracy on some of the images every few epochs of a
// pretraining. It does not change the run.
type Monitor struct {
	Images *images.Set
	// Split has the images to measure on, such as a Sample.
	Split Split
	// Augmentation prepares the images, as in Features.
	Augmentation *Augmentation
	// K is the number of neighbours that vote; 0 means 15.
	K int
	// Every is the number of epochs from one measurement to the next; below 1
	// counts as 1. The last epoch is always measured.
	Every int
	// Report is called with each accuracy, from 0 to 1, and the number of epochs done. Its
	// error ends the run.
	Report func(epoch int, accuracy float64) error
}

// Hook returns the hook for a run whose State.Model is an Encoder. It checks the images
// and the options before training; errors wrap ErrOption, ErrShape, ErrLabels or ErrSplit.
// A measurement stops when ctx is done.
func (m *Monitor) Hook(ctx context.Context) (_ train.Hook, err error) {
	defer kind.Catch(&err)
	k := cmp.Or(m.K, defaultK)
	checkImages(m.Images)
	kind.Check(m.Augmentation.Check())
	checkLabels(m.Images)
	m.Split.checkRows(m.Images.N)
	m.Split.checkNeighbors(k)
	// Only the images of the split have features; they are numbered anew.
	rows := slices.Concat(m.Split.Train, m.Split.Test)
	classes := selection.Pick(m.Images.Labels.Class, rows)
	numbers := selection.UpTo[int32](len(rows))
	split := Split{Train: numbers[:len(m.Split.Train)], Test: numbers[len(m.Split.Train):]}
	return train.HookFunc(func(s *train.State) (err error) {
		defer kind.Catch(&err)
		if s.Epoch%max(1, m.Every) != 0 && s.Epoch != s.Epochs {
			return nil
		}
		encoder, ok := s.Model.(Encoder)
		kind.Expect(ok, ErrOption, "model: got a %T, want one of images", s.Model)
		features := kind.Got(Features(ctx, encoder, m.Augmentation, m.Images, rows, nil))
		return m.Report(s.Epoch, kind.Got(KNNAccuracy(ctx, features, classes, split, k, nil)))
	}), nil
}
