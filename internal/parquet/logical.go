package parquet

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Logical types, by their field in the union.
const (
	logicalList, logicalDecimal, logicalDate, logicalTime, logicalTimestamp = 3, 5, 6, 7, 8
	logicalInteger, logicalUUID, logicalFloat16                             = 10, 14, 15
	logicalInterval                                                         = -1 // it has only a converted type
)

// converted maps the old converted types to the logical types, their successors.
var converted = map[int]int{
	3: logicalList, 5: logicalDecimal, 6: logicalDate, 7: logicalTime, 8: logicalTime, 9: logicalTimestamp,
	10: logicalTimestamp, 21: logicalInterval,
	11: logicalInteger, 12: logicalInteger, 13: logicalInteger, 14: logicalInteger, // without a sign, of 8 to 64 bits
	15: logicalInteger, 16: logicalInteger, 17: logicalInteger, 18: logicalInteger,
}

// logicalType returns the logical type of an element, or 0. of is what the union holds of
// it, or empty.
func logicalType(element value) (id int, of value) {
	for only := range element.field(schemaLogical).parts() {
		return only.id, only
	}
	return converted[element.get(schemaConverted, -1)], value{}
}

// unsignedBits returns the number of bits of unsigned whole numbers, or 0.
func unsignedBits(element, of value) int {
	if old := element.get(schemaConverted, -1); of.kind == 0 && old >= 11 && old <= 14 {
		return 1 << (old - 8)
	}
	if of.kind != 0 && of.get(2, 0) == 0 {
		return of.get(1, 0)
	}
	return 0
}

// perSecond returns the number of units in a second for a logicalTime or logicalTimestamp;
// 0 if it is not known.
func perSecond(element, of value) int64 {
	for unit := range of.field(2).parts() {
		return map[int]int64{1: 1e3, 2: 1e6, 3: 1e9}[unit.id]
	}
	return map[int]int64{7: 1e3, 8: 1e6, 9: 1e3, 10: 1e6}[element.get(schemaConverted, -1)]
}

// dayLayout and clockLayout are how dates and times are written, as in most CSV files.
const dayLayout, clockLayout = "2006-01-02", "15:04:05.999999999"

const secondsPerDay = 24 * 60 * 60

// setKind sets the kind of a leaf's values.
func (c *Column) setKind(leaf value) {
	number := func(kind Kind, size int) { c.Kind, c.Size, c.Is = kind, size, "a number" }
	texts := func(is string, format func(raw []byte) string) { c.Kind, c.Is, c.format = Text, is, format }
	moment := func(is, layout string, at func(v int64) time.Time) {
		texts(is, func(raw []byte) string { return at(whole(raw)).UTC().Format(layout) })
	}
	logical, of := logicalType(leaf)
	isWhole := c.physical == typeInt32 || c.physical == typeInt64
	c.stored = map[int]int{typeInt32: 4, typeInt64: 8, typeInt96: 12, typeFloat: 4, typeDouble: 8,
		typeFixed: max(0, leaf.get(schemaLength, 0))}[c.physical]
	unit := perSecond(leaf, of)
	at := func(v int64) time.Time { return time.Unix(v/unit, v%unit*(1e9/unit)) }
	switch {
	case c.physical == typeFixed && c.stored == 0 || logical == logicalInterval:
		c.Is = "of a type other than number and text"
	case logical == logicalDecimal && (isWhole || c.physical == typeFixed && c.stored <= maxDecimal || c.physical == typeBytes):
		number(Float, 8)
		scale := of.get(1, leaf.get(schemaScale, 0))
		c.number = func(raw []byte) float64 { return decimal(raw, !isWhole, scale) }
	case logical == logicalDate && c.physical == typeInt32:
		moment("a date", dayLayout, func(v int64) time.Time { return time.Unix(v*secondsPerDay, 0) })
	case logical == logicalTimestamp && c.physical == typeInt64 && unit > 0:
		moment("a point in time", dayLayout+" "+clockLayout, at)
	case logical == logicalTime && isWhole && unit > 0:
		moment("a time", clockLayout, at)
	case c.physical == typeInt96: // nanoseconds of a day, counted from 24 November 4714 BC
		const epoch = 2440588
		texts("a point in time", func(raw []byte) string {
			return time.Unix((whole(raw[8:])-epoch)*secondsPerDay, whole(raw[:8])).UTC().Format(dayLayout + " " + clockLayout)
		})
	case c.physical == typeBool:
		number(Bool, 1)
	case isWhole:
		number(Signed, 4*c.physical)
		if logical == logicalInteger {
			bits := unsignedBits(leaf, of)
			if c.Byte = bits == 8; bits > 0 {
				c.Kind = Unsigned
			}
		}
	case c.physical == typeFloat || c.physical == typeDouble:
		number(Float, 4*(c.physical-typeInt96))
	case c.physical == typeFixed && logical == logicalFloat16 && c.stored == 2:
		number(Float, 2)
	case c.physical == typeFixed && logical == logicalUUID && c.stored == 16:
		texts("text", func(raw []byte) string {
			s := hex.EncodeToString(raw)
			return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
		})
	case c.physical == typeFixed || c.physical == typeBytes:
		texts("text", func(raw []byte) string { return string(raw) })
	default:
		c.Is = "of a type other than number and text"
	}
}

// whole returns a little-endian whole number of 4 or 8 bytes.
func whole(raw []byte) int64 {
	if len(raw) == 4 {
		return int64(int32(binary.LittleEndian.Uint32(raw)))
	}
	return int64(binary.LittleEndian.Uint64(raw))
}

// decimal returns the float64 nearest to a decimal number: a whole number, in bytes
// big-endian in two's complement, times 10 to the power of −scale.
func decimal(raw []byte, bytes bool, scale int) float64 {
	v := new(big.Int)
	if !bytes {
		v.SetInt64(whole(raw))
	} else if v.SetBytes(raw); len(raw) > 0 && raw[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	if u := v.Int64(); v.IsInt64() && u > -1<<53 && u < 1<<53 && scale >= 0 && scale <= 22 {
		return float64(u) / math.Pow10(scale) // of two exact numbers
	}
	f, _ := strconv.ParseFloat(v.String()+"e"+strconv.Itoa(-scale), 64) // ±Inf if out of range
	return f
}
