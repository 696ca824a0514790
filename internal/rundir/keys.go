package rundir

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"unsafe"

	"cne/data"
	"cne/data/neighbors"
)

// PointsKey identifies points.
func PointsKey(m *data.Matrix) string {
	hash := sha256.New()
	for _, v := range []int{m.N, m.D} {
		_ = binary.Write(hash, binary.LittleEndian, int64(v)) // a hash never fails
	}
	if len(m.X) > 0 {
		hash.Write(unsafe.Slice((*byte)(unsafe.Pointer(&m.X[0])), 4*len(m.X)))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// GraphKey identifies a graph.
func GraphKey(g *neighbors.Graph) string {
	hash := sha256.New()
	_ = binary.Write(hash, binary.LittleEndian, int64(g.N)) // a hash never fails
	for i := range g.N {
		tails := g.Tails(i)
		_ = binary.Write(hash, binary.LittleEndian, int64(len(tails)))
		if len(tails) > 0 {
			hash.Write(unsafe.Slice((*byte)(unsafe.Pointer(&tails[0])), 4*len(tails)))
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// ImagesKey identifies images and those of them that are trained on. Labels do
// not count.
func ImagesKey(images *data.Images, rows []int32) string {
	hash := sha256.New()
	for _, v := range []int{images.N, images.H, images.W, images.C} {
		_ = binary.Write(hash, binary.LittleEndian, int64(v)) // a hash never fails
	}
	hash.Write(images.Pixels)
	_ = binary.Write(hash, binary.LittleEndian, rows)
	return hex.EncodeToString(hash.Sum(nil))
}
