package data_test

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"testing"

	"cne/data"
	"cne/internal/rng"
)

func BenchmarkBuiltin(b *testing.B) {
	for b.Loop() {
		need(data.Builtin("mnist10k"))(b)
	}
}

func BenchmarkReadCSV(b *testing.B) {
	var file bytes.Buffer
	must(b, data.WriteCSV(&file, normal(1, 5000, 100), nil, nil))
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		need(data.ReadCSV(bytes.NewReader(file.Bytes()), data.Options{}))(b)
	}
}

// countsFile makes a file of drawn counts as 10x's programs write it: 10 % of
// 2000 genes in each of 50 000 cells, or in fewer to see that a benchmark runs.
func countsFile() []byte {
	s := rng.New(1, rng.Init)
	const genes, each = 2000, 200
	cells := 50000
	if testing.Short() {
		cells = 2000
	}
	file := fmt.Appendf(nil, "%%%%MatrixMarket matrix coordinate integer general\n%d %d %d\n", genes, cells, cells*each)
	for i := range cells {
		for k := range each {
			file = strconv.AppendInt(file, int64(k*genes/each+s.IntN(genes/each)+1), 10)
			file = strconv.AppendInt(append(file, ' '), int64(i+1), 10)
			file = strconv.AppendInt(append(file, ' '), int64(1-4*math.Log(1-s.Float64())), 10)
			file = append(file, '\n')
		}
	}
	return file
}

func BenchmarkReadCounts(b *testing.B) {
	plain := countsFile()
	for name, file := range map[string][]byte{"plain": plain, "gzip": gz(plain)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(plain))) // of text
			b.ReportAllocs()
			for b.Loop() {
				need(data.ReadCounts(bytes.NewReader(file)))(b)
			}
		})
	}
}

func BenchmarkFitCounts(b *testing.B) {
	c := need(data.ReadCounts(bytes.NewReader(countsFile())))(b)
	for b.Loop() {
		s := need(data.FitCounts(c, 1000))(b)
		need(s.Apply(c))(b)
	}
}
