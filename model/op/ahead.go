package op

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"cne/internal/simd"
)

// FetchAhead names rows of a table that will be read soon: the node of a contrastive
// loss has them fetched into the caches when it next runs, bit by bit between what it
// computes. Batches of so many pairs that several cores share them do not.
func FetchAhead(loss *gorgonia.Node, table *Array, rows []int32) {
	o, ok := loss.Op().(*contrastive)
	switch {
	case !ok:
	case table.dtype == tensor.Float64:
		o.double.listed.ahead = ahead[float64]{table.f64, table.Cols(), rows, 0}
	default:
		o.single.listed.ahead = ahead[float32]{table.f32, table.Cols(), rows, 0}
	}
}

// ahead are the rows of a table, [n, d], that are still to be fetched, a few at a time.
type ahead[T Float] struct {
	table []T
	d     int
	rows  []int32
	few   int
}

// begin spreads the rows over so many calls of fetch.
func (a *ahead[T]) begin(calls int) { a.few = 1 + len(a.rows)/calls }

func (a *ahead[T]) fetch() {
	if few := min(a.few, len(a.rows)); few > 0 {
		simd.FetchRows(a.table, a.d, a.rows[:few])
		a.rows = a.rows[few:]
	}
}
