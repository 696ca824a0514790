package data

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"

	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/simd"
	"cne/internal/text"
)

// A Scaling is a way of bringing points to a common scale.
type Scaling string

const (
	// ScaleAuto is ScaleStandard if the columns are different quantities, of which few would
	// make nearly all distances: there are categories, or the largest standard deviation is
	// more than ten times the median, or, of columns that most have a name that is not
	// numbered like x1, x2, five times the smallest. It is ScaleUnit for equal quantities:
	// bytes, sparse points, counts, principal components, columns in an order such as spectra,
	// and more than 200 columns. The Scaler has the choice.
	ScaleAuto Scaling = "auto"
	// ScaleNone changes only the Offset of the values.
	ScaleNone Scaling = "none"
	// ScaleUnit divides all values (without their Offset) by the largest magnitude, so
	// they lie in [-1, 1]; unsigned bytes are divided by 255, so pixels lie in [0, 1]. If
	// all values are 0 they stay 0.
	ScaleUnit Scaling = "unit"
	// ScaleStandard gives every column mean 0 and standard deviation 1 (the
	// population's: the sum of squares divided by n). Constant columns
	// become 0.
	ScaleStandard Scaling = "standard"
)

// Words returns the names of all scalings.
func (Scaling) Words() []string {
	return []string{string(ScaleAuto), string(ScaleNone), string(ScaleUnit), string(ScaleStandard)}
}

// UnmarshalText implements encoding.TextUnmarshaler. For an unknown word the error wraps
// ErrOption.
func (s *Scaling) UnmarshalText(word []byte) error {
	return kind.ParseWord(s, word, ErrOption, "scaling")
}

// scaleGrain is the number of values, about, that are scaled in one piece.
const scaleGrain = 1 << 16

// A Scaler is a scaling with the numbers that were fitted to points. It can be saved with
// a model and applied to new points.
type Scaler struct {
	Kind Scaling `json:"kind"`
	// Offset is the Matrix.Offset of the fitted points. Points to be scaled are first made
	// relative to it. The other fields apply after subtracting Offset.
	Offset []float64 `json:"offset,omitempty"`
	// Divisor is the divisor of ScaleUnit, above 0.
	Divisor float32 `json:"divisor,omitempty"`
	// Mean and SD are for ScaleStandard: it subtracts Mean from each column and then divides
	// by SD. An SD of 0 marks a column that becomes 0.
	Mean []float64 `json:"mean,omitempty"`
	SD   []float64 `json:"sd,omitempty"`
	// Spread has the standard deviations of the fitted points where ScaleAuto has chosen
	// ScaleUnit after looking at them. It is not saved.
	Spread []float64 `json:"-"`
}

// FitScaler fits a scaling to the points of ds, without changing them. For ScaleAuto it
// chooses a scaling. The error wraps ErrOption for an unknown scaling, and ErrSparse for
// the ScaleStandard of sparse points, because it would make them dense. Other errors are
// as for CheckContext.
func FitScaler(ctx context.Context, ds *Dataset, scaling Scaling) (_ *Scaler, err error) {
	defer kind.Catch(&err)
	kind.Check(ds.CheckContext(ctx))
	if scaling != ScaleAuto {
		return fitScaler(ctx, ds, scaling), nil
	}
	_, d := ds.Dims()
	if ds.Bytes || CheckDense(ds.Source()) != nil || d > maxQuantities && !differ(ds.Columns()) {
		return fitScaler(ctx, ds, ScaleUnit), nil
	}
	s := fitScaler(ctx, ds, ScaleStandard)
	hot := oneHot(ds.Codings, d)
	spreads := selection.Pick(s.SD, selection.Where(d, func(j int) bool { return s.SD[j] > 0 && !hot[j] }))
	named := differ(ds.Columns())
	if slices.Contains(hot, true) || unlike(spreads, named) && !oneQuantity(ctx, ds.Source(), s, named) {
		return s, nil
	}
	unit := fitScaler(ctx, ds, ScaleUnit)
	unit.Spread = s.SD
	return unit, nil
}

// maxQuantities is the largest number of columns without own names that may be different
// quantities.
const maxQuantities = 200

// unlike sorts the spreads of columns, and reports whether the columns are different
// quantities. named reports whether they have names of their own.
func unlike[T float32 | float64](spreads []T, named bool) bool {
	slices.Sort(spreads)
	n := len(spreads)
	return n > 1 && (spreads[n-1] > 10*spreads[n/2] || named && spreads[n-1] > 5*spreads[0])
}

// oneQuantity reports whether the columns of points hold one quantity: whole numbers of at
// least 0 of which many are 0, in the widest column and most others (counts); columns
// without correlation whose standard deviations fall (principal components); columns of
// which neighbours are more alike than others, and equally wide (spectra, time series,
// pixels), or at most a hundredfold if they have names of their own; or columns that differ
// only by a few values far away from the others. s has their means and standard deviations,
// and named reports whether they have names of their own. It looks at some two thousand
// points, and fails as kind.Need does.
func oneQuantity(ctx context.Context, points Source, s *Scaler, named bool) bool {
	n, d := points.Dims()
	var rows [][]float32
	counts, zeros, step := true, make([]int, d), max(1, n/2000)
	kind.Check(points.Each(ctx, 0, func(lo int, block *Matrix) error {
		for i := (step - lo%step) % step; i < block.N; i += step {
			rows = append(rows, slices.Clone(block.Row(i)))
			for j, v := range block.Row(i) {
				counts = counts && v >= 0 && v == float32(math.Trunc(float64(v)))
				if v == 0 {
					zeros[j]++
				}
			}
		}
		return nil
	}))
	varying := selection.Where(d, func(j int) bool { return s.SD[j] > 0 })
	widest, all, with := 0, 0, 0 // zeros, and columns with any
	for j, sd := range s.SD {
		if sd > s.SD[widest] {
			widest = j
		}
		all, with = all+zeros[j], with+min(1, zeros[j])
	}
	if counts && 3*all > len(rows)*d && zeros[widest] > 0 && 10*with >= 9*d || len(rows) >= leastRows && sameMiddle(rows, varying, named) {
		return true
	}
	// correlation returns the mean correlation of columns at a distance, and the mean of its
	// magnitude.
	correlation := func(distance int) (mean, size float64) {
		pairs := float64(len(varying) - distance)
		for k := range len(varying) - distance {
			a, b, sum := varying[k], varying[k+distance], 0.
			for _, row := range rows {
				sum += float64((float64(row[a]) - s.Mean[a]) / s.SD[a] * (float64(row[b]) - s.Mean[b]) / s.SD[b])
			}
			r := sum / float64(len(rows))
			mean, size = mean+r/pairs, size+math.Abs(r)/pairs
		}
		return mean, size
	}
	spread := func(a, b int) int { return cmp.Compare(s.SD[a], s.SD[b]) }
	if len(varying) < leastOrdered || named && s.SD[widest] > 100*s.SD[slices.MinFunc(varying, spread)] {
		return false
	}
	near, size := correlation(1)
	far, _ := correlation(len(varying) / 2)
	falling := 0. // Spearman's correlation of the standard deviations with their order
	ordered := slices.SortedStableFunc(slices.Values(varying), func(a, b int) int { return spread(b, a) })
	for k, j := range ordered {
		difference := float64(slices.Index(varying, j) - k)
		falling += float64(difference * difference)
	}
	m := float64(len(varying))
	falling = 1 - 6*falling/float64(m*(float64(m*m)-1))
	steps, squares, mean := 0., 0., 0. // of the logarithms of the standard deviations
	for k, j := range varying {
		mean += math.Log(s.SD[j]) / m
		if k > 0 {
			steps += math.Pow(math.Log(s.SD[j]/s.SD[varying[k-1]]), 2)
		}
	}
	for _, j := range varying {
		squares += math.Pow(math.Log(s.SD[j])-mean, 2)
	}
	smooth := steps < 0.2*squares && math.Abs(falling) < 0.9
	return falling > 0.95 && size < 0.25 || near-far > 0.15 && near > 0.5 && steps < squares || near-far > 0.1 && smooth
}

// sameMiddle reports whether the middle halves of the columns' values are about equally wide.
func sameMiddle(rows [][]float32, columns []int, named bool) bool {
	var widths []float32
	values := make([]float32, len(rows))
	for _, j := range columns {
		for i, row := range rows {
			values[i] = row[j]
		}
		slices.Sort(values)
		widths = append(widths, values[3*len(values)/4]-values[len(values)/4])
	}
	slices.Sort(widths)
	n := len(widths)
	return widths[0] > 0 && widths[n-1] < 5*widths[n/2] && (!named || widths[n-1] < 2*widths[0])
}

// leastRows is the least number of points with a middle half that says something.
const leastRows = 20

// leastOrdered is the least number of columns whose order oneQuantity takes into account.
const leastOrdered = 6

// Dominant returns the column with the largest share of the variance of points that are not
// standardised, and the share; or −1 if it is not known.
func (s *Scaler) Dominant() (column int, share float64) {
	column, sum := -1, 0.
	for j, sd := range s.Spread {
		sum += float64(sd * sd)
		if column < 0 || sd > s.Spread[column] {
			column = j
		}
	}
	if sum == 0 {
		return -1, 0
	}
	return column, s.Spread[column] * s.Spread[column] / sum
}

// SpreadRatio returns the ratio of the largest to the smallest standard deviation of the
// columns that are not constant, and not of categories. It returns 0 if there are none, or
// if the scaling is not ScaleStandard.
func (s *Scaler) SpreadRatio() float64 {
	sd := slices.DeleteFunc(slices.Clone(s.SD), func(v float64) bool { return v == 0 || v == oneHotSD })
	if len(sd) == 0 {
		return 0
	}
	return slices.Max(sd) / slices.Min(sd)
}

// oneHotSD is the divisor of a column of a category: two values are then as far apart as
// two standard deviations of a number, since their points differ by √2 in two columns.
const oneHotSD = math.Sqrt2 / 2

// differ reports whether most names of columns differ in more than digits. Names such as
// pixel0, pixel1, … or PC1, PC2, … only number the values of one quantity.
func differ(names []string) bool {
	words := map[string]bool{}
	for _, name := range names {
		words[digits.ReplaceAllString(name, "")] = true
	}
	return len(words) > 1 && 2*len(words) >= len(names)
}

var digits = regexp.MustCompile(`\d+`)

// fitScaler is FitScaler without ScaleAuto, for checked points. It fails as kind.Need does.
func fitScaler(ctx context.Context, ds *Dataset, scaling Scaling) *Scaler {
	points := ds.Source()
	n, d := points.Dims()
	s := &Scaler{Kind: scaling, Offset: slices.Clone(ds.Offset())}
	switch scaling {
	case ScaleNone:
	case ScaleUnit:
		s.Divisor = 255
		if !ds.Bytes {
			s.Divisor = 0
			kind.Check(points.Each(ctx, 0, func(_ int, block *Matrix) error {
				s.Divisor = max(s.Divisor, LargestMagnitude(block.held()))
				return nil
			}))
		}
		s.Divisor = cmp.Or(s.Divisor, 1)
	case ScaleStandard:
		if m, ok := points.(*Matrix); ok && m.CSR != nil {
			kind.Check(errCentering)
		}
		mean, squares, constant := columnMoments(ctx, points)
		hot := oneHot(ds.Codings, d)
		s.Mean, s.SD = mean, make([]float64, d)
		for j := range s.SD {
			if !constant[j] {
				s.SD[j] = selection.If(hot[j], oneHotSD, math.Sqrt(squares[j]/float64(n)))
			}
		}
	default:
		kind.Check(s.Check(d)) // an unknown scaling
	}
	return s
}

// Scale scales the points in place and returns the scaler, for other points. Errors are as
// for FitScaler.
func (ds *Dataset) Scale(ctx context.Context, scaling Scaling) (*Scaler, error) {
	s, err := FitScaler(ctx, ds, scaling)
	if err != nil {
		return nil, err
	}
	return s, ds.ScaleBy(s)
}

// ScaleBy scales the points in place by a scaler fitted to others; Stored points are scaled
// whenever they are read. Errors are as for Scaler.Apply.
func (ds *Dataset) ScaleBy(s *Scaler) (err error) {
	defer kind.Catch(&err)
	if ds.Stored == nil {
		kind.Check(s.Apply(ds.Points))
	} else {
		_, d := ds.Dims()
		kind.Check(s.Check(d))
		ds.Stored = s.scaled(ds.Stored, ds.Bytes)
	}
	if s.Kind != ScaleNone {
		ds.Bytes = false
	}
	return nil
}

// scaled returns a source of scaled points. If bytes are only divided, the division is
// part of their conversion to float32.
func (s *Scaler) scaled(points Source, bytes bool) Source {
	if from, ok := points.(Divider); ok && bytes && s.Kind == ScaleUnit && s.Offset == nil {
		if divided := from.Divided(s.Divisor); divided != nil {
			return divided
		}
	}
	return &transformed{Source: points, change: s.Apply}
}

// Apply scales the points of m in place and removes their Offset. The error wraps ErrShape
// for a matrix of another width than the fitted points, ErrOption for an invalid scaler,
// and ErrSparse for a scaler that would make sparse points dense. Other errors are as for
// Matrix.Check.
func (s *Scaler) Apply(m *Matrix) error {
	if err := m.Check(); err != nil {
		return err
	}
	if err := s.Check(m.D); err != nil {
		return err
	}
	if m.CSR != nil && (s.Offset != nil || s.Kind == ScaleStandard) {
		return errCentering
	}
	m.rebase(s.Offset)
	m.Offset = nil
	x, grain := m.held(), max(1, scaleGrain/m.D)*m.D
	if len(x) <= grain {
		s.scale(x)
		return nil
	}
	parallel.For(len(x), grain, func(_, lo, hi int) { s.scale(x[lo:hi]) })
	return nil
}

// scale scales the values of whole points.
func (s *Scaler) scale(x []float32) {
	switch s.Kind {
	case ScaleUnit:
		simd.Divide(x, s.Divisor)
	case ScaleStandard:
		for ; len(x) > 0; x = x[len(s.SD):] {
			for j, sd := range s.SD {
				if sd == 0 {
					x[j] -= x[j] // NaN stays
					continue
				}
				x[j] = float32((float64(x[j]) - s.Mean[j]) / sd)
			}
		}
	}
}

// Check returns an error if the scaler cannot scale points of d values. It wraps ErrShape
// for another width, and ErrOption for invalid fields.
func (s *Scaler) Check(d int) error {
	if s.Offset != nil && len(s.Offset) != d {
		return errorf(ErrShape, "values per point: got %d, want %d as the scaler was fitted to", d, len(s.Offset))
	}
	if j := simd.FirstNotFinite(s.Offset); j >= 0 {
		return errorf(ErrOption, "offset of the scaler for column %d (counted from 1): got %v, want a finite number", j+1, s.Offset[j])
	}
	switch s.Kind {
	case ScaleNone:
		return nil
	case ScaleUnit:
		if !(s.Divisor > 0) || math.IsInf(float64(s.Divisor), 0) {
			return errorf(ErrOption, "divisor of the scaler: got %v, want a finite number above 0", s.Divisor)
		}
		return nil
	case ScaleStandard:
		if len(s.Mean) != d || len(s.SD) != d {
			return errorf(ErrShape, "values per point: got %d, want %d as the scaler was fitted to", d, len(s.Mean))
		}
		for j, sd := range s.SD {
			if !(sd >= 0) || math.IsInf(sd, 0) || math.IsNaN(s.Mean[j]-s.Mean[j]) {
				return errorf(ErrOption,
					"scaler for column %d (counted from 1): got mean %v and standard deviation %v, want finite ones, the latter 0 or more", j+1, s.Mean[j], sd)
			}
		}
		return nil
	}
	return errorf(ErrOption, "scaling: got %q, want %s", string(s.Kind), text.Enumerate(s.Kind.Words()[1:]))
}

// LargestMagnitude returns the largest absolute value in x, or 0.
func LargestMagnitude(x []float32) float32 {
	largest := make([]uint32, parallel.Pieces(len(x), scaleGrain))
	parallel.For(len(x), scaleGrain, func(p, lo, hi int) {
		most := uint32(0) // the bits of non-negative numbers have the same order
		for _, v := range x[lo:hi] {
			most = max(most, math.Float32bits(v)&^(1<<31))
		}
		largest[p] = most
	})
	return math.Float32frombits(slices.Max(append(largest, 0)))
}

// columnMoments returns the means of the columns, the sums of the squared deviations from
// them, and which columns are constant. It reads the points twice, so the sums are
// precise even if a mean is far from zero. It fails as kind.Need does.
func columnMoments(ctx context.Context, points Source) (mean, squares []float64, constant []bool) {
	mean, constant, err := ColumnMeans(ctx, points)
	kind.Check(err)
	sums := newPieceSums(points)
	kind.Check(points.Each(ctx, 0, func(lo int, block *Matrix) error {
		sums.each(lo, block, func(_, from int, sum []float64, row []float32) {
			mean := mean[from : from+len(row)]
			for j, v := range row {
				d := float64(v) - mean[j]
				sum[j] += float64(d * d)
			}
		})
		return nil
	}))
	return mean, sums.total(), constant
}

// ColumnMeans returns the means of the columns, and reports which columns are constant.
// Errors are as for Each.
func ColumnMeans(ctx context.Context, points Source) (mean []float64, constant []bool, err error) {
	n, d := points.Dims()
	sums := newPieceSums(points)
	varies := make([]bool, len(sums.sums))
	first := make([]float32, d)
	err = points.Each(ctx, 0, func(lo int, block *Matrix) error {
		if lo == 0 {
			copy(first, block.X)
		}
		sums.each(lo, block, func(piece, from int, sum []float64, row []float32) {
			vary, first := varies[piece*d+from:][:len(row)], first[from:from+len(row)]
			for j, v := range row {
				sum[j] += float64(v)
				if v != first[j] {
					vary[j] = true
				}
			}
		})
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	mean, constant = sums.total(), make([]bool, d)
	for j := range mean {
		mean[j] /= float64(n)
		constant[j] = true
		for at := j; at < len(varies); at += d {
			constant[j] = constant[j] && !varies[at]
		}
		if constant[j] {
			mean[j] = float64(first[j]) // without the rounding of the sum
		}
	}
	return mean, constant, nil
}

// A pieceSums sums a function of each column's values over pieces of rows; the pieces'
// sums are added in order, so the result does not depend on GOMAXPROCS.
type pieceSums struct {
	d, grain int
	sums     []float64 // [pieces, d]
}

func newPieceSums(points Source) *pieceSums {
	n, d := points.Dims()
	// The grain is large enough for at most 256 pieces.
	grain := max(256, (n+255)/256)
	return &pieceSums{d, grain, make([]float64, parallel.Pieces(n, grain)*d)}
}

func (s *pieceSums) total() []float64 {
	total := make([]float64, s.d)
	for i, v := range s.sums {
		total[i%s.d] += v
	}
	return total
}

// columnTile is the number of columns per task if a block has too few pieces for all
// cores.
const columnTile = 128

// each calls add for each row of a block. lo is the number of the block's first row; rows
// of one piece are in order. add gets the piece's number, the first column from, and the
// piece's sums and the row's values starting with that column.
func (s *pieceSums) each(lo int, block *Matrix, add func(piece, from int, sum []float64, row []float32)) {
	first := lo / s.grain
	pieces := (lo+block.N-1)/s.grain - first + 1
	tile := block.D
	if pieces < 64 {
		tile = min(tile, columnTile)
	}
	tiles := parallel.Pieces(block.D, tile)
	parallel.For(pieces*tiles, 1, func(_, k, _ int) {
		p, from := first+k/tiles, k%tiles*tile
		to := min(block.D, from+tile)
		sum := s.sums[p*s.d+from : p*s.d+to]
		for i := max(lo, p*s.grain); i < min(lo+block.N, (p+1)*s.grain); i++ {
			add(p, from, sum, block.Row(i - lo)[from:to])
		}
	})
}
