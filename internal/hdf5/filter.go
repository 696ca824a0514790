package hdf5

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// A filter is a step of compression.
type filter struct {
	id     int
	client []uint32
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

func (f filter) String() string {
	if name := foreign[f.id]; name != "" {
		return name
	}
	return fmt.Sprintf("the filter %d", f.id)
}

// filters reads the filters of a dataset.
func (c *cursor) filters() (all []filter) {
	version, n := c.version(1, 2), c.int(1)
	if version < 2 {
		c.skip(6)
	}
	for range n {
		f := filter{id: c.int(2)}
		name := 0
		if version < 2 || f.id >= 256 {
			name = c.int(2)
		}
		c.skip(2)
		values := c.int(2)
		if version < 2 {
			name = (name + 7) &^ 7
		}
		c.skip(name)
		for range values {
			f.client = append(f.client, uint32(c.uint(4)))
		}
		if version < 2 && values%2 != 0 {
			c.skip(4)
		}
		all = append(all, f)
	}
	return all
}

// buffers are the memory of the steps of decoding a chunk.
type buffers struct {
	pair [2][]byte // used in turn
	next int
	z    io.ReadCloser
	in   bytes.Reader
}

var pool = sync.Pool{New: func() any { return new(buffers) }}

// take returns n bytes that the last call has not returned.
func (b *buffers) take(n int) []byte {
	b.next = 1 - b.next
	if cap(b.pair[b.next]) < n {
		b.pair[b.next] = make([]byte, n)
	}
	return b.pair[b.next][:n]
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
	dst := b.take(d.chunkBytes + 8)
	n := 0
	for err == nil && n < len(dst) {
		var got int
		got, err = b.z.Read(dst[n:])
		n += got
	}
	must(err == io.EOF, "%s: the compressed values of a chunk are damaged", d.path)
	return dst[:n]
}

// unshuffle puts the bytes of values back together: the first bytes of all came first.
func unshuffle(d *Dataset, f filter, src []byte, b *buffers) []byte {
	size := d.Type.Size
	if len(f.client) > 0 {
		size = int(f.client[0])
	}
	if size < 2 || len(src) < size {
		return src
	}
	n := len(src) / size
	dst := b.take(len(src))
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
	c, dst := &cursor{what: d.path, b: src}, b.take(d.chunkBytes + 8)[:0]
	for c.at < len(src) {
		control := c.int(1)
		n := control>>5 + 2
		switch n {
		case 2:
			n = control + 1
		case 9:
			n += c.int(1)
		}
		c.must(n <= cap(dst)-len(dst), "a chunk is too long")
		if control < 32 {
			dst = append(dst, c.bytes(n)...)
			continue
		}
		from := len(dst) - (control&31<<8 | c.int(1)) - 1
		c.must(from >= 0, "the compressed values of a chunk are damaged")
		for k := range n {
			dst = append(dst, dst[from+k])
		}
	}
	return dst
}

// fletcher32 verifies and removes the checksum at the end of a chunk.
func fletcher32(d *Dataset, _ filter, src []byte, _ *buffers) []byte {
	n := len(src) - 4
	must(n >= 0, "%s: a chunk has no checksum", d.path)
	a, b := uint64(0), uint64(0)
	for i, v := range src[:n] {
		if i%2 == 0 {
			a += uint64(v) << 8
		} else {
			a += uint64(v)
		}
		if i%2 == 1 || i == n-1 {
			a %= 0xffff
			b = (b + a) % 0xffff
		}
	}
	// The library has 65535 instead of 0.
	want := binary.LittleEndian.Uint32(src[n:])
	must(uint64(want&0xffff)%0xffff == a && uint64(want>>16)%0xffff == b, "%s: the checksum of a chunk is wrong", d.path)
	return src[:n]
}
