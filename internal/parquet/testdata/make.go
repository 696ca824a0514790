// Command make writes the .parquet files beside it by two writers that are none of ours,
// github.com/apache/arrow-go/v18 v18.8.0 and github.com/parquet-go/parquet-go v0.32.0. It is
// no part of the module, which needs neither: build it in one of its own.
//
//	go run make.go FOLDER
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	other "github.com/parquet-go/parquet-go"
)

const rows = 100

// A row is what row i of each file holds, in the types of the other writer; what are
// numbers of 8 and 16 bits there are such here, too.
type row struct {
	B    bool      `parquet:"b"`
	I32  int32     `parquet:"i32,delta"`
	I64  int64     `parquet:"i64,delta"`
	U32  uint32    `parquet:"u32"`
	U64  uint64    `parquet:"u64,dict"`
	F32  float32   `parquet:"f32,split"`
	F64  float64   `parquet:"f64,dict"`
	Text *string   `parquet:"text,dict,optional"`
	Long string    `parquet:"long,delta"`
	List []float32 `parquet:"list,list"`
}

func text(i int) string { return fmt.Sprintf("text %d", i%7) }

func table() arrow.RecordBatch {
	m := memory.DefaultAllocator
	list := arrow.ListOf(arrow.PrimitiveTypes.Float32)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean}, {Name: "i8", Type: arrow.PrimitiveTypes.Int8, Nullable: true}, {Name: "i16", Type: arrow.PrimitiveTypes.Int16},
		{Name: "i32", Type: arrow.PrimitiveTypes.Int32}, {Name: "i64", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "u8", Type: arrow.PrimitiveTypes.Uint8, Nullable: true}, {Name: "u16", Type: arrow.PrimitiveTypes.Uint16}, {Name: "u32", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "u64", Type: arrow.PrimitiveTypes.Uint64}, {Name: "f16", Type: arrow.FixedWidthTypes.Float16}, {Name: "f32", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
		{Name: "f64", Type: arrow.PrimitiveTypes.Float64}, {Name: "text", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "long", Type: arrow.BinaryTypes.String},
		{Name: "list", Type: list, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(m, schema)
	for i := range rows {
		b.Field(0).(*array.BooleanBuilder).Append(i%3 == 0)
		b.Field(1).(*array.Int8Builder).Append(int8(i - 50))
		b.Field(2).(*array.Int16Builder).Append(int16(i*300 - 15000))
		b.Field(3).(*array.Int32Builder).Append(int32(i*i*1000 - 2000000))
		b.Field(4).(*array.Int64Builder).Append(int64(i-50) << 40)
		b.Field(5).(*array.Uint8Builder).Append(uint8(i * 5))
		b.Field(6).(*array.Uint16Builder).Append(uint16(i * 655))
		b.Field(7).(*array.Uint32Builder).Append(uint32(4000000000 + i))
		b.Field(8).(*array.Uint64Builder).Append(1<<63 + uint64(i))
		b.Field(9).(*array.Float16Builder).Append(float16.New(float32(i) / 4))
		b.Field(10).(*array.Float32Builder).Append(float32(i) / 3)
		b.Field(11).(*array.Float64Builder).Append(float64(i) / 7)
		if i%5 == 0 {
			b.Field(12).AppendNull()
		} else {
			b.Field(12).(*array.StringBuilder).Append(text(i))
		}
		b.Field(13).(*array.StringBuilder).Append(fmt.Sprintf("name of row %d", i))
		l := b.Field(14).(*array.ListBuilder)
		l.Append(true)
		for k := range 3 {
			l.ValueBuilder().(*array.Float32Builder).Append(float32(3*i + k))
		}
	}
	return b.NewRecordBatch()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	t := table()
	var whole, floats, texts []string
	for _, f := range t.Schema().Fields() {
		switch f.Type.ID() {
		case arrow.BOOL, arrow.LIST:
		case arrow.STRING:
			texts = append(texts, f.Name)
		case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
			floats = append(floats, f.Name)
		default:
			whole = append(whole, f.Name)
		}
	}
	each := func(names []string, e parquet.Encoding) (all []parquet.WriterProperty) {
		for _, n := range names {
			all = append(all, parquet.WithEncodingFor(n, e))
		}
		return all
	}
	plain := []parquet.WriterProperty{parquet.WithDictionaryDefault(false)}
	deltas := append(append(append(plain, each(whole, parquet.Encodings.DeltaBinaryPacked)...), each(floats, parquet.Encodings.ByteStreamSplit)...), each(texts, parquet.Encodings.DeltaLengthByteArray)...)
	others := append(append(append(plain, each([]string{"i32", "i64", "u32", "u64"}, parquet.Encodings.ByteStreamSplit)...), each(texts, parquet.Encodings.DeltaByteArray)...), parquet.WithEncodingFor("b", parquet.Encodings.RLE))
	for _, f := range []struct {
		name    string
		version parquet.DataPageVersion
		codec   compress.Compression
		more    []parquet.WriterProperty
	}{
		{"arrow-plain-v1", parquet.DataPageV1, compress.Codecs.Uncompressed, plain},
		{"arrow-plain-v2-snappy", parquet.DataPageV2, compress.Codecs.Snappy, plain},
		{"arrow-dictionary-v1-gzip", parquet.DataPageV1, compress.Codecs.Gzip, nil},
		{"arrow-dictionary-v2-zstd", parquet.DataPageV2, compress.Codecs.Zstd, nil},
		{"arrow-delta-v2", parquet.DataPageV2, compress.Codecs.Uncompressed, deltas},
		{"arrow-others-v1-snappy", parquet.DataPageV1, compress.Codecs.Snappy, others},
	} {
		out, err := os.Create(filepath.Join(os.Args[1], f.name+".parquet"))
		check(err)
		props := append(f.more, parquet.WithDataPageVersion(f.version), parquet.WithCompression(f.codec), parquet.WithMaxRowGroupLength(37), parquet.WithStats(false))
		if f.name != "arrow-others-v1-snappy" { // of several pages of runs of booleans, this writer puts all before into each
			props = append(props, parquet.WithDataPageSize(64), parquet.WithBatchSize(8))
		}
		w, err := pqarrow.NewFileWriter(t.Schema(), out, parquet.NewWriterProperties(props...), pqarrow.DefaultWriterProps())
		check(err)
		check(w.Write(t))
		check(w.Close())
	}
	for version, codec := range map[int]other.WriterOption{1: other.Compression(&other.Snappy), 2: other.Compression(&other.Zstd)} {
		out, err := os.Create(filepath.Join(os.Args[1], fmt.Sprintf("parquet-go-v%d.parquet", version)))
		check(err)
		w := other.NewGenericWriter[row](out, codec, other.DataPageVersion(version), other.PageBufferSize(512), other.MaxRowsPerRowGroup(64))
		for i := range rows {
			r := row{i%3 == 0, int32(i*i*1000 - 2000000), int64(i-50) << 40, uint32(4000000000 + i), 1<<63 + uint64(i), float32(i) / 3, float64(i) / 7, nil,
				fmt.Sprintf("name of row %d", i), []float32{float32(3 * i), float32(3*i + 1), float32(3*i + 2)}}
			if i%5 != 0 {
				s := text(i)
				r.Text = &s
			}
			_, err := w.Write([]row{r})
			check(err)
		}
		check(w.Close())
		check(out.Close())
	}
}
