package parquet

import (
	"encoding/binary"
	"math/bits"
)

// A hybrid decodes small numbers that are run-length encoded and bit-packed by turns.
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

func newHybrid(b []byte, width int) hybrid { return hybrid{b: b, width: width} }

// begin reads the head of the next run; false if there is none.
func (h *hybrid) begin() bool {
	if h.packed {
		h.b = h.b[min(len(h.b), (h.bit+7)/8):]
	}
	head, n := binary.Uvarint(h.b)
	if n <= 0 || head>>1 == 0 || head>>1 > 1<<31 {
		return false
	}
	h.b = h.b[n:]
	h.packed, h.bit = head&1 == 1, 0
	if h.packed {
		// The last group may be cut, but every number that is asked for has its bits.
		h.run = 8 * int(head>>1)
		return true
	}
	h.run = int(head >> 1)
	size := (h.width + 7) / 8
	if len(h.b) < size {
		return false
	}
	h.value = 0
	for k, c := range h.b[:size] {
		h.value |= uint32(c) << (8 * k)
	}
	h.b = h.b[size:]
	return true
}

// next fills dst, or returns false if there is less.
func (h *hybrid) next(dst []uint32) bool {
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
	mask := uint64(1)<<h.width - 1
	bit, i := h.bit, 0
	// Eight small numbers begin and end with a byte.
	for ; h.width <= 8 && bit&7 == 0 && i+8 <= len(dst) && bit>>3+8 <= len(h.b); i += 8 {
		v := binary.LittleEndian.Uint64(h.b[bit>>3:])
		for k := range dst[i : i+8] {
			dst[i+k] = uint32(v & mask)
			v >>= h.width
		}
		bit += 8 * h.width
	}
	for ; i < len(dst) && bit>>3+8 <= len(h.b); i++ {
		dst[i] = uint32(binary.LittleEndian.Uint64(h.b[bit>>3:]) >> (bit & 7) & mask)
		bit += h.width
	}
	for ; i < len(dst); i++ {
		var last [8]byte
		copy(last[:], h.b[bit>>3:])
		dst[i] = uint32(binary.LittleEndian.Uint64(last[:]) >> (bit & 7) & mask)
		bit += h.width
	}
	h.bit = bit
	return true
}

// equal passes over n numbers as long as they are the wanted one, and returns how many
// these are; false if there are fewer numbers.
func (h *hybrid) equal(n int, want uint32, scratch []uint32) (same int, ok bool) {
	for same < n {
		if h.run == 0 && !h.begin() {
			return same, false
		}
		k := min(h.run, n-same)
		if !h.packed {
			if h.value != want {
				return same, true
			}
		} else {
			k = min(k, len(scratch))
			if !h.unpack(scratch[:k]) {
				return same, false
			}
			for i, v := range scratch[:k] {
				if v != want { // it is still to come
					h.bit -= (k - i) * h.width
					h.run -= i
					return same + i, true
				}
			}
		}
		h.run -= k
		same += k
	}
	return same, true
}

// width returns the bits that levels up to most take.
func width(most int) int { return bits.Len(uint(most)) }
