// Package hdf5 reads the part of the HDF5 format that files of single cells use. It never
// writes.
//
// It reads superblocks 0 to 3, also after a user block; groups and attributes in all their
// forms; soft and hard links; and datasets that are compact, contiguous or in chunks, with
// every index of chunks up to HDF5 1.14, fill values, and the filters gzip, shuffle,
// fletcher32 and LZF. Values are integers, IEEE 754 numbers of 2, 4 and 8 bytes,
// enumerations, strings of fixed and variable length, and members of compounds. For
// everything else the error wraps ErrUnsupported, and names the object and the feature.
//
// Every size in a file is checked against the size of the file before memory is allocated.
// Checksums are verified where the format has them.
package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"cne/internal/kind"
)

// Kinds of errors, for errors.Is.
var (
	// ErrDamaged is wrapped by errors about files that are not HDF5, damaged or truncated.
	ErrDamaged = errors.New("hdf5: damaged file")
	// ErrUnsupported is wrapped by errors about features that are not read here.
	ErrUnsupported = errors.New("hdf5: unsupported feature")
	// ErrNotFound is wrapped by errors about objects and attributes that do not exist.
	ErrNotFound = errors.New("hdf5: not found")
)

// Magic is the signature of the format. It is at the beginning of a file, or at byte 512,
// 1024, 2048 and so on after a user block.
const Magic = "\x89HDF\r\n\x1a\n"

// undefined is the address of what does not exist.
const undefined = ^uint64(0)

// A File is an open HDF5 file. It is not safe for concurrent use.
type File struct {
	r      io.ReaderAt
	base   uint64 // where addresses count from
	end    uint64 // of the file, as an address
	offset int    // bytes of an address
	length int    // bytes of a length
	root   uint64

	// texts are the objects of the last part of the global heap, by index, and textsAt its
	// address.
	texts   map[int][]byte
	textsAt uint64
}

// must fails with ErrDamaged unless ok.
func must(ok bool, format string, args ...any) { kind.Need(ok, ErrDamaged, format, args...) }

// supported fails with ErrUnsupported unless ok.
func supported(ok bool, format string, args ...any) { kind.Need(ok, ErrUnsupported, format, args...) }

// Open reads the superblock of a file of the given size in bytes.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	defer kind.Catch(&err)
	f = &File{r: r, end: uint64(max(0, size))}
	for begin := uint64(0); ; begin = max(512, 2*begin) {
		must(f.end >= begin+9, "the file is not HDF5, or is truncated")
		if string(f.read("signature", begin, 8).b) == Magic {
			f.superblock(begin)
			return f, nil
		}
	}
}

// superblock reads the superblock that begins at a byte of the file.
func (f *File) superblock(begin uint64) {
	c := f.read("superblock", begin+8, 8)
	version, n := c.uint(1), uint64(12)
	supported(version <= 3, "superblock: got version %d, want at most 3", version)
	old := version < 2
	if old {
		c.skip(4)
		n = 24 + 4*version
	}
	for _, n := range []*int{&f.offset, &f.length} {
		*n = c.int(1)
		c.must(*n == 2 || *n == 4 || *n == 8, "got addresses or lengths of %d bytes, want 2, 4 or 8", *n)
	}
	// Bit 0 of the flags: open for writing. The library refuses such files, too.
	supported(version != 3 || c.uint(1)&1 == 0, "the program that wrote the file has not closed it; close it, or clear the mark with h5clear -s")
	c = f.read(c.what, begin, n+uint64(6*f.offset)) // of version 2 and 3: 4 addresses and a checksum
	c.next = int(n)
	base, _, eof, last := c.addr(), c.addr(), c.addr(), c.addr()
	if f.root = last; old {
		c.addr() // the name of the root group
		f.root = c.addr()
	} else {
		c.b = c.b[:c.next+4]
		c.checksum()
	}
	eof += begin - base // a user block may have been put in front of the file
	must(eof <= f.end, "bytes: got %d, want %d; the file is truncated", f.end, eof)
	f.base, f.end = begin, max(eof, begin)-begin
}

// A cursor reads the fields of a structure.
type cursor struct {
	f    *File
	what string // for messages
	b    []byte
	next int // index of the next byte
}

// read reads n bytes at an address.
func (f *File) read(what string, addr, n uint64) *cursor {
	must(addr <= f.end && n <= f.end-addr, "%s: got %d bytes at %d, want them before the end of the file", what, n, addr)
	c := &cursor{f: f, what: what, b: make([]byte, n)}
	f.readAt(c.b, addr)
	return c
}

// readAt fills p from an address.
func (f *File) readAt(p []byte, addr uint64) {
	if n, err := f.r.ReadAt(p, int64(f.base+addr)); n < len(p) {
		must(err != io.EOF, "the file is truncated")
		kind.Check(err)
	}
}

// readBlock reads n bytes that begin with a signature and end with a checksum, and skips
// the signature.
func (f *File) readBlock(what, magic string, addr, n uint64) *cursor {
	c := f.read(what, addr, n)
	c.checksum()
	c.magic(magic)
	return c
}

// sum returns the sum of products of pairs of numbers, where any overflow is too large for
// every file.
func sum(pairs ...uint64) uint64 {
	total := 0.0 // exact up to 2⁵³, which is larger than any file
	for i := 0; i < len(pairs); i += 2 {
		total += float64(float64(pairs[i]) * float64(pairs[i+1]))
	}
	return uint64(min(total, 1<<62))
}

// must fails with ErrDamaged unless ok.
func (c *cursor) must(ok bool, format string, args ...any) {
	if !ok {
		must(false, "%s: %s", c.what, fmt.Sprintf(format, args...))
	}
}

// bytes returns the next n bytes.
func (c *cursor) bytes(n int) []byte {
	c.must(n >= 0 && n <= len(c.b)-c.next, "it ends early")
	c.next += n
	return c.b[c.next-n : c.next : c.next]
}

func (c *cursor) skip(n int) { c.bytes(n) }

// uint reads an unsigned number of n bytes.
func (c *cursor) uint(n int) (v uint64) {
	for i, b := range c.bytes(n) {
		c.must(i < 8 || b == 0, "got a number of more than 8 bytes")
		v |= uint64(b) << (8 * i)
	}
	return v
}

func (c *cursor) int(n int) int { return int(c.uint(n)) }

// limit reads a number of n bytes, which is undefined if all its bits are set.
func (c *cursor) limit(n int) uint64 {
	v := c.uint(n)
	if v == undefined>>(64-8*n) {
		return undefined
	}
	return v
}

// addr reads an address.
func (c *cursor) addr() uint64 { return c.limit(c.f.offset) }

// len reads a length.
func (c *cursor) len() uint64 { return c.uint(c.f.length) }

// magic reads a signature.
func (c *cursor) magic(want string) {
	got := c.bytes(len(want))
	c.must(string(got) == want, "got the signature %q, want %q", got, want)
}

// version reads a version from least to most.
func (c *cursor) version(least, most int) int {
	v := c.int(1)
	supported(v >= least && v <= most, "%s: got version %d, want %d to %d", c.what, v, least, most)
	return v
}

// name reads a text up to a zero, which is padded to a multiple of pad bytes.
func (c *cursor) name(pad int) string {
	n := bytes.IndexByte(c.b[c.next:], 0)
	c.must(n >= 0, "a name has no end")
	return string(c.bytes((n + pad) / pad * pad)[:n])
}

// checksum verifies and removes the checksum at the end.
func (c *cursor) checksum() {
	n := len(c.b) - 4
	c.must(n >= 0 && lookup3(c.b[:n]) == binary.LittleEndian.Uint32(c.b[n:]), "the checksum is wrong")
	c.b = c.b[:n]
}

// lookup3 is Jenkins' hash function hashlittle, the format's checksum of metadata, of at
// least one byte.
func lookup3(b []byte) uint32 {
	x := 0xdeadbeef + uint32(len(b))
	y, z := x, x
	add := func(b []byte) {
		x += binary.LittleEndian.Uint32(b)
		y += binary.LittleEndian.Uint32(b[4:])
		z += binary.LittleEndian.Uint32(b[8:])
	}
	for ; len(b) > 12; b = b[12:] {
		add(b)
		for _, r := range [...]int{4, 6, 8, 16, 19, 4} {
			x -= z
			x ^= bits.RotateLeft32(z, r)
			z += y
			x, y, z = y, z, x
		}
	}
	var last [12]byte
	copy(last[:], b)
	add(last[:])
	for _, r := range [...]int{14, 11, 25, 16, 4, 14, 24} {
		z ^= y
		z -= bits.RotateLeft32(y, r)
		x, y, z = y, z, x
	}
	return y
}
