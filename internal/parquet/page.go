package parquet

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Kinds of pages.
const pageData, pageDictionary, pageDataV2 = 0, 2, 3

// Encodings, of which old files call the dictionary plain.
const (
	encodingPlain, encodingSplit, encodingRLE             = 0, 9, 3
	encodingDictionary, encodingPlainDictionary           = 8, 2
	encodingDelta, encodingDeltaLength, encodingDeltaText = 5, 6, 7
)

// Codecs.
const codecNone, codecSnappy, codecGzip, codecZstd = 0, 1, 2, 6

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
	kind, values, encoding   int
	uncompressed, compressed int
	crc                      int // -1: none
	// Bytes of the levels, which version 2 does not compress, and whether the rest is.
	repBytes, defBytes int
	isCompressed       bool
}

// readHead reads the head of the page at the front of b, and returns its size.
func readHead(b []byte) (p pageHead, size int, err error) {
	v, size, err := parse(b)
	if err != nil {
		return p, 0, err
	}
	p = pageHead{kind: v.get(1, -1), uncompressed: v.get(2, 0), compressed: v.get(3, 0), crc: -1, isCompressed: true}
	if crc := v.field(4); crc.id != 0 {
		p.crc = int(uint32(crc.number))
	}
	encoding := 2
	more := v.field(map[int]int{pageData: 5, pageDictionary: 7, pageDataV2: 8}[p.kind])
	if p.kind == pageDataV2 {
		encoding, p.defBytes, p.repBytes, p.isCompressed = 4, more.get(5, 0), more.get(6, 0), more.get(7, 1) != 0
	}
	p.values, p.encoding = more.get(1, 0), more.get(encoding, 0)
	if min(p.uncompressed, p.compressed, p.values, p.repBytes, p.defBytes) < 0 || p.repBytes+p.defBytes > min(p.compressed, p.uncompressed) {
		return p, 0, damaged("a page has impossible sizes")
	}
	return p, size, nil
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

// decompress undoes a codec; what comes out has to have the given size.
func decompress(codec int, b []byte, size int) (out []byte, err error) {
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
		out, err = snappy.Decode(nil, b)
	case codecGzip:
		z := gzips.Get().(*gzip.Reader)
		defer gzips.Put(z)
		if err = z.Reset(bytes.NewReader(b)); err == nil {
			out, err = readUpTo(z, size, len(b))
		}
	case codecZstd:
		z := zstds.Get().(*zstd.Decoder)
		defer zstds.Put(z)
		if err = z.Reset(bytes.NewReader(b)); err == nil {
			out, err = readUpTo(z, size, len(b))
		}
		_ = z.Reset(nil) // lets b go
	default:
		name := cmp.Or(map[int]string{3: "LZO", 4: "Brotli", 5: "LZ4", 7: "LZ4"}[codec], "an unknown codec")
		return nil, unsupported("the file is compressed with %s; write it with snappy, gzip or zstd", name)
	}
	if err != nil || len(out) != size {
		return nil, damaged("a page cannot be decompressed")
	}
	return out, nil
}

// readUpTo reads as many bytes and one more, with memory that grows as they come.
func readUpTo(r io.Reader, size, packed int) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, min(size, 4*packed)+bytes.MinRead))
	_, err := out.ReadFrom(io.LimitReader(r, int64(size)+1))
	return out.Bytes(), err
}

// A content is what a page holds: little-endian numbers of the column's size, or texts.
type content struct {
	numbers []byte
	texts   []string
}

// decode reads count values that are no entries of a dictionary.
func (c *Column) decode(encoding int, b []byte, count int) (out content, err error) {
	short := damaged("a page of the column %.60q has fewer values than it says", c.Name)
	switch {
	case encoding == encodingPlain && c.Kind == Text:
		all := string(b) // of which the texts are parts
		for range count {
			if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
				return out, short
			}
			n, at := int(binary.LittleEndian.Uint32(b)), len(all)-len(b)+4
			out.texts, b = append(out.texts, all[at:at+n]), b[4+n:]
		}
	case encoding == encodingDeltaLength && c.Kind == Text:
		var lengths []int64
		if lengths, b, err = deltas(b, count); err == nil {
			out.texts, err = cut(b, make([]int64, count), lengths, short)
		}
	case encoding == encodingDeltaText && c.Kind == Text:
		var shared, lengths []int64
		if shared, b, err = deltas(b, count); err != nil {
			return out, err
		}
		if lengths, b, err = deltas(b, count); err == nil {
			out.texts, err = cut(b, shared, lengths, short)
		}
	case c.physical == typeBool && (encoding == encodingPlain || encoding == encodingRLE):
		h := hybrid{b: b, width: 1, packed: true, run: count}
		if encoding == encodingRLE {
			h = newHybrid(b[min(4, len(b)):], 1) // after its size
		}
		if count > maxDelta {
			return out, short
		}
		for bit := make([]uint32, 1); len(out.numbers) < count; out.numbers = append(out.numbers, byte(bit[0])) {
			if !h.next(bit) {
				return out, short
			}
		}
	case c.Kind != Text && c.physical != typeBool && (encoding == encodingPlain || encoding == encodingSplit):
		if count > len(b)/c.Size {
			return out, short
		}
		if out.numbers = b; encoding == encodingSplit {
			out.numbers = make([]byte, count*c.Size)
			for k := range c.Size {
				for i, v := range b[k*count : (k+1)*count] {
					out.numbers[i*c.Size+k] = v
				}
			}
		}
	case encoding == encodingDelta && (c.physical == typeInt32 || c.physical == typeInt64):
		values, _, err := deltas(b, count)
		if err != nil {
			return out, err
		}
		var word [8]byte
		for _, v := range values {
			binary.LittleEndian.PutUint64(word[:], uint64(v))
			out.numbers = append(out.numbers, word[:c.Size]...)
		}
	default:
		err = unsupported("the column %.60q has the encoding %d, which is not read; write the file with plain or dictionary encoding", c.Name, encoding)
	}
	if err == nil {
		out.numbers = out.numbers[:count*c.Size] // none of texts
		err = c.checkBytes(out.numbers)
	}
	return out, err
}

// checkBytes refuses numbers above 255 in a column that says that it has none.
func (c *Column) checkBytes(numbers []byte) error {
	all := uint32(0)
	for i := 0; c.Byte && i+4 <= len(numbers); i += 4 {
		all |= binary.LittleEndian.Uint32(numbers[i:])
	}
	if all > 255 {
		return damaged("the column %.60q says that its numbers are from 0 to 255, and has others", c.Name)
	}
	return nil
}

// cut returns texts that begin with so many bytes as those before them, and of which the
// rest, of some lengths, stands one after the other.
func cut(b []byte, shared, lengths []int64, short error) (texts []string, err error) {
	all, before, room := string(b), "", int64(freePage)
	for i, n := range lengths {
		if n < 0 || n > int64(len(all)) || shared[i] < 0 || shared[i] > min(room, int64(len(before))) {
			return nil, short
		}
		text := all[:n]
		if shared[i] > 0 {
			text = before[:shared[i]] + text
		}
		texts, before, all, room = append(texts, text), text, all[n:], room-shared[i]
	}
	return texts, nil
}

// deltas decodes count whole numbers from their differences (DELTA_BINARY_PACKED), and
// returns what follows them.
func deltas(b []byte, count int) (values []int64, rest []byte, err error) {
	d := &decoder{b: b}
	block, parts, total, number := d.uvarint(), d.uvarint(), d.uvarint(), d.integer()
	broken := damaged("a page of differences contradicts itself")
	if d.err != nil || count > maxDelta || total != uint64(count) || parts == 0 || parts > 1<<10 || block > 1<<20 || block == 0 || block%(32*parts) != 0 {
		return nil, nil, broken
	}
	each := int(block / parts)
	if count > 0 {
		values = append(values, number)
	}
	for len(values) < count {
		least, widths := d.integer(), d.take(parts)
		for _, w := range widths {
			if len(values) == count {
				break
			}
			packed := d.take(uint64(each / 8 * int(w)))
			if d.err != nil || w > 64 {
				return nil, nil, broken
			}
			for i := range min(each, count-len(values)) {
				number += least + int64(bitsAt(packed, i*int(w), int(w)))
				values = append(values, number)
			}
		}
		if d.err != nil {
			return nil, nil, broken
		}
	}
	return values, d.b, nil
}

// bitsAt returns the number of up to 64 bits that begins at a bit.
func bitsAt(b []byte, at, width int) (v uint64) {
	for done := 0; done < width; {
		n := min(8-(at+done)%8, width-done)
		v |= uint64(b[(at+done)/8]>>((at+done)%8)&(1<<n-1)) << done
		done += n
	}
	return v
}
