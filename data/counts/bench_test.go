package counts_test

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"testing"

	"cne/data/counts"
	"cne/internal/rng"
)

// countsFile makes a file of drawn counts as 10x's programs write it: 10 % of
// 2000 genes in each of 50 000 cells, or in fewer to see that a benchmark runs.
func countsFile() []byte {
	s := rng.New(1, rng.Init)
	const genes, each = 2000, 200
	cells := 50000
	if testing.Short() {
		cells = 2000
	}
	content := fmt.Appendf(nil, "%%%%MatrixMarket matrix coordinate integer general\n%d %d %d\n", genes, cells, cells*each)
	for i := range cells {
		for k := range each {
			content = strconv.AppendInt(content, int64(k*genes/each+s.IntN(genes/each)+1), 10)
			content = strconv.AppendInt(append(content, ' '), int64(i+1), 10)
			content = strconv.AppendInt(append(content, ' '), int64(1-4*math.Log(1-s.Float64())), 10)
			content = append(content, '\n')
		}
	}
	return content
}

func BenchmarkReadCounts(b *testing.B) {
	plain := countsFile()
	for name, content := range map[string][]byte{"plain": plain, "gzip": gz(plain)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(plain))) // of text
			b.ReportAllocs()
			for b.Loop() {
				need(readCounts(bytes.NewReader(content)))(b)
			}
		})
	}
}

func BenchmarkFitCounts(b *testing.B) {
	c := need(readCounts(bytes.NewReader(countsFile())))(b)
	for b.Loop() {
		s := need(counts.Fit(c, 1000))(b)
		need(s.Apply(c))(b)
	}
}
