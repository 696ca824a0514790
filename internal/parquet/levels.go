package parquet

import "encoding/binary"

// A hybrid decodes small numbers that are run-length encoded and bit-packed by turns. Those
// of no bits are 0.
type hybrid struct {
	b     []byte
	width int // bits of a number
	run   int // numbers left of the current run
	// The number of a run of equal ones, or, where packed, the bits not yet taken begin at
	// bit of b.
	value  uint32
	packed bool
	bit    int
}

// begin reads the head of the next run; false if there is none.
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
		// The last group may be cut, but every number that is asked for has its bits.
		h.run *= 8
	} else {
		h.value, h.b = uint32(bitsAt(h.b, 0, 8*size)), h.b[size:]
	}
	return true
}

// next fills dst, or returns false if there is less.
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
			for i := range dst[:n] {
				dst[i] = h.value
			}
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

// all reports whether the n numbers that come next are v, told by runs of equal ones.
func (h hybrid) all(n int, v uint32) bool {
	for ; n > 0 && h.width > 0; n -= h.run {
		if !h.begin() || h.packed || h.value != v {
			return false
		}
	}
	return true
}
