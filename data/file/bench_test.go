package file_test

import (
	"bytes"
	"testing"

	"cne/data/file"
)

func BenchmarkBuiltin(b *testing.B) {
	for b.Loop() {
		need(file.Builtin("mnist10k"))(b)
	}
}

func BenchmarkReadCSV(b *testing.B) {
	var content bytes.Buffer
	must(b, file.WriteCSV(&content, normal(1, 5000, 100), nil, nil))
	b.SetBytes(int64(content.Len()))
	b.ReportAllocs()
	for b.Loop() {
		need(file.Decode(bytes.NewReader(content.Bytes()), file.Options{}))(b)
	}
}
