package hdf5

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// A filter is a step of compression.
type filter struct {
	id, size int // size is of values, for shuffle
}

// readable are the filters that are read.
var readable = map[int]func(d *Dataset, f filter, src []byte, b *buffers) []byte{
	1: inflate, 2: unshuffle, 3: fletcher32, 32000: lzf,
}

// foreign are the names of other filters.
var foreign = map[int]string{
	4: "szip", 5: "nbit", 6: "scaleoffset", 307: "bzip2", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle",
	32013: "zfp", 32015: "zstd", 32026: "blosc2",
}

// filters reads the filters of a dataset.
func (c *cursor) filters() (all []filter) {
	version, n := c.version(1, 2), c.int(1)
	if version < 2 {
		c.skip(6)
	}
	for range n {
		f, name := filter{id: c.int(2)}, 0
		if version < 2 || f.id >= 256 {
			name = c.int(2)
		}
		c.skip(2)
		values, odd := c.int(2), 0
		if version < 2 {
			name, odd = (name+7)&^7, values%2
		}
		c.skip(name)
		if values > 0 {
			f.size = c.int(4)
			c.skip(4 * (values - 1 + odd))
		}
		all = append(all, f)
	}
	return all
}

// buffers are the memory of the steps of decoding a chunk.
type buffers struct {
	pair [2][]byte // used in turn
	z    io.ReadCloser
	in   bytes.Reader
}

var pool = sync.Pool{New: func() any { return new(buffers) }}

// take returns n bytes that the last call has not returned.
func (b *buffers) take(n int) []byte {
	b.pair[0], b.pair[1] = b.pair[1], slices.Grow(b.pair[0][:0], n)[:n]
	return b.pair[1]
}

// inflate decompresses gzip.
func inflate(d *Dataset, _ filter, src []byte, b *buffers) []byte {
	b.in.Reset(src)
	var err error
	if b.z == nil {
		b.z, err = zlib.NewReader(&b.in)
	} else {
		err = b.z.(zlib.Resetter).Reset(&b.in, nil)
	}
	// Filters before gzip add at most a checksum to a chunk.
	dst := bytes.NewBuffer(b.take(d.chunkBytes + 8 + bytes.MinRead)[:0])
	if err == nil {
		_, err = dst.ReadFrom(io.LimitReader(b.z, int64(d.chunkBytes)+8))
	}
	must(err == nil && dst.Len() < d.chunkBytes+8, "%s: the compressed values of a chunk are damaged", d.Path)
	return dst.Bytes()
}

// unshuffle puts the bytes of values back together: the first bytes of all came first.
func unshuffle(d *Dataset, f filter, src []byte, b *buffers) []byte {
	size := f.size
	if size < 2 || len(src) < size {
		return src
	}
	n, dst := len(src)/size, b.take(len(src))
	copy(dst[n*size:], src[n*size:])
	for k := range size {
		to := dst[k:]
		for i, v := range src[k*n : (k+1)*n] {
			to[i*size] = v
		}
	}
	return dst
}

// lzf decompresses LZF: literals, and copies of up to 264 bytes from up to 8192 bytes
// before.
func lzf(d *Dataset, _ filter, src []byte, b *buffers) []byte {
	dst, end, k, ok := b.take(d.chunkBytes+8), len(src), 0, true
	src = append(src, 0, 0) // an item that ends early is read beyond the end
	for i := 0; i < end && ok; {
		n, more := int(src[i]), int(src[i+1])
		if n < 32 {
			if ok = i+n+2 <= end && n < len(dst)-k; ok {
				k += copy(dst[k:], src[i+1:i+n+2])
			}
			i += n + 2
			continue
		}
		from, n := k-n&31<<8-1, n>>5+2
		if i += 2; n == 9 {
			n += more
			more = int(src[i])
			i++
		}
		from -= more
		if ok = from >= 0 && n <= len(dst)-k && i <= end; ok {
			to, again := dst[k:k+n], dst[from:]
			for j := range to { // it may begin with the end of what it copies
				to[j] = again[j]
			}
			k += n
		}
	}
	must(ok, "%s: the compressed values of a chunk are damaged", d.Path)
	return dst[:k]
}

// fletcher32 verifies and removes the checksum at the end of a chunk.
func fletcher32(d *Dataset, _ filter, src []byte, _ *buffers) []byte {
	n := len(src) - 4
	must(n >= 0, "%s: a chunk has no checksum", d.Path)
	want := binary.LittleEndian.Uint32(src[n:])
	src[n] = 0 // the other byte of a word
	a, b := uint32(0), uint32(0)
	for i := 0; i < n; i += 2 {
		a = (a + uint32(binary.BigEndian.Uint16(src[i:]))) % 0xffff
		b = (b + a) % 0xffff
	}
	// The library has 65535 instead of 0.
	must(want&0xffff%0xffff == a && want>>16%0xffff == b, "%s: the checksum of a chunk is wrong", d.Path)
	return src[:n]
}
