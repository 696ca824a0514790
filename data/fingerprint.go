package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"cne/internal/parallel"
)

// fingerprintGrain is the number of bytes that are hashed in one piece. Fingerprints
// depend on it.
const fingerprintGrain = 1 << 20

// Fingerprint returns a hash of what decides about every value of points that are kept as
// bytes (see Options.BlocksAbove): the bytes, and how they become numbers. It takes a
// fraction of the time that going through the values does, which have four bytes each and
// are made anew each time. Points with one fingerprint are equal; equal points may have
// several, according to the files they come from. Points that are kept in another way, were
// split, or are scaled otherwise than by ScaleUnit have none, and ok is false.
func Fingerprint(points Source) (fingerprint string, ok bool) {
	s, ok := points.(*stored)
	if !ok {
		return "", false
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "bytes: %d %d, offset %t, table %t, parts %d;", s.n, s.d, s.offset != nil, s.table != nil, len(s.parts))
	_ = binary.Write(hash, binary.LittleEndian, s.offset) // a hash never fails
	if s.table != nil {
		_ = binary.Write(hash, binary.LittleEndian, s.table)
	}
	for _, p := range s.parts {
		if p.bytes == nil {
			return "", false
		}
		sums := make([][sha256.Size]byte, parallel.Pieces(len(p.bytes), fingerprintGrain))
		parallel.For(len(p.bytes), fingerprintGrain, func(piece, lo, hi int) { sums[piece] = sha256.Sum256(p.bytes[lo:hi]) })
		fmt.Fprintf(hash, "%d;", len(p.bytes)) // and so many sums
		for i := range sums {
			hash.Write(sums[i][:])
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), true
}
