package file

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"cne/data"
	"cne/internal/parquet"
)

// WriteParquet writes points as a Parquet file, with the columns that WriteCSV has, as
// float32, and a last column called name if names is not nil. Labels are text, or
// numbers if all of them are. The error is that of w, or ErrLabels or ErrShape if the
// arguments contradict each other.
func WriteParquet(w io.Writer, m *data.Matrix, labels *data.Labels, names []string) error {
	if err := data.CheckDense(m); err != nil {
		return err
	}
	if err := labels.Check(m.N); err != nil {
		return err
	}
	if names != nil && len(names) != m.N {
		return errorf(data.ErrShape, "names: got %d, want %d, one for each point", len(names), m.N)
	}
	m = m.Relative(nil)
	var fields []parquet.Field
	for j := range m.D {
		name := fmt.Sprintf("x%d", j+1)
		if m.D <= 3 {
			name = "xyz"[j : j+1]
		}
		fields = append(fields, parquet.Floats(name, func(i int) float32 { return m.X[i*m.D+j] }))
	}
	if labels != nil {
		f := parquet.Integers("label", func(i int) int64 { return int64(labels.Value[i]) })
		switch v := labels.Value; {
		case v == nil:
			f = parquet.Texts("label", func(i int) string { return strings.ToValidUTF8(labels.Names[labels.Class[i]], "\ufffd") })
		case slices.ContainsFunc(v, func(x float64) bool { return x != math.Trunc(x) }):
			f = parquet.Doubles("label", func(i int) float64 { return v[i] })
		}
		fields = append(fields, f)
	}
	if names != nil {
		fields = append(fields, parquet.Texts("name", func(i int) string { return strings.ToValidUTF8(names[i], "\ufffd") }))
	}
	return parquet.Write(w, m.N, fields)
}
