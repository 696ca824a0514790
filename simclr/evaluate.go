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
func OfficialSplit(images *images.Set) (Split, error) {
	if images == nil {
		return Split{}, fmt.Errorf("%w: images: got none", ErrSplit)
	}
	if images.Train == nil {
		return Split{}, fmt.Errorf("%w: %s: got no published split, want folders train and test, or a stratified or random split",
			ErrSplit, images.Name)
	}
	n := len(images.Train)
	s := Split{
		Train: selection.Where(n, func(i int32) bool { return images.Train[i] }),
		Test:  selection.Where(n, func(i int32) bool { return !images.Train[i] }),
	}
	if n != images.N || len(s.Train) == 0 || len(s.Test) == 0 {
		return Split{}, fmt.Errorf("%w: %s: got %d images for training and %d for testing, want some of both", ErrSplit,
			images.Name, len(s.Train), len(s.Test))
	}
	return s, nil
}

// Sample draws a smaller, stratified split of at most train training images and test test
// images; the share of each class is kept to within one. The draw depends on the seed.
// Errors wrap ErrLabels or ErrSplit.
func (s Split) Sample(images *images.Set, train, test int, seed uint64) (Split, error) {
	if err := checkLabels(images); err != nil {
		return Split{}, err
	}
	parts := [2][]int32{s.Train, s.Test}
	for i, count := range [2]int{train, test} {
		if count >= len(parts[i]) {
			continue
		}
		_, drawn, err := images.Labels.Split(parts[i], count, seed)
		if err != nil {
			return Split{}, fmt.Errorf("%w: %w", ErrSplit, err)
		}
		parts[i] = drawn
	}
	return Split{Train: parts[0], Test: parts[1]}, nil
}

// check returns an error unless classifiers of the images can be trained and
// tested on the split.
func (s Split) check(images *images.Set) error {
	if err := checkLabels(images); err != nil {
		return err
	}
	if err := s.checkRows(images.N); err != nil {
		return err
	}
	names := images.Labels.Names
	return checkClasses(images.Labels.Class, s.Train, len(names), func(c int) string { return fmt.Sprintf("class %q", names[c]) })
}

// checkRows returns an error unless both parts have rows of the n images, and no row
// twice.
func (s Split) checkRows(n int) error {
	seen := make([]bool, n)
	for _, part := range [...]struct {
		name string
		rows []int32
	}{{"training", s.Train}, {"test", s.Test}} {
		if len(part.rows) == 0 {
			return fmt.Errorf("%w: %s images: got none", ErrSplit, part.name)
		}
		for _, row := range part.rows {
			switch {
			case row < 0 || int(row) >= n:
				return fmt.Errorf("%w: %s image: got %d, want 0 to %d", ErrSplit, part.name, row, n-1)
			case seen[row]:
				return fmt.Errorf("%w: image %d (counted from 0): got it twice", ErrSplit, row)
			}
			seen[row] = true
		}
	}
	return nil
}

// checkLabels returns an error unless every image has a label.
func checkLabels(images *images.Set) error {
	if images == nil {
		return fmt.Errorf("%w: images: got none", ErrLabels)
	}
	switch l := images.Labels; {
	case l == nil:
		return fmt.Errorf("%w: %s: got no classes, want a folder for each class, or a file of labels", ErrLabels, images.Name)
	case len(l.Class) != images.N:
		return fmt.Errorf("%w: %s: got %d labels, want %d, one for each image", ErrLabels, images.Name, len(l.Class), images.N)
	}
	return nil
}

// checkClasses returns an error unless there are at least two classes and each has a
// training row. name returns the name of a class.
func checkClasses(classes, rows []int32, count int, name func(c int) string) error {
	if count < 2 {
		return fmt.Errorf("%w: classes: got %d, want 2 or more", ErrLabels, count)
	}
	size := make([]int, count)
	for _, row := range rows {
		if row < 0 || int(row) >= len(classes) {
			return fmt.Errorf("%w: training row: got %d, want 0 to %d", ErrSplit, row, len(classes)-1)
		}
		c := classes[row]
		if c < 0 || int(c) >= count {
			return fmt.Errorf("%w: class of image %d (counted from 0): got %d, want 0 to %d", ErrLabels, row, c, count-1)
		}
		size[c]++
	}
	for c, n := range size {
		if n == 0 {
			return fmt.Errorf("%w: %s: got no training images", ErrSplit, name(c))
		}
	}
	return nil
}

// checkFeatures returns an error unless the features are finite, and there is a
// class for each row.
func checkFeatures(features *data.Matrix, classes []int32) error {
	if features == nil {
		return fmt.Errorf("%w: features: got none", ErrShape)
	}
	if features.N < 1 || features.D < 1 || len(features.X) != features.N*features.D {
		return fmt.Errorf("%w: features: got %d values, want %d images with %d each", ErrShape, len(features.X), features.N, features.D)
	}
	if len(classes) != features.N {
		return fmt.Errorf("%w: classes: got %d, want %d, one for each image", ErrLabels, len(classes), features.N)
	}
	if at := simd.FirstNotFinite(features.X); at >= 0 {
		return fmt.Errorf("%w: feature %d of image %d (both counted from 0): got %v, want a finite number", ErrFeatures,
			at%features.D, at/features.D, features.X[at])
	}
	return nil
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
	// Logistic says how the linear probe is fitted. If its Device is nil, the Device below is
	// used.
	Logistic LogisticOptions
	// Device is where the classifiers compute; nil means the CPU.
	Device *model.Device
	// Progress, if not nil, is called with the number of classifiers done and their total,
	// two for each split.
	Progress func(done, all int)
}

// Draw draws the split for seed: e.TestOf of the images are for testing, the others for
// training. The number of test images of each class is proportional to its size, to within
// one, or with Random left to chance: the paper's program draws 10 000 of CIFAR-10's 60 000
// images in this way. Errors wrap ErrLabels or ErrSplit.
func (e *Evaluation) Draw(images *images.Set, seed uint64) (Split, error) {
	if err := checkLabels(images); err != nil {
		return Split{}, err
	}
	test := e.TestOf(images.N)
	if images.N > 1 && (test < 1 || test >= images.N) {
		return Split{}, fmt.Errorf("%w: test images: got %d, want 1 to %d", ErrSplit, test, images.N-1)
	}
	strata := images.Labels
	if e.Random {
		strata = &data.Labels{Class: make([]int32, images.N), Names: []string{"image"}}
	}
	train, held, err := strata.Split(nil, test, seed)
	if err != nil {
		return Split{}, fmt.Errorf("%w: %w", ErrSplit, err)
	}
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

// A SplitResult has the two accuracies on one split.
type SplitResult struct {
	Seed   uint64  `json:"seed"` // of a drawn split
	KNN    float64 `json:"knn"`
	Linear float64 `json:"linear"`
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
	// KNN is the accuracy of KNNAccuracy, Linear the accuracy of a Logistic.
	KNN    Score         `json:"knn"`
	Linear Score         `json:"linear"`
	Splits []SplitResult `json:"splits"`
}

// Run evaluates features: row i is image i, by Features or Pixels. Errors wrap ErrOption,
// ErrShape, ErrLabels, ErrSplit or ErrFeatures, or come from ctx or the device. All
// options are checked before anything is computed.
func (e *Evaluation) Run(ctx context.Context, features *data.Matrix, images *images.Set) (Result, error) {
	splits, k, err := e.prepare(images)
	if err != nil {
		return Result{}, err
	}
	classes := images.Labels.Class
	if err := checkFeatures(features, classes); err != nil {
		return Result{}, err
	}
	r := Result{K: k, Official: len(e.Seeds) == 0, Random: e.Random, Train: len(splits[0].Train), Test: len(splits[0].Test)}
	progress := func(done int) {
		if e.Progress != nil {
			e.Progress(done, 2*len(splits))
		}
	}
	logistic := e.Logistic
	logistic.Device = cmp.Or(logistic.Device, e.Device)
	var knn, linear []float64
	for i, s := range splits {
		var one SplitResult
		if !r.Official {
			one.Seed = e.Seeds[i]
		}
		if one.KNN, err = KNNAccuracy(ctx, features, classes, s, k, e.Device); err != nil {
			return Result{}, err
		}
		progress(2*i + 1)
		l, err := FitLogistic(ctx, features, classes, s.Train, len(images.Labels.Names), logistic)
		if err != nil {
			return Result{}, err
		}
		found, err := l.Classify(features, s.Test)
		if err != nil {
			return Result{}, err
		}
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
		knn, linear = append(knn, one.KNN), append(linear, one.Linear)
	}
	r.KNN, r.Linear = score(knn), score(linear)
	return r, nil
}

// Plane is Run's kNN classifier on positions, such as a Projection's, with Euclidean
// distance. If classes tie, the class with the nearest member wins. Errors are as for Run.
func (e *Evaluation) Plane(ctx context.Context, positions *data.Matrix, images *images.Set) (Score, error) {
	splits, k, err := e.prepare(images)
	if err != nil {
		return Score{}, err
	}
	if err := checkFeatures(positions, images.Labels.Class); err != nil {
		return Score{}, err
	}
	var found []float64
	for _, s := range splits {
		known, knownClasses := pick(positions, images.Labels.Class, s.Train)
		test, testClasses := pick(positions, images.Labels.Class, s.Test)
		accuracy, err := quality.HeldOutAccuracy(ctx, known, knownClasses, test, testClasses, k, e.Device)
		if err != nil {
			return Score{}, err
		}
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
func (e *Evaluation) Check(images *images.Set) error {
	_, _, err := e.prepare(images)
	return err
}

// prepare returns the splits to evaluate on, at least one and all usable, and the number
// of neighbours that vote.
func (e *Evaluation) prepare(images *images.Set) (splits []Split, k int, err error) {
	if err := checkLabels(images); err != nil {
		return nil, 0, err
	}
	if e.Random && len(e.Seeds) == 0 {
		return nil, 0, fmt.Errorf("%w: seeds of random splits: got none, want at least one", ErrOption)
	}
	k, splits = cmp.Or(e.K, defaultK), make([]Split, max(1, len(e.Seeds)))
	for i := range splits {
		if len(e.Seeds) == 0 {
			splits[i], err = OfficialSplit(images)
		} else {
			splits[i], err = e.Draw(images, e.Seeds[i])
		}
		if err == nil {
			err = cmp.Or(splits[i].check(images), checkNeighbors(k, splits[i]))
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return splits, k, nil
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
func KNNAccuracy(ctx context.Context, features *data.Matrix, classes []int32, split Split, k int, on *model.Device) (float64, error) {
	if err := checkFeatures(features, classes); err != nil {
		return 0, err
	}
	if err := cmp.Or(split.checkRows(features.N), checkNeighbors(k, split)); err != nil {
		return 0, err
	}
	features = features.Relative(nil) // directions are those from the origin
	base := directions(features, split.Train, true)
	index, err := neighbors.NewIndex(ctx, base, neighbors.Options{Search: neighbors.Exact, Device: on})
	if err != nil {
		return 0, err
	}
	defer index.Free()
	first := selection.UpTo[int32](k) // equally near to a query without a direction are all
	right := 0
	const queries = 4096
	for lo := 0; lo < len(split.Test); lo += queries {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		test := split.Test[lo:min(lo+queries, len(split.Test))]
		to := directions(features, test, false)
		nb, err := index.Search(ctx, to, k)
		if err != nil {
			return 0, err
		}
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

// checkNeighbors returns an error unless the split has k training images.
func checkNeighbors(k int, split Split) error {
	if k < 1 {
		return fmt.Errorf("%w: neighbours: got %d, want 1 or more", ErrOption, k)
	}
	if k > len(split.Train) {
		return fmt.Errorf("%w: neighbours: got %d, want at most %d, the number of training images", ErrOption, k, len(split.Train))
	}
	return nil
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
func (m *Monitor) Hook(ctx context.Context) (train.Hook, error) {
	k := cmp.Or(m.K, defaultK)
	if err := cmp.Or(checkImages(m.Images), m.Augmentation.Check(), checkLabels(m.Images)); err != nil {
		return nil, err
	}
	if err := cmp.Or(m.Split.checkRows(m.Images.N), checkNeighbors(k, m.Split)); err != nil {
		return nil, err
	}
	// Only the images of the split have features; they are numbered anew.
	rows := slices.Concat(m.Split.Train, m.Split.Test)
	classes := selection.Pick(m.Images.Labels.Class, rows)
	numbers := selection.UpTo[int32](len(rows))
	split := Split{Train: numbers[:len(m.Split.Train)], Test: numbers[len(m.Split.Train):]}
	return train.HookFunc(func(s *train.State) error {
		if s.Epoch%max(1, m.Every) != 0 && s.Epoch != s.Epochs {
			return nil
		}
		encoder, ok := s.Model.(Encoder)
		if !ok {
			return fmt.Errorf("%w: model: got a %T, want one of images", ErrOption, s.Model)
		}
		features, err := Features(ctx, encoder, m.Augmentation, m.Images, rows, nil)
		if err != nil {
			return err
		}
		accuracy, err := KNNAccuracy(ctx, features, classes, split, k, nil)
		if err != nil {
			return err
		}
		return m.Report(s.Epoch, accuracy)
	}), nil
}
