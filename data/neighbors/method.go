package neighbors

import "cne/internal/errkind"

// A SearchMethod says how neighbours are found.
type SearchMethod int

const (
	// Auto is Approximate where that is faster by seconds, as Approximates tells,
	// and elsewhere Exact.
	Auto SearchMethod = iota
	// Exact finds the nearest points.
	Exact
	// Approximate finds points of which nearly all are among the nearest, in a time
	// that grows little faster than their number. EstimateRecall tells what share.
	Approximate
)

var searchMethods = errkind.Names[SearchMethod]{Package: "neighbors", Type: "SearchMethod", What: "search for neighbours",
	Words: []string{"auto", "exact", "approximate"}}

// String returns "auto", "exact" or "approximate".
func (s SearchMethod) String() string { return searchMethods.String(s) }

// MarshalText returns the word of String. Another value is an error.
func (s SearchMethod) MarshalText() ([]byte, error) { return searchMethods.Text(s) }

// UnmarshalText reads one of the words. Another is an error.
func (s *SearchMethod) UnmarshalText(text []byte) error { return searchMethods.Parse(s, text) }

// Words returns the words of all methods.
func (SearchMethod) Words() []string { return searchMethods.Words }

// For each point an approximate search takes a time that grows with k, the exact one
// a time that grows with n·(D+12). Where they meet, n·(D+12)/k was found to be 90 000 for
// D = 10 and k = 5, 54 000 for 10 and 15, 180 000 for 50 and 15, 103 000 for 50 and 100,
// and a million for 784 and 15. Those with small k have fewer than 100 000 points there,
// which Auto leaves to the exact search in any case: it takes seconds.
const (
	autoPoints      = 100_000
	autoPerNeighbor = 100_000
)

// Approximates reports whether the method finds the k nearest of n points of d
// values approximately. Auto does if there are more than 100 000 points, of more
// than 8 values (in fewer dimensions a tree finds the nearest as fast), and
// n·(d+12) is above 100 000·k.
func (s SearchMethod) Approximates(n, d, k int) bool {
	switch s {
	case Auto:
		return n > autoPoints && d > treeMaxD && float64(n)*float64(d+12) > autoPerNeighbor*float64(k)
	case Approximate:
		return true
	}
	return false
}
