package points

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cne/data"
	"cne/data/file"
	"cne/internal/rng"
	"cne/internal/selection"
	"cne/internal/text"
)

// fewestNumbered and fewestAscending are the least numbers of points where a column that
// counts them, without or with gaps, is no coincidence.
const fewestNumbered, fewestAscending = 5, 20

// warnOfRowNumbers warns of columns that count the points: whole numbers that ascend, most of
// them different, or that are nearly all numbers of a range, in any order. It also warns of
// a matrix of distances that is taken for points, of edges or similarities that are taken for
// distances, of angles that look like radians, and of values that may stand for missing ones.
func (in *Inputs) warnOfRowNumbers(set *data.Dataset) {
	m, metric := set.Points, in.Config.Embed.GraphMetric
	if m == nil || m.CSR != nil || m.N < fewestNumbered {
		return
	}
	switch {
	case metric == data.Precomputed:
		zeros := selection.Count(m.X, func(v float32) bool { return v == 0 })
		switch {
		case zeros < len(m.X) && 2*zeros > len(m.X):
			in.log.Warn("most distances are 0, which means equal points; if the matrix holds edges, scipy.sparse.csgraph.shortest_path(x, unweighted=True) makes distances")
		case m.N == m.D && areSimilarities(m):
			in.log.Warn("many points are much farther from each other than by way of a third; if the matrix holds similarities S, which are large for near points, their distances are 1 - S for similarities up to 1, and 0 on the diagonal")
		}
		return
	case metric == data.Haversine && inRadians(m):
		in.log.Warn("all latitudes are within ±π/2 and all longitudes within ±2π; haversine takes degrees (numpy.degrees(x) converts radians)")
	case m.N == m.D && !metric.Direct() && set.CheckDistances() == nil && slices.Max(m.X) > 0:
		in.log.Warn("the points are a square, symmetric matrix with zeros on its diagonal; if it holds distances, set graph.metric to precomputed (--set graph.metric=precomputed)")
	}
	if v, column, times := placeholder(m, in.Config.Data.NA); times > 0 {
		in.log.Warn("a value that may stand for missing ones is far from all others of its column; data.na of a table, or NaN, marks it as missing", "value", v, "column", column, "points", times)
	}
	WarnOfCounts(in.log, m, func(name string) string { return setting("data.drop", name) + " leaves it out" })
}

// WarnOfCounts warns of columns that count the points, or have the name of an identifier; remedy
// says how to leave one out.
func WarnOfCounts(log *slog.Logger, m *data.Matrix, remedy func(name string) string) {
	if m.N < fewestNumbered {
		return
	}
	for j, name := range m.Columns {
		low, high, ascending, changes, i := math.Inf(1), math.Inf(-1), true, 0, 0
		for last := math.NaN(); i < m.N && m.At(i, j) == math.Trunc(m.At(i, j)); i++ {
			v := m.At(i, j)
			if v != last {
				changes++
			}
			low, high, ascending, last = min(low, v), max(high, v), ascending && !(v < last), v
		}
		if i < m.N {
			continue
		}
		seen := make(map[float64]bool)
		for i := 0; i < m.N && high-low < 1.25*float64(m.N); i++ {
			seen[m.At(i, j)] = true
		}
		counted := changes == m.N && ascending && high-low == float64(m.N-1) ||
			m.N >= fewestAscending && (ascending && 2*(changes-1) >= m.N || 10*len(seen) >= 9*m.N)
		if counted || high-low > 1 && identifier.MatchString(name) {
			log.Warn(fmt.Sprintf("column %s looks like %s and is part of all distances; %s", text.Quote(name),
				selection.If(counted, "row numbers", "an identifier"), remedy(name)))
		}
	}
}

// placeholder returns the smallest or largest value of a column, the column's number, and how many
// points have the value: two or more, while all others are much closer to each other. It has only
// nines as digits, such as -99 and 999, or is 10¹⁹ or more in magnitude, and is none of na. Without
// such a column it returns 0 points.
func placeholder(m *data.Matrix, na []string) (v float64, column, times int) {
	lowest, highest := slices.Clone(m.Row(0)), slices.Clone(m.Row(0))
	for i := range m.N { // one row after the other is far faster
		for j, x := range m.Row(i) {
			lowest[j], highest[j] = min(lowest[j], x), max(highest[j], x)
		}
	}
	named := selection.Map(na, func(word string) float32 {
		v, _ := text.ParseFloat(strings.TrimSpace(word), 32) // 0 for a word
		return float32(v)
	})
	for j := range m.D {
		base := 0.0
		if m.Offset != nil {
			base = m.Offset[j]
		}
		low, high := base+float64(lowest[j]), base+float64(highest[j])
		for _, v := range []float64{low, high} {
			if size := math.Abs(v); low == high || size < 1e19 && (v < 999 && v > -99 || strings.Trim(fmt.Sprint(size), "9") != "") || slices.Contains(named, float32(v)) {
				continue
			}
			others := slices.DeleteFunc(selection.Map(selection.UpTo[int](m.N), func(i int) float64 { return m.At(i, j) }), func(w float64) bool { return w == v })
			spread, times := slices.Max(others)-slices.Min(others), m.N-len(others)
			if times > 1 && spread > 0 && high-low > selection.If(v < 0, 2., 5.)*spread {
				return v, j + 1, times
			}
		}
	}
	return 0, 0, 0
}

// identifier is the name of a column of identifiers, such as id, customer_id and patientID.
var identifier = regexp.MustCompile(`(?i:^(.*\PL)?id(entifier)?$)|\p{Ll}I[dD]$`)

// advise returns flags for columns that are not numbers: the one with the fewest values is
// the label, others with few are categories, the first without classes has names, and signs
// among numbers mean missing values. leaves reports whether columns of numbers are left.
func (in *Inputs) advise(table *file.TextError) (advice string, leaves bool) {
	d, columns := &in.Config.Data, table.Columns
	label, name := -1, -1
	for i, c := range columns {
		switch {
		case !c.IsText():
		case c.AreClasses() && (label < 0 || c.Values < columns[label].Values) && d.LabelColumn == "" && len(d.Labels) == 0:
			label = i
		case c.AreNames() && name < 0 && c.Values > mostCategories && d.Names == "":
			name = i
		}
	}
	lists := []struct {
		key       string
		set, more []string
	}{{"data.label_column", nil, nil}, {"data.categories", d.Categories, nil}, {"data.dates", d.Dates, nil},
		{"data.na", d.NA, nil}, {"data.names", nil, nil}, {"data.drop", d.Drop, nil}}
	for i, c := range columns {
		of, items := &lists[5], []string{c.Name}
		switch {
		case i == label:
			of = &lists[0]
		case i == name:
			of = &lists[4]
		case c.Number && len(c.Fields) <= mostSigns && !slices.ContainsFunc(c.Fields, isWritten):
			of, items = &lists[3], nil
			for _, f := range c.Fields {
				if !slices.Contains(of.more, f.Text) {
					items = append(items, f.Text)
				}
			}
		case c.IsDate():
			of = &lists[2]
		case c.IsText() && c.Values > 1 && c.Values <= mostCategories:
			of = &lists[1]
			table.Missing = table.Missing || c.Missing
		}
		of.more = append(of.more, items...)
	}
	for _, l := range lists {
		if len(l.more) > 0 {
			advice += " " + setting(l.key, slices.Concat(l.set, l.more)...)
		}
	}
	if table.Missing && d.Refuses() && lists[3].more == nil {
		advice += " --set data.missing=mean"
	}
	return advice, table.Numbers || len(lists[1].more)+len(lists[2].more)+len(lists[3].more) > 0
}

// isWritten reports whether a field may be a number in another notation, or is not UTF-8: it is
// no sign for a missing value, unlike 1.#IND.
func isWritten(f file.TextField) bool {
	return strings.ContainsAny(f.Text, "0123456789") && !strings.Contains(f.Text, "#") || !utf8.ValidString(f.Text)
}

// mostCategories is the largest number of values of a column that is suggested as a
// category, and mostSigns that of words among numbers that are suggested as missing values.
const mostCategories, mostSigns = 20, 2

// longestSetting and longestAdvice bound flags in bytes, such that a message does not
// shorten them.
const longestSetting, longestAdvice = 150, 900

// setting returns the flag that sets a key, for a shell. Keys of lists take several values, or one
// that is not a plain item, as a list; long lists take several flags.
func setting(key string, values ...string) string {
	value := strings.Join(values, ",")
	if last := len(values) - 1; last > 0 && len(value) > longestSetting {
		return setting(key, values[:last/2+1]...) + " " + setting(key, values[last/2+1:]...)
	}
	isOne, isPlain := key == "data.label_column" || key == "data.names", text.Escape(value) == value
	switch {
	case isOne && (!isPlain || value == "null" || value == "~" || strings.TrimLeft(value, `"'`) != value):
		value = strconv.Quote(value)
	case !isOne && (!isPlain || strings.ContainsAny(strings.Join(values, ""), ",\"[]?*&!|>%@`#:") || slices.Contains(values, "-")):
		value = "[" + strings.Join(selection.Map(values, strconv.Quote), ",") + "]"
	}
	s := key + "=" + value
	switch {
	case strings.ContainsAny(s, "$\\\"`!"): // a shell changes them between double quotes
		s = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	case strings.ContainsAny(s, " (){}[];<>'~*?&|#"):
		s = `"` + s + `"`
	}
	return "--set " + s
}

// areSimilarities reports whether distances break the triangle inequality, even if they are
// squared ones, for one in twenty of some triples.
func areSimilarities(m *data.Matrix) bool {
	const triples = 3000
	stream, broken := rng.New(0, rng.Sample, 1), 0
	for range triples {
		c := stream.Choose(m.N, 3)
		if math.Sqrt(m.At(c[0], c[1])) > 1.01*(math.Sqrt(m.At(c[0], c[2]))+math.Sqrt(m.At(c[2], c[1]))) {
			broken++
		}
	}
	return 20*broken > triples
}

// inRadians reports whether all latitudes and longitudes could be angles in radians, to within
// rounding.
func inRadians(m *data.Matrix) bool {
	for i := range m.N {
		if math.Abs(m.At(i, 0)) > math.Pi/2+1e-6 || math.Abs(m.At(i, 1)) > 2*math.Pi+1e-6 {
			return false
		}
	}
	return true
}

// explainTable adds to an error of reading a table the keys that help. drops reports
// whether points may be left out.
func (in *Inputs) explainTable(err error, drops bool) error {
	d, table := &in.Config.Data, new(file.TextError)
	switch {
	case errors.As(err, &table) && strings.HasPrefix(table.WordLine(), "lines"):
		return fmt.Errorf("%w; the header has several lines: remove %s, or all but the one with the names of the columns", err, table.WordLine())
	case errors.As(err, &table) && table.WordLine() != "":
		return fmt.Errorf("%w; remove %s, or the lines above it if it has the names of the columns", err, table.WordLine())
	case errors.As(err, &table) && len(d.Only) > 0:
		return fmt.Errorf("%w; leave them out of data.columns, or add --drop-text", err)
	case errors.As(err, &table) && table.Numbers && in.Points != nil && in.Points.Columns() == nil:
		return fmt.Errorf("%w; --drop-text leaves them out, and data.holdout_labels (FILE:COLUMN) takes one as labels", err)
	case errors.As(err, &table):
		advice, leaves := in.advise(table)
		switch {
		case !leaves && slices.ContainsFunc(table.Columns, file.TextColumn.HasUnit):
			return fmt.Errorf("%w; write the numbers without units", err)
		case !leaves:
			return fmt.Errorf("%w; points are numbers, such as those of a model that embeds texts", err)
		case len(advice) > longestAdvice:
			advice = "list them in data.categories, data.drop and data.label_column of a configuration"
		default:
			advice = "for instance" + advice
		}
		if table.Numbers {
			advice += ", or --drop-text"
		}
		if line := table.OddLine(); line != "" {
			advice += "; or remove " + line
		}
		if table.Unsure {
			advice += "; if the first line has the names of the columns, --set data.header=yes first"
		}
		return fmt.Errorf("%w; %s", err, advice)
	case errors.Is(err, data.ErrShape) && in.Config.Embed.GraphMetric == data.Precomputed:
		return fmt.Errorf("%w; scipy.spatial.distance.squareform(x) makes the square matrix of condensed distances", err)
	case errors.Is(err, data.ErrNotFinite) && in.Config.Embed.GraphMetric == data.Precomputed:
		return fmt.Errorf("%w; a matrix of distances (graph.metric: precomputed) must be complete", err)
	case errors.Is(err, data.ErrNotFinite) && !d.FillsMissing():
		remedy := selection.If(drops && d.Refuses() && !errors.Is(err, data.ErrIncomplete), "drop leaves such rows out, mean", "mean")
		return fmt.Errorf("%w; --set data.missing=%s fills in the means of the columns", err, remedy)
	}
	return err
}
