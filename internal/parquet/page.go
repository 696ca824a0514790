package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Kinds of pages.
const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3
)

// Encodings.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	encodingRLE             = 3
	encodingDelta           = 5
	encodingDeltaLength     = 6
	encodingDeltaText       = 7
	encodingDictionary      = 8
	encodingSplit           = 9
)

// Codecs.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecZstd   = 6
)

const (
	// headSize is how much is read at first for the head of a page, and maxHead how much
	// at most: it may have statistics with texts in it.
	headSize, maxHead = 1 << 9, 1 << 20
	// freePage is what a page may claim to take however small it is in the file, and
	// pageRatio how many times its size in the file a larger one may.
	freePage, pageRatio = 1 << 26, 1 << 8
	// A value of a page of numbers takes so many bytes at most, its levels and its share of
	// what stands before differences included, and a page so many besides.
	valueRoom, pageRoom = 16, 1 << 13
	// maxDelta is how many values a page may have in an encoding of differences, for
	// which their number does not follow from the size.
	maxDelta = 1 << 24
)

// A pageHead is what stands before the bytes of a page.
type pageHead struct {
	kind         int
	values       int
	encoding     int
	uncompressed int
	compressed   int
	crc          int64 // -1: none
	// Bytes of the levels, which version 2 does not compress, and whether the rest is.
	repBytes, defBytes int
	isCompressed       bool
}

// readHead reads the head of the page at the front of b, and returns its size.
func readHead(b []byte) (p pageHead, size int, err error) {
	d := &decoder{b: b}
	p = pageHead{crc: -1, isCompressed: true, kind: -1}
	number := func(to *int) bool {
		*to = d.int32()
		return true
	}
	d.fields(func(id int, kind byte) bool {
		switch {
		case kind == thriftI32 && id == 1:
			return number(&p.kind)
		case kind == thriftI32 && id == 2:
			return number(&p.uncompressed)
		case kind == thriftI32 && id == 3:
			return number(&p.compressed)
		case kind == thriftI32 && id == 4:
			p.crc = int64(uint32(d.int32()))
			return true
		case kind == thriftStruct && (id == 5 || id == 7):
			d.fields(func(id int, kind byte) bool {
				switch {
				case kind == thriftI32 && id == 1:
					return number(&p.values)
				case kind == thriftI32 && id == 2:
					return number(&p.encoding)
				}
				return false
			})
			return true
		case kind == thriftStruct && id == 8:
			d.fields(func(id int, kind byte) bool {
				switch {
				case kind == thriftI32 && id == 1:
					return number(&p.values)
				case kind == thriftI32 && id == 4:
					return number(&p.encoding)
				case kind == thriftI32 && id == 5:
					return number(&p.defBytes)
				case kind == thriftI32 && id == 6:
					return number(&p.repBytes)
				case id == 7:
					p.isCompressed = kind == thriftTrue
				}
				return false
			})
			return true
		}
		return false
	})
	if d.err != nil {
		return p, 0, d.err
	}
	if p.uncompressed < 0 || p.compressed < 0 || p.values < 0 || p.repBytes < 0 || p.defBytes < 0 || p.repBytes+p.defBytes > min(p.compressed, p.uncompressed) {
		return p, 0, damaged("a page has impossible sizes")
	}
	return p, len(b) - len(d.b), nil
}

// gzips and zstds are readers that are not in use: to make one takes as long as many pages.
var (
	gzips = sync.Pool{New: func() any { return new(gzip.Reader) }}
	zstds = sync.Pool{New: func() any {
		// Without concurrency it is read as it is asked for.
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(freePage), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err) // of options that do not go together
		}
		return z
	}}
)

// decompress undoes a codec; what comes out has to have the given size. It may be in the
// memory of room, or be b itself.
func decompress(codec int, b []byte, size int, room []byte) (out []byte, err error) {
	if size > max(freePage, pageRatio*len(b)) || codec == codecNone && size != len(b) {
		return nil, damaged("a page of %d bytes claims to hold %d", len(b), size)
	}
	switch codec {
	case codecNone:
		return b, nil
	case codecSnappy:
		if n, err := snappy.DecodedLen(b); err != nil || n != size {
			return nil, damaged("a page is no snappy stream of its size")
		}
		out, err = snappy.Decode(room[:cap(room)], b)
	case codecGzip:
		z := gzips.Get().(*gzip.Reader)
		defer gzips.Put(z)
		if err = z.Reset(bytes.NewReader(b)); err == nil {
			out, err = readUpTo(z, size, len(b), room)
		}
	case codecZstd:
		z := zstds.Get().(*zstd.Decoder)
		defer func() {
			_ = z.Reset(nil) // lets b go
			zstds.Put(z)
		}()
		if err = z.Reset(bytes.NewReader(b)); err == nil {
			out, err = readUpTo(z, size, len(b), room)
		}
	default:
		return nil, unsupported("the file is compressed with %s; write it with snappy, gzip or zstd", codecName(codec))
	}
	if err != nil || len(out) != size {
		return nil, damaged("a page cannot be decompressed")
	}
	return out, nil
}

func codecName(codec int) string {
	names := []string{3: "LZO", 4: "Brotli", 5: "LZ4", 7: "LZ4"}
	if codec > 0 && codec < len(names) && names[codec] != "" {
		return names[codec]
	}
	return "an unknown codec"
}

// readUpTo reads as many bytes and one more, with memory that grows as they come, from that
// of room on.
func readUpTo(r io.Reader, size, packed int, room []byte) ([]byte, error) {
	out := bytes.NewBuffer(room[:0])
	out.Grow(min(size, 4*packed) + bytes.MinRead)
	_, err := out.ReadFrom(io.LimitReader(r, int64(size)+1))
	return out.Bytes(), err
}

// plain returns the numbers of a page as they stand one after the other, little-endian,
// of the size that the column says.
func plain(c *Column, encoding int, b []byte, count int) ([]byte, error) {
	short := damaged("a page of the column %.60q has fewer values than it says", c.Name)
	switch {
	case encoding == encodingPlain && c.physical == typeBool:
		if count > 8*len(b) {
			return nil, short
		}
		out := make([]byte, count)
		for i := range out {
			out[i] = b[i>>3] >> (i & 7) & 1
		}
		return out, nil
	case encoding == encodingRLE && c.physical == typeBool:
		if len(b) < 4 || count > maxDelta {
			return nil, short
		}
		h := newHybrid(b[4:], 1)
		out, v := make([]byte, count), make([]uint32, 1)
		for i := range out {
			if !h.next(v) {
				return nil, short
			}
			out[i] = byte(v[0])
		}
		return out, nil
	case encoding == encodingPlain:
		if count > len(b)/c.Size {
			return nil, short
		}
		return b, nil
	case encoding == encodingSplit && c.physical != typeBool:
		if count > len(b)/c.Size {
			return nil, short
		}
		out := make([]byte, count*c.Size)
		for k := range c.Size {
			for i, v := range b[k*count : (k+1)*count] {
				out[i*c.Size+k] = v
			}
		}
		return out, nil
	case encoding == encodingDelta && (c.physical == typeInt32 || c.physical == typeInt64):
		values, _, err := deltas(b, count)
		if err != nil {
			return nil, err
		}
		out := make([]byte, 0, count*c.Size)
		for _, v := range values {
			if c.Size == 4 {
				out = binary.LittleEndian.AppendUint32(out, uint32(v))
			} else {
				out = binary.LittleEndian.AppendUint64(out, uint64(v))
			}
		}
		return out, nil
	}
	return nil, unsupportedEncoding(c, encoding)
}

func unsupportedEncoding(c *Column, encoding int) error {
	return unsupported("the column %.60q has the encoding %d, which is not read; write the file with plain or dictionary encoding", c.Name, encoding)
}

// texts returns the texts of a page.
func texts(c *Column, encoding int, b []byte, count int) ([]string, error) {
	short := damaged("a page of the column %.60q has fewer texts than it says", c.Name)
	var out []string
	switch encoding {
	case encodingPlain:
		if count > len(b)/4 {
			return nil, short
		}
		all := string(b) // of which the texts are parts
		for range count {
			if len(b) < 4 {
				return nil, short
			}
			n := binary.LittleEndian.Uint32(b)
			if b = b[4:]; uint64(n) > uint64(len(b)) {
				return nil, short
			}
			at := len(all) - len(b)
			out, b = append(out, all[at:at+int(n)]), b[n:]
		}
	case encodingDeltaLength:
		lengths, rest, err := deltas(b, count)
		if err != nil {
			return nil, err
		}
		return cut(rest, lengths, short)
	case encodingDeltaText:
		shared, rest, err := deltas(b, count)
		if err != nil {
			return nil, err
		}
		lengths, rest, err := deltas(rest, count)
		if err != nil {
			return nil, err
		}
		if out, err = cut(rest, lengths, short); err != nil {
			return nil, err
		}
		return prefixed(c, out, shared)
	default:
		return nil, unsupportedEncoding(c, encoding)
	}
	return out, nil
}

// cut returns the texts of some lengths that stand one after the other.
func cut(b []byte, lengths []int64, short error) ([]string, error) {
	all := string(b)
	out := make([]string, len(lengths))
	for i, n := range lengths {
		if n < 0 || n > int64(len(all)) {
			return nil, short
		}
		out[i], all = all[:n], all[n:]
	}
	return out, nil
}

// prefixed puts before each text the bytes that it shares with the one before.
func prefixed(c *Column, ends []string, shared []int64) ([]string, error) {
	before, left := "", int64(freePage)
	for i, n := range shared {
		if n < 0 || n > int64(len(before)) || n > left {
			return nil, damaged("the texts of a page of the column %.60q share more with those before than these have", c.Name)
		}
		if left -= n; n > 0 {
			ends[i] = before[:n] + ends[i]
		}
		before = ends[i]
	}
	return ends, nil
}

// deltas decodes count whole numbers from their differences (DELTA_BINARY_PACKED), and
// returns what follows them.
func deltas(b []byte, count int) (values []int64, rest []byte, err error) {
	d := &decoder{b: b}
	block, parts, total, value := d.uvarint(), d.uvarint(), d.uvarint(), d.integer()
	broken := damaged("a page of differences contradicts itself")
	if d.err != nil || count > maxDelta || total != uint64(count) || parts == 0 || parts > 1<<10 || block > 1<<20 || block == 0 || block%parts != 0 || block/parts%32 != 0 {
		return nil, nil, broken
	}
	each := int(block / parts)
	if count > 0 {
		values = append(values, value)
	}
	scratch := make([]uint32, 1)
	for len(values) < count {
		least := d.integer()
		if d.err != nil || uint64(len(d.b)) < parts {
			return nil, nil, broken
		}
		widths := d.b[:parts]
		d.b = d.b[parts:]
		for _, w := range widths {
			if len(values) == count {
				break
			}
			size := each / 8 * int(w)
			if w > 64 || size > len(d.b) {
				return nil, nil, broken
			}
			bits := d.b[:size]
			d.b = d.b[size:]
			for i := range min(each, count-len(values)) {
				value += least + int64(bitsAt(bits, i*int(w), int(w), scratch))
				values = append(values, value)
			}
		}
	}
	return values, d.b, nil
}

// bitsAt returns the number of up to 64 bits that begins at a bit.
func bitsAt(b []byte, at, width int, scratch []uint32) uint64 {
	v := uint64(0)
	for done := 0; done < width; {
		n := min(32, width-done)
		h := hybrid{b: b, width: n, bit: at + done}
		h.unpack(scratch)
		v |= uint64(scratch[0]) << done
		done += n
	}
	return v
}
