package parquet

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"cne/internal/kind"
	"cne/internal/selection"
)

// Kinds of pages.
const pageData, pageDictionary, pageDataV2 = 0, 2, 3

// Encodings. Old files use encodingPlainDictionary for the dictionary encoding.
const (
	encodingPlain, encodingSplit, encodingRLE   = 0, 9, 3
	encodingDictionary, encodingPlainDictionary = 8, 2
	encodingDelta, encodingDeltaLength          = 5, 6
	encodingDeltaBytes                          = 7
)

// Codecs.
const codecNone, codecSnappy, codecGzip, codecZstd = 0, 1, 2, 6

const (
	// headSize is the number of bytes first read for the head of a page, and maxHead the
	// largest number: a head may have statistics with texts.
	headSize, maxHead = 1 << 9, 1 << 20
	// A page may claim an uncompressed size of freePage bytes, or of pageRatio times its size
	// in the file if that is more.
	freePage, pageRatio = 1 << 26, 1 << 8
	// A page of numbers takes at most valueRoom bytes per value, with levels and the headers
	// of differences, plus pageRoom bytes.
	valueRoom, pageRoom = 16, 1 << 13
	// maxDecimal bounds the bytes of a decimal number.
	maxDecimal = 64
	// maxDelta bounds the number of values of a page in an encoding of differences, because
	// the page's size does not bound it.
	maxDelta = 1 << 24
)

// A pageHead is the header of a page.
type pageHead struct {
	size                     int // of the header
	kind, values, encoding   int
	uncompressed, compressed int
	crc                      value
	// Sizes of the levels, which version 2 does not compress, and whether the rest is
	// compressed.
	repBytes, defBytes int
	isCompressed       bool
}

// readHead reads the head of the page at the front of b.
func readHead(b []byte) (p pageHead, err error) {
	defer kind.Catch(&err)
	v, size := parse(b)
	is := v.get(1, -1)
	more := v.field(5 + is)
	p = pageHead{kind: is, uncompressed: v.get(2, 0), compressed: v.get(3, 0), crc: v.field(4), values: more.get(1, 0),
		encoding: more.get(2, 0), isCompressed: true}
	if is == pageDataV2 {
		p.encoding, p.defBytes, p.repBytes, p.isCompressed = more.get(4, 0), more.get(5, 0), more.get(6, 0), more.get(7, 1) != 0
	}
	most := min(p.compressed, p.uncompressed)
	must(min(most, p.values, p.repBytes, p.defBytes) >= 0 && p.defBytes <= most && p.repBytes <= most-p.defBytes,
		"page: got inconsistent sizes")
	p.size = size
	return p, nil
}

// An unpacker is a reader that can be reset: making one takes as long as reading many
// pages.
type unpacker interface {
	io.Reader
	Reset(r io.Reader) error
}

// unpackers are the unused ones, by codec.
var unpackers = map[int]*sync.Pool{
	codecGzip: {New: func() any { return new(gzip.Reader) }},
	codecZstd: {New: func() any {
		// Without concurrency it decompresses only what is read.
		z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(freePage), zstd.WithDecoderLowmem(true))
		return z // no error: the options go together
	}},
}

// decompress decompresses a page, whose content must have the given size. The content may
// use the memory of out, which grows as bytes come.
func decompress(codec int, b []byte, size int, out []byte) []byte {
	must(size <= max(freePage, pageRatio*len(b)) && (codec != codecNone || size == len(b)),
		"page of %d bytes: got an uncompressed size of %d", len(b), size)
	var err error
	switch codec {
	case codecNone:
		out = b
	case codecSnappy:
		n, fault := snappy.DecodedLen(b)
		must(fault == nil && n == size, "page: got an invalid snappy stream")
		out, err = snappy.Decode(out, b)
	case codecGzip, codecZstd:
		z := unpackers[codec].Get().(unpacker)
		defer unpackers[codec].Put(z)
		if err = z.Reset(bytes.NewReader(b)); err == nil {
			to := bytes.NewBuffer(slices.Grow(out[:0], min(size, 4*len(b))+bytes.MinRead))
			_, err = to.ReadFrom(io.LimitReader(z, int64(size)+1))
			out = to.Bytes()
		}
	default:
		name := cmp.Or(map[int]string{3: "LZO", 4: "Brotli", 5: "LZ4", 7: "LZ4"}[codec], "an unknown codec")
		supported(false, "compression: got %s, want snappy, gzip or zstd", name)
	}
	must(err == nil && len(out) == size, "page: got an invalid compressed stream")
	return out
}

// A content is what a page holds: little-endian numbers of the column's size, or texts.
type content struct {
	numbers []byte
	texts   []string
}

// decode reads count values that are stored without a dictionary.
func (c *Column) decode(encoding int, b []byte, count int) (out content) {
	var texts []string
	var numbers []byte
	isText, isFixed := c.physical == typeBytes, c.physical == typeFixed
	switch {
	case isText && encoding == encodingPlain:
		texts = sizedTexts(b, count)
	case isText && encoding == encodingDeltaLength:
		texts = deltaLengths(b, count)
	case (isText || isFixed) && encoding == encodingDeltaBytes:
		texts = deltaTexts(b, count)
		c.must(!isFixed || !slices.ContainsFunc(texts, func(s string) bool { return len(s) != c.stored }),
			"got values of other than %d bytes", c.stored)
	case encoding == encodingDelta && (c.physical == typeInt32 || c.physical == typeInt64):
		values, _ := deltas(b, count)
		for i, v := range values {
			numbers = binary.LittleEndian.AppendUint64(numbers, uint64(v))[:(i+1)*c.stored]
		}
	case c.stored > 0 && (encoding == encodingPlain || encoding == encodingSplit):
		c.must(count <= len(b)/c.stored, "page has fewer values than announced")
		if numbers = b[:count*c.stored]; encoding == encodingSplit {
			numbers = make([]byte, count*c.stored)
			for k := range c.stored {
				for i, v := range b[k*count : (k+1)*count] {
					numbers[i*c.stored+k] = v
				}
			}
		}
	default:
		supported(false, "column %.60q: got encoding %d, want plain or dictionary encoding", c.Name, encoding)
	}
	for i := 0; c.Byte && i < len(numbers); i += 4 {
		c.must(binary.LittleEndian.Uint32(numbers[i:]) <= 255, "got numbers above 255 in a column of bytes")
	}
	if c.number == nil && (isText || c.format == nil && texts == nil) { // as it is stored
		return content{numbers, texts}
	}
	for _, s := range texts {
		c.must(!isText || len(s) <= maxDecimal, "got a decimal number of many bytes")
		c.convert(&out, []byte(s))
	}
	for ; len(numbers) > 0; numbers = numbers[c.stored:] {
		c.convert(&out, numbers[:c.stored])
	}
	return out
}

// convert adds a stored value to a content, as a text or a number.
func (c *Column) convert(to *content, raw []byte) {
	switch {
	case c.Kind == Text:
		to.texts = append(to.texts, c.format(raw))
	case c.number == nil:
		to.numbers = append(to.numbers, raw...)
	default:
		to.numbers = binary.LittleEndian.AppendUint64(to.numbers, math.Float64bits(c.number(raw)))
	}
}

// sizedTexts decodes count texts of PLAIN.
func sizedTexts(b []byte, count int) (texts []string) {
	all, d := string(b), decoder{b, fewTexts} // all is shared by the texts
	for len(texts) < count {
		size := len(d.sized())
		end := len(all) - len(d.b)
		texts = append(texts, all[end-size:end])
	}
	return texts
}

const fewTexts = "page of texts: got fewer values than announced"

// deltaLengths decodes count texts of DELTA_LENGTH_BYTE_ARRAY.
func deltaLengths(b []byte, count int) (texts []string) {
	sizes, rest := deltas(b, count)
	all := string(rest) // shared by the texts
	for _, n := range sizes {
		must(n >= 0 && n <= int64(len(all)), fewTexts)
		texts, all = append(texts, all[:n]), all[n:]
	}
	return texts
}

// deltaTexts decodes count texts of DELTA_BYTE_ARRAY: each begins with some bytes of the
// one before.
func deltaTexts(b []byte, count int) []string {
	shared, rest := deltas(b, count)
	texts := deltaLengths(rest, count)
	most := max(freePage, pageRatio*len(b))
	last, size := "", 0
	for i, n := range shared {
		must(n >= 0 && n <= int64(len(last)), "page of texts: got one that shares more bytes than there are in the one before")
		size += int(n) + len(texts[i])
		must(size <= most, "page of texts: got more bytes than it can hold")
		last = last[:n] + texts[i]
		texts[i] = last
	}
	return texts
}

// deltas decodes count whole numbers from their differences (DELTA_BINARY_PACKED), and
// returns what follows them.
func deltas(b []byte, count int) (values []int64, rest []byte) {
	d := decoder{b, "page of differences: got inconsistent sizes"}
	block, parts, total, number := d.uvarint(), d.uvarint(), d.uvarint(), d.integer()
	d.must(count <= maxDelta && total == uint64(count) && parts > 0 && parts <= 1<<10 && block <= 1<<20 && block > 0 && block%(32*parts) == 0)
	each := int(block / parts)
	if count > 0 {
		values = append(values, number)
	}
	for len(values) < count {
		least, widths := d.integer(), d.take(parts)
		for k := 0; k < len(widths) && len(values) < count; k++ {
			w := int(widths[k])
			d.must(w <= 64)
			packed := d.take(uint64(each / 8 * w))
			for i := range min(each, count-len(values)) {
				number += least + int64(bitsAt(packed, i*w, w))
				values = append(values, number)
			}
		}
	}
	return values, d.b
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

// A hybrid decodes small numbers in runs that are run-length encoded or bit-packed.
// Numbers of no bits are 0.
type hybrid struct {
	b     []byte
	width int // bits of a number
	run   int // numbers left of the current run
	// value is the number of a run of equal numbers. If the run is packed, its rest begins
	// at bit of b.
	value  uint32
	packed bool
	bit    int
}

// begin reads the header of the next run and reports whether there is one.
func (h *hybrid) begin() bool {
	if h.packed {
		h.b = h.b[min(len(h.b), (h.bit+7)/8):]
	}
	head, n := binary.Uvarint(h.b)
	size, length := (h.width+7)/8, head>>1
	h.packed, h.bit = head&1 == 1, 0
	if n <= 0 || length == 0 || length > 1<<31 || !h.packed && len(h.b) < n+size {
		return false
	}
	if h.run, h.b = int(length), h.b[n:]; h.packed {
		// The last group may be truncated after the numbers that are needed.
		h.run *= 8
	} else {
		h.value, h.b = uint32(bitsAt(h.b, 0, 8*size)), h.b[size:]
	}
	return true
}

// next fills dst, or returns false if there are fewer numbers.
func (h *hybrid) next(dst []uint32) bool {
	if h.width == 0 {
		clear(dst)
		return true
	}
	for len(dst) > 0 {
		if h.run == 0 && !h.begin() {
			return false
		}
		n := min(h.run, len(dst))
		if !h.packed {
			selection.Fill(dst[:n], h.value)
		} else if !h.unpack(dst[:n]) {
			return false
		}
		h.run -= n
		dst = dst[n:]
	}
	return true
}

func (h *hybrid) unpack(dst []uint32) bool {
	if h.bit+len(dst)*h.width > 8*len(h.b) {
		return false
	}
	b, bit, mask := h.b, h.bit, uint64(1)<<h.width-1
	for i := range dst {
		if at := bit >> 3; at+8 <= len(b) {
			dst[i] = uint32(binary.LittleEndian.Uint64(b[at:]) >> (bit & 7) & mask)
		} else {
			dst[i] = uint32(bitsAt(b, bit, h.width))
		}
		bit += h.width
	}
	h.bit = bit
	return true
}

// all reports whether the next n numbers are v, in runs of equal numbers.
func (h hybrid) all(n int, v uint32) bool {
	for ; n > 0 && h.width > 0; n -= h.run {
		if !h.begin() || h.packed || h.value != v {
			return false
		}
	}
	return true
}
