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
	"cne/internal/option"
	"cne/internal/text"
)

// AnySize is the size of unknown data.
var AnySize = data.Size{Low: 2, High: math.MaxInt32, Likely: 2}

// dataSize returns the size of the points of data.path, as far as known.
func (c *Config) dataSize(ctx context.Context) data.Size {
	d := &c.Data
	if name, ok := strings.CutPrefix(d.Path[0], BuiltinPrefix); ok && len(d.Path) == 1 {
		size, err := file.BuiltinSize(name)
		if err != nil {
			return AnySize
		}
		return d.Sample.listed(ctx, size)
	}
	return d.Sample.listed(ctx, file.Size(ctx, d.Path, c.ReadOptions(d)))
}

// unknownPoints is the number of points for a preset if no file has their number.
const unknownPoints = 10000

func (c *Config) points(ctx context.Context) int {
	size := c.dataSize(ctx)
	n := size.Likely
	if !size.Known() { // a table: counting its rows is faster than reading them
		var err error
		if n, err = file.Count(ctx, c.Data.Path, c.Data.Options()); err != nil && size.High == AnySize.High {
			return unknownPoints
		} else if err != nil {
			n = size.Likely
		}
	}
	n, _ = c.Data.Divide(n)
	return max(1, n)
}

// listed returns the size of the points whose rows a file lists, or the size of all
// points without such a file.
func (t *Sample) listed(ctx context.Context, size data.Size) data.Size {
	if t == nil || t.File == "" {
		return size
	}
	lines, heading, err := file.ReadLines(ctx, t.File)
	n := len(lines)
	if heading {
		n--
	}
	if err != nil || n < 1 || n > size.High { // reading explains it best
		size.Low, size.Likely = min(2, size.Low), min(2, size.Low)
		return size
	}
	size.Low, size.High, size.Likely = n, n, n
	return size
}

// CheckSize refuses values that are invalid for data of a size, as far as it is known.
func (c *Config) CheckSize(size data.Size) error {
	_, held := c.Data.Divide(size.High)
	if t := c.Data.Sample; t != nil && t.Number > size.High-held {
		return &option.Error{Key: "data.sample", Got: fmt.Sprint(t.Number),
			Want: fmt.Sprintf("at most the number of points (%d)", size.High-held)}
	}
	size.Low, _ = c.Data.Divide(size.Low)
	size.High, _ = c.Data.Divide(size.High)
	if size.High == 1 {
		return fmt.Errorf("%s: points: got one, want at least two", text.Few(c.Data.Path, nil))
	}
	o := c.Options()
	if c.Graph.File != nil {
		o.Neighbors = 1 // any graph will do
	}
	return o.CheckSize(size)
}

// ExplainPoints adds the key or the files to an error of preparing n points with
// components principal components; it returns other errors unchanged.
func (c *Config) ExplainPoints(err error, n, components int) error {
	if fault := new(option.Error); errors.As(err, &fault) {
		return Explain(err)
	}
	switch {
	case errors.Is(err, neighbors.ErrNotFinite) && components > 0:
		return errors.New("the principal components are too large for float32; set data.scale to standard or unit")
	case errors.Is(err, cne.ErrEqualPoints):
		return fmt.Errorf("%s: got %d equal points with model.kind %s, want points that differ", text.Few(c.Data.Path, nil), n, c.Model.Kind)
	}
	err = Cause(err)
	switch {
	case errors.Is(err, data.ErrSparse):
		return fmt.Errorf("graph.pca: %w", err)
	case errors.Is(err, data.ErrShape):
		return fmt.Errorf("%s: graph.%w", text.Few(c.Data.Path, nil), err)
	case errors.Is(err, data.ErrDirection):
		if without := new(data.DirectionError); errors.As(err, &without) && without.Metric == data.Cosine && c.Data.ZeroRows != "drop" {
			return fmt.Errorf("%w (graph.metric); --set data.zero_rows=drop leaves them out", err)
		}
		return fmt.Errorf("%w (graph.metric)", err)
	}
	return err
}

// Cause returns the cause of an error of the library, without its kind; other errors are
// unchanged.
func Cause(err error) error {
	if kinds, ok := err.(interface{ Unwrap() []error }); ok && (errors.Is(err, cne.ErrPoints) || errors.Is(err, cne.ErrOption)) {
		return kinds.Unwrap()[1]
	}
	return err
}

// Divide returns the numbers of training and held-out points among n points of data.path.
// If a file lists the rows, n counts only these.
func (d *Data) Divide(n int) (trained, held int) {
	if h := d.Holdout; h != nil && h.Share > 0 && n > 1 {
		held = min(max(1, int(math.Round(float64(n)*h.Share))), n-1)
	}
	if d.Sample != nil && d.Sample.File != "" {
		return n, held
	}
	return d.Sample.Of(n - held), held
}
