package data_test

import (
	"bytes"
	"testing"

	"cne/data"
)

func BenchmarkBuiltin(b *testing.B) {
	for b.Loop() {
		if _, err := data.Builtin("mnist10k"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFitPCA(b *testing.B) {
	ds, err := data.Builtin("mnist10k")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := data.FitPCA(ds.Points, 50); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTransform(b *testing.B) {
	ds, err := data.Builtin("mnist10k")
	if err != nil {
		b.Fatal(err)
	}
	pca, err := data.FitPCA(ds.Points, 50)
	if err != nil {
		b.Fatal(err)
	}
	dst := data.NewMatrix(ds.Points.N, pca.K)
	for b.Loop() {
		if err := pca.TransformTo(dst, ds.Points); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadCSV(b *testing.B) {
	var file bytes.Buffer
	if err := data.WriteCSV(&file, normal(1, 5000, 100), nil); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := data.ReadCSV(bytes.NewReader(file.Bytes()), data.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
