package explorer

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"

	"cne/internal/plot"
	"cne/internal/selection"
)

// firstColumn is the page's name of its own classes or values.
const firstColumn = "label"

// columns returns all columns to colour points by.
func (p *Page) columns() []Column {
	if p.Classes == nil && p.Values == nil {
		return p.Columns
	}
	return slices.Concat([]Column{{firstColumn, p.Colouring}}, p.Columns)
}

// addColumns adds a block for each column to colour points by, column-k for the k-th, and
// returns their descriptions. The page begins with the first.
func (c *content) addColumns(columns []Column) []aboutColumn {
	said := []aboutColumn{}
	for _, column := range columns {
		about := aboutColumn{Name: plot.Printable(column.Name)}
		var bytes []byte
		if column.Classes != nil {
			about.Classes, bytes = column.encodeClasses()
		} else if about.Values, bytes = encodeValues(column.Values); about.Values != nil {
			about.Values.Dates = column.Dates
		}
		if len(about.Classes) == 0 && about.Values == nil {
			continue // no row has a value
		}
		to := &c.Later
		if len(said) == 0 {
			to = &c.Blocks
		}
		*to = append(*to, packedBlock("column-"+strconv.Itoa(len(said)), bytes))
		said = append(said, about)
	}
	return said
}

// encodeClasses returns the classes that occur, and for each row the index of its class,
// or their number for none, in 1, 2 or 4 bytes, the lowest first.
func (c Column) encodeClasses() ([]aboutClass, []byte) {
	present, index := plot.Present(c.Classes)
	var out []byte
	for _, k := range index {
		out = appendWhole(out, selection.If(k < 0, len(present), int(k)), widthFor(len(present)))
	}
	return selection.Map(present, func(number int32) aboutClass {
		return aboutClass{number, plot.ClassName(c.ClassNames, number), inkOf(plot.ColourOf(c.ClassColours, int(number)))}
	}), out
}

// widthFor returns how many bytes a whole number from 0 to most takes: 1, 2 or 4.
func widthFor(most int) int {
	switch {
	case most < 1<<8:
		return 1
	case most < 1<<16:
		return 2
	}
	return 4
}

// appendWhole appends a whole number of width bytes, the lowest first.
func appendWhole(out []byte, v, width int) []byte {
	return binary.LittleEndian.AppendUint32(out, uint32(v))[:len(out)+width]
}

// A valueCoding is how the values of rows are written. If few differ, the Distinct values
// come first, as float64 with the lowest byte first. After them comes the index of each
// row's value, in Width bytes, or Distinct for none. If many differ, Distinct is 0 and
// each row has a number of Width bytes, float32 or float64. The lowest bytes of all rows
// come first, then the next bytes, because bytes of equal weight are similar and compress
// well.
type valueCoding struct {
	Distinct int `json:"distinct"`
	Width    int `json:"width"`
}

// mostDistinct is the largest number of different values with an index.
const mostDistinct = 1<<16 - 1

// encodeValues returns the scale of values and the exact values; NaN is a missing value.
// The scale is nil if all are missing.
func encodeValues(values []float64) (*aboutValues, []byte) {
	const levels = 256
	v := aboutValues{Low: math.Inf(1), High: math.Inf(-1), Ticks: []tick{}}
	index := make(map[float64]int)
	single := true // float32 holds all of them
	for _, x := range values {
		if math.IsNaN(x) {
			continue
		}
		v.Low, v.High = min(v.Low, x), max(v.High, x)
		single = single && float64(float32(x)) == x
		if len(index) <= mostDistinct {
			index[x] = 0
		}
	}
	if len(index) == 0 {
		return nil, nil
	}
	for i := range levels {
		light := inkOf(plot.ValueColour(float64(i) / (levels - 1)))[0]
		v.Inks = append(v.Inks, ink{light, light}) // on a dark ground, too: the lightness carries the value
	}
	for _, m := range plot.Marks(v.Low, v.High) {
		v.Ticks = append(v.Ticks, tick{m, plot.Number(m)})
	}
	if len(index) <= mostDistinct && 8*len(index) < 4*len(values) {
		v.valueCoding = valueCoding{len(index), widthFor(len(index))}
		return &v, encodeDistinct(values, index)
	}
	v.valueCoding = valueCoding{0, selection.If(single, 4, 8)}
	return &v, appendPlanes(nil, len(values), v.Width, func(i int) uint64 {
		if single {
			return uint64(math.Float32bits(float32(values[i])))
		}
		return math.Float64bits(values[i])
	})
}

// encodeDistinct writes the values that index has, and the index of each row's value.
func encodeDistinct(values []float64, index map[float64]int) []byte {
	distinct := slices.Sorted(maps.Keys(index))
	var out []byte
	for k, x := range distinct {
		index[x] = k
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
	}
	for _, x := range values {
		k, ok := index[x]
		if !ok { // NaN
			k = len(distinct)
		}
		out = appendWhole(out, k, widthFor(len(distinct)))
	}
	return out
}

// appendPlanes appends n numbers of width bytes: first the lowest byte of all, then the next of
// all.
func appendPlanes(out []byte, n, width int, number func(i int) uint64) []byte {
	planes := len(out)
	out = append(out, make([]byte, width*n)...)
	for i := range n {
		v := number(i)
		for k := range width {
			out[planes+k*n+i] = byte(v >> (8 * k))
		}
	}
	return out
}

// packed begins the text of a block whose bytes are compressed as in RFC 1950 (zlib).
// Browsers call this deflate. No base64 has a colon.
const packed = "deflate:"

// leastPacked is the least size of a block that may be compressed, in bytes: browsers
// that cannot decompress can read pages of few points.
const leastPacked = 1 << 14

// packedBlock returns a block, compressed if that makes it a tenth shorter.
func packedBlock(id string, content []byte) block {
	if len(content) >= leastPacked {
		var short bytes.Buffer
		z := zlib.NewWriter(&short)
		z.Write(content) // a buffer takes all
		z.Close()
		if 10*short.Len() < 9*len(content) {
			return block{id, packed, short.Bytes()}
		}
	}
	return block{id: id, content: content}
}
