package parquet

import (
	"encoding/binary"
	"encoding/hex"
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
	3: logicalList, 5: logicalDecimal, 6: logicalDate, 7: logicalTime, 8: logicalTime, 9: logicalTimestamp, 10: logicalTimestamp, 21: logicalInterval,
}

// logicalType returns the logical type of an element, or 0. of is what the union holds of
// it, or empty.
func logicalType(element value) (id int, of value) {
	for only := range element.field(schemaLogical).parts() {
		return only.id, only
	}
	switch old := element.get(schemaConverted, -1); {
	case old >= 11 && old <= 18: // whole numbers of 8 to 64 bits
		return logicalInteger, value{}
	default:
		return converted[old], value{}
	}
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
	moment := func(is, layout string, number func(int64) float64, at func(int64) time.Time) {
		c.Kind, c.Size, c.Is = Time, 8, is
		c.number = func(raw []byte) float64 { return number(whole(raw)) }
		c.format = func(raw []byte) string { return at(whole(raw)).UTC().Format(layout) }
	}
	logical, of := logicalType(leaf)
	isWhole := c.physical == typeInt32 || c.physical == typeInt64
	c.stored = map[int]int{typeInt32: 4, typeInt64: 8, typeInt96: 12, typeFloat: 4, typeDouble: 8, typeFixed: max(0, leaf.get(schemaLength, 0))}[c.physical]
	unit := perSecond(leaf, of)
	inDays := func(v int64) float64 { return float64(v) / float64(unit*secondsPerDay) }
	at := func(v int64) time.Time {
		second := floorDiv(v, unit)
		return time.Unix(second, (v-second*unit)*(1e9/unit))
	}
	switch {
	case c.physical == typeFixed && c.stored == 0 || logical == logicalInterval:
		c.Is = "of a type other than number and text"
	case logical == logicalDecimal && (isWhole || c.physical == typeFixed && c.stored <= maxDecimal || c.physical == typeBytes):
		number(Float, 8)
		scale := of.get(1, leaf.get(schemaScale, 0))
		bigEndian := !isWhole
		c.number = func(raw []byte) float64 { return decimalNumber(raw, bigEndian, scale) }
		c.format = func(raw []byte) string { return decimal(raw, bigEndian, scale) }
	case logical == logicalDate && c.physical == typeInt32:
		moment("a date", dayLayout, func(v int64) float64 { return float64(v) }, func(v int64) time.Time { return time.Unix(v*secondsPerDay, 0) })
	case logical == logicalTimestamp && c.physical == typeInt64 && unit > 0:
		moment("a point in time", dayLayout+" "+clockLayout, inDays, at)
	case logical == logicalTime && isWhole && unit > 0:
		moment("a time", clockLayout, inDays, at)
	case c.physical == typeInt96: // nanoseconds of a day, counted from noon on 24 November 4714 BC
		const epoch = 2440588
		day := func(raw []byte) int64 { return whole(raw[8:]) - epoch }
		moment("a point in time", "", nil, nil)
		c.number = func(raw []byte) float64 { return float64(day(raw)) + float64(whole(raw[:8]))/(1e9*secondsPerDay) }
		c.format = func(raw []byte) string {
			return time.Unix(day(raw)*secondsPerDay, whole(raw[:8])).UTC().Format(dayLayout + " " + clockLayout)
		}
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
	case c.physical == typeFixed || c.physical == typeBytes:
		c.Kind, c.Is = Text, "text"
		if c.format = func(raw []byte) string { return string(raw) }; logical == logicalUUID && c.stored == 16 {
			c.format = uuid
		}
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

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// uuid writes 16 bytes as 8-4-4-4-12 hexadecimal digits.
func uuid(raw []byte) string {
	s := hex.EncodeToString(raw)
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}

// unscaled returns the whole number of a decimal: in two's complement, big-endian in bytes.
func unscaled(raw []byte, bigEndian bool) *big.Int {
	if !bigEndian {
		return big.NewInt(whole(raw))
	}
	v := new(big.Int).SetBytes(raw)
	if len(raw) > 0 && raw[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	return v
}

// decimal writes a decimal number with all of its digits.
func decimal(raw []byte, bigEndian bool, scale int) string {
	v := unscaled(raw, bigEndian)
	digits := new(big.Int).Abs(v).String()
	if scale > 0 && scale <= maxScale {
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	} else if scale != 0 {
		digits += "e" + strconv.Itoa(-scale)
	}
	if v.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}

// maxScale bounds the digits that decimal writes after the point.
const maxScale = 100

// decimalNumber returns the float64 nearest to a decimal number.
func decimalNumber(raw []byte, bigEndian bool, scale int) float64 {
	if v := unscaled(raw, bigEndian); v.IsInt64() && scale >= 0 && scale < len(powers) && v.CmpAbs(exact) <= 0 {
		return float64(v.Int64()) / powers[scale] // of two exact numbers
	}
	v, _ := strconv.ParseFloat(decimal(raw, bigEndian, scale), 64) // ±Inf if out of range
	return v
}

var exact = big.NewInt(1 << 53)

// powers of ten that float64 holds exactly.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// TextCursor is Cursor for Texts of the column's values. ok is false if they are plain
// numbers or cannot be read.
func (f *File) TextCursor(i int) (k *Cursor, ok bool) {
	k = f.Cursor(i)
	if k.c.Kind == Text {
		return k, true
	}
	if k.c.format == nil {
		return nil, false
	}
	c := *k.c
	c.Kind, c.Byte = Text, false
	k.c = &c
	return k, true
}
