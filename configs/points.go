package configs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/data/neighbors"
	"cne/internal/text"
	"cne/model"
	"cne/train"
)

// AnySize is the size of data of which nothing is known.
var AnySize = data.Size{Low: 2, High: math.MaxInt32, Likely: 2}

// dataSize returns what is known of the points of data.path.
func (c *Config) dataSize(ctx context.Context) data.Size {
	d := &c.Data
	if name, ok := strings.CutPrefix(d.Path[0], BuiltinPrefix); ok && len(d.Path) == 1 {
		size, err := file.BuiltinSize(name)
		if err != nil {
			return AnySize
		}
		return d.TrainOn.listed(ctx, size)
	}
	return d.TrainOn.listed(ctx, file.Size(ctx, d.Path, c.ReadOptions(d)))
}

// listed returns the size of the points whose rows a file lists, of points of a size, or
// that of all if there is no such file.
func (t *TrainOn) listed(ctx context.Context, size data.Size) data.Size {
	if t == nil || t.File == "" {
		return size
	}
	lines, heading, err := file.ReadLines(ctx, t.File)
	n := len(lines)
	if heading {
		n--
	}
	if err != nil || n < 1 || n > size.High { // which reading says best
		size.Low, size.Likely = min(2, size.Low), min(2, size.Low)
		return size
	}
	size.Low, size.High, size.Likely = n, n, n
	return size
}

// CheckSize refuses what is right by itself but not for data of a size, as far as this
// is known. Faults are of the type *Error.
func (c *Config) CheckSize(size data.Size) error {
	low, high := c.left(size.Low), c.left(size.High)
	few := func(key string, k int) error {
		points, remedy := fmt.Sprint(high, " points"), "give more points"
		if t := c.Data.TrainOn; t != nil {
			points, remedy = fmt.Sprintf("the %d points of data.sample", high), "train on more"
		} else if high < size.High {
			points, remedy = fmt.Sprintf("the %d points that data.holdout leaves", high), "hold fewer out"
		}
		return &Error{Key: key, Problem: fmt.Sprintf("is %d, but %s do not have %d neighbours each; %s, or set it below %d", k, points, k, remedy, high)}
	}
	switch {
	case c.Data.TrainOn != nil && c.Data.TrainOn.Number > size.High:
		return &Error{Key: "data.sample", Problem: fmt.Sprintf("is %d, but there are %d points; train on fewer, or set it to null for all", c.Data.TrainOn.Number, size.High)}
	case high < 2: // the run says so, whatever the configuration
	case c.Graph.File == nil && c.Graph.K >= high:
		return few("graph.k", c.Graph.K)
	case c.Quality.Recall && c.Quality.K >= high:
		return few("quality.k", c.Quality.K)
	case c.Model.Kind == "table" && c.Model.Dim > math.MaxInt32/max(1, low):
		return &Error{Key: "model.dim", Problem: fmt.Sprintf("is %d, and a table of %d points with so many dimensions is too large; take fewer dimensions", c.Model.Dim, low)}
	}
	if err := c.checkWeights(size.Width); err != nil {
		return err
	}
	if err := c.checkSparse(size); err != nil {
		return err
	}
	return c.checkFit(low, high)
}

// CheckNeighbors says why k neighbours each cannot be found of the n points that a run
// trains on.
func (c *Config) CheckNeighbors(n, k int) error {
	if n < 2 {
		if c.Data.TrainOn != nil {
			return errors.New("data.sample leaves a single point to train on, which has no neighbours; train on more")
		}
		if c.Data.Holdout != nil {
			return errors.New("data.holdout leaves a single point, which has no neighbours; hold fewer out, or give more points")
		}
		return errors.New("there is a single point, which has no neighbours; give more points")
	}
	if n <= k {
		if c.Data.TrainOn != nil {
			return fmt.Errorf("the %d points of data.sample do not have %d neighbours each; train on more, or set graph.k and quality.k below %d", n, k, n)
		}
		if c.Data.Holdout != nil {
			return fmt.Errorf("the %d points that data.holdout leaves do not have %d neighbours each; hold fewer out, or set graph.k and quality.k below %d", n, k, n)
		}
		return fmt.Errorf("%d points do not have %d neighbours each; give more points, or set graph.k and quality.k below %d", n, k, n)
	}
	return nil
}

// checkSparse refuses what sparse points cannot be made.
func (c *Config) checkSparse(size data.Size) error {
	o := c.Options()
	if size.Nonzeros == 0 || o.Reduces(size.Low, size.Width) == 0 { // they become dense
		return nil
	}
	wide := c.Model.Kind != "table" && c.Model.Input != "pca"
	switch {
	case c.Data.Scale == data.ScaleStandard:
		return &Error{Key: "data.scale", Problem: "is standard, which subtracts the mean of each column and would make the sparse points dense; set it to unit or none, or graph.pca to 0, which makes them dense if memory allows"}
	case c.Graph.Metric == data.Correlation:
		return &Error{Key: "graph.metric", Problem: "is correlation, which subtracts the mean of each point and would make the sparse points dense; set it to cosine, or graph.pca to 0, which makes them dense if memory allows"}
	case wide && size.Width > model.MaxSparseWidth:
		return &Error{Key: "model.input", Problem: fmt.Sprintf("is points, and a network takes sparse points of up to %d values, but these have %d; set it to pca", model.MaxSparseWidth, size.Width)}
	case wide && o.Float64:
		return &Error{Key: "model.input", Problem: "is points, and a network takes sparse points in float32 alone; set it to pca, or model.dtype to float32"}
	}
	return nil
}

// ExplainPoints makes an error of preparing n points, on so many principal components,
// one that names the key or the files; others it returns as they are.
func (c *Config) ExplainPoints(err error, n, components int) error {
	switch {
	case errors.Is(err, neighbors.ErrNotFinite) && components > 0:
		return errors.New("the principal components are too large for float32; set data.scale to standard or unit")
	case errors.Is(err, cne.ErrEqualPoints):
		return fmt.Errorf("%s: all %d points are equal, and a network places equal points at one position; give points that differ", text.Few(c.Data.Path, nil), n)
	}
	if kinds, ok := err.(interface{ Unwrap() []error }); ok && (errors.Is(err, cne.ErrPoints) || errors.Is(err, cne.ErrOption)) {
		err = kinds.Unwrap()[1] // the cause
	}
	switch {
	case errors.Is(err, data.ErrSparse):
		return fmt.Errorf("graph.pca: %w", err)
	case errors.Is(err, data.ErrDirection):
		return fmt.Errorf("%w (graph.metric)", err)
	}
	return err
}

// left returns how many of n points are trained on: all but a share that is held out, or
// those of data.sample.
func (c *Config) left(n int) int {
	if c.Data.TrainOn != nil {
		return c.Data.TrainOn.Of(n)
	}
	if h := c.Data.Holdout; h != nil && h.Share > 0 && n > 1 {
		return n - min(max(1, int(math.Round(float64(n)*h.Share))), n-1)
	}
	return n
}

// checkWeights refuses networks whose weights cannot be numbered. width is that of the
// points, 0 if it is not known.
func (c *Config) checkWeights(width int) error {
	if c.Model.Kind == "table" {
		return nil
	}
	if c.Model.Input == "pca" {
		width = min(width, c.Graph.PCA)
	}
	total, in := 0, width
	for _, out := range append(c.Model.Hidden[:len(c.Model.Hidden):len(c.Model.Hidden)], c.Model.Dim) {
		if total += in * out; total > math.MaxInt32 {
			points := ""
			if width > 0 {
				points = fmt.Sprintf(" for %d values", width)
			}
			return &Error{Key: "model.hidden", Problem: fmt.Sprintf("is %s, and a network of such layers%s has more than %d weights; take narrower layers", inline(c.Model.Hidden), points, math.MaxInt32)}
		}
		in = out
	}
	return nil
}

// checkFit refuses options of the training that have no meaning for any number of
// points between two.
func (c *Config) checkFit(low, high int) error {
	o := c.Options()
	fit := o.FitOptions()
	// A graph has an edge for each neighbour of a point at least. What depends on the
	// number of points – the logarithm of the loss's constant – is linear in its
	// logarithm, so that two numbers at which it is out of bounds on the same side have
	// none between them at which it is not.
	edges := max(1, c.Graph.K)
	first := fit.Check(o.Objective(), low, low*edges)
	last := fit.Check(o.Objective(), high, min(high, math.MaxInt32/edges)*edges)
	if first == nil || last == nil {
		return nil
	}
	if fault := new(train.OptionError); errors.As(first, &fault) && fault.Field == "Spectrum" && !c.sameSide(fault.Phase, low, high) {
		return nil
	}
	return c.Explain(last)
}

// sameSide tells whether the constant of a phase's loss is too large, or too small, for
// both numbers of points.
func (c *Config) sameSide(phase, a, b int) bool {
	o := c.Options()
	place := o.FitOptions().Phases[phase].Spectrum
	return math.Signbit(train.Normalization{N: a}.LogConst(o.Loss, place, 1)) == math.Signbit(train.Normalization{N: b}.LogConst(o.Loss, place, 1))
}

// CheckSize refuses what is right by itself but not for images of a size, as far as this
// is known. Faults are of the type *Error.
func (c *SimCLR) CheckSize(size data.Size) error {
	const most = math.MaxInt32 / 2 // views are numbered
	if b := c.Train.BatchSize; b > min(size.High, most) {
		return &Error{Key: "train.batch_size", Problem: fmt.Sprintf("is %d, but there are %d images; give more images, or take smaller batches", b, min(size.High, most))}
	}
	if e := &c.Evaluate; e.Split == "stratified" && (e.AtEnd || c.Monitor.Every > 0) {
		if e.Test >= size.High {
			return &Error{Key: "evaluate.test", Problem: fmt.Sprintf("is %d, but there are %d images, of which some are to be trained on; take fewer, or set evaluate.at_end to false and monitor.every to 0", e.Test, size.High)}
		}
		if e.K > size.High-e.Test {
			return &Error{Key: "evaluate.k", Problem: fmt.Sprintf("is %d, but of %d images evaluate.test leaves %d; take fewer neighbours", e.K, size.High, size.High-e.Test)}
		}
	}
	p := c.Pretraining()
	low, high := max(size.Low, p.BatchSize), min(size.High, most)
	last := p.Check(high)
	if last == nil || p.Check(low) == nil {
		return nil
	}
	sign := func(n int) bool {
		return math.Signbit(train.Normalization{N: 2 * n}.LogConst(p.Loss.Loss, p.Spectrum, 1))
	}
	if fault := new(train.OptionError); errors.As(last, &fault) && fault.Field == "Spectrum" && sign(low) != sign(high) {
		return nil
	}
	return c.Explain(last)
}

// optionKeys are the keys of the fields of train.Options, and of those of its phases
// where there is one phase.
var optionKeys = map[string]string{
	"Sampling": "loss.sampling", "BatchSize": "train.batch_size", "Clip": "train.clip", "LRZ": "train.lr_z", "LogZ": "loss.log_z",
	"Epochs": "train.epochs", "LR": "train.lr", "Schedule": "train.anneal", "WarmUp": "train.warm_up", "Negatives": "loss.negatives",
}

// CheckOptions says what is wrong with the options of the configuration for a graph of so
// many points and edges. Faults are of the type *Error.
func (c *Config) CheckOptions(o *cne.Options, points, edges int) error {
	fit := o.FitOptions()
	return c.Explain(fit.Check(o.Objective(), points, edges))
}

// Explain makes an error of the options that a configuration gives one that names the
// key; others it returns as they are.
func (c *Config) Explain(err error) error {
	return c.Loss.explain(err, len(c.Train.Phases) > 0)
}

// Explain is that of Config.
func (c *SimCLR) Explain(err error) error { return c.Loss.explain(err, false) }

// explain is Explain; phased tells whether there are train.phases.
func (l *Loss) explain(err error, phased bool) error {
	fault := new(train.OptionError)
	if !errors.As(err, &fault) || fault.Field == "" {
		return err
	}
	key, known := optionKeys[fault.Field]
	switch {
	case fault.Field == "Spectrum" && l.ZBar != nil:
		key = "loss.z_bar"
	case fault.Field == "Spectrum":
		key = "loss.s"
	case !known:
		return err
	}
	if fault.Phase >= 0 && phased {
		return &Error{Key: "train.phases", Problem: fmt.Sprintf("cannot be used: phase %d %s (%s)", fault.Phase+1, fault.Problem(), key)}
	}
	if fault.Phase >= 0 {
		return &Error{Key: key, Problem: "cannot be used: the run " + fault.Problem()}
	}
	return &Error{Key: key, Problem: "cannot be used: " + fault.Problem()}
}
