package rundir

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"unsafe"

	"cne"
	"cne/data"
	"cne/data/neighbors"
	"cne/internal/safetensors"
	"cne/internal/version"
)

// What marks a file as a cache, and its form.
const (
	cacheKind   = "cache"
	cacheFormat = 2
)

// CacheKey identifies the principal components and the k nearest neighbours of points,
// whose own key is given.
func CacheKey(pointsKey string, points *data.Matrix, o *cne.Options, components, k int) string {
	key := fmt.Sprintf("%s, %d components, %d neighbours", pointsKey, components, k)
	if o.Graph == nil && o.Search.Approximates(points.N, cmp.Or(components, points.D), k) {
		key += fmt.Sprintf(", approximate, seed %d", o.Seed)
	}
	if points.CSR != nil {
		key += fmt.Sprintf(", of sparse points, seed %d", o.Seed)
	}
	return key
}

// LoadCache fills h, of which the input is known, from the cache if that has the key;
// reduced says that the points are principal components, and k how many neighbours are
// wanted. A cache that cannot be read is as good as none: it is written anew.
func (d *Dir) LoadCache(key string, h *cne.Neighborhood, reduced bool, k int) bool {
	f, err := safetensors.ReadFile(d.Path(CacheFile))
	if err != nil || f.Unseal(cacheKind, cacheFormat) != nil || f.Metadata["key"] != key {
		return false
	}
	n := h.Input.N
	found := cne.Neighborhood{Input: h.Input, Before: h.Before, Points: h.Input}
	if reduced {
		points := f.Tensors["points"]
		x, err := points.Float32s()
		if err != nil || len(points.Shape) != 2 || points.Shape[0] != n {
			return false
		}
		found.Points = &data.Matrix{N: n, D: points.Shape[1], X: x}
		found.PCA = new(data.PCA)
		if json.Unmarshal([]byte(f.Metadata["pca"]), found.PCA) != nil || found.PCA.K != found.Points.D {
			return false
		}
	}
	if k > 0 {
		index, err := f.Tensors["neighbors"].Int32s()
		if err != nil || len(index) != n*k {
			return false
		}
		dist2, err := f.Tensors["squared_distances"].Float64s()
		if err != nil || len(dist2) != n*k {
			return false
		}
		if slices.ContainsFunc(index, func(j int32) bool { return j < 0 || int(j) >= n }) {
			return false
		}
		found.Nearest = &neighbors.Neighbors{N: n, K: k, Index: index, Dist2: dist2}
	}
	if text, ok := f.Metadata["recall"]; ok {
		found.Recall = new(neighbors.Recall)
		if json.Unmarshal([]byte(text), found.Recall) != nil {
			return false
		}
	}
	*h = found
	return true
}

// SaveCache writes what LoadCache reads.
func (d *Dir) SaveCache(key string, h *cne.Neighborhood) error {
	f := &safetensors.File{
		Metadata: map[string]string{"key": key, "version": version.String()},
		Tensors:  map[string]safetensors.Tensor{},
	}
	if h.PCA != nil {
		text, err := json.Marshal(h.PCA)
		if err != nil {
			return fmt.Errorf("the principal components cannot be kept: %w", err)
		}
		f.Metadata["pca"] = string(text)
		f.Tensors["points"] = safetensors.New(h.Points.X, h.Points.N, h.Points.D)
	}
	if nb := h.Nearest; nb != nil {
		f.Tensors["neighbors"] = safetensors.New(nb.Index, nb.N, nb.K)
		f.Tensors["squared_distances"] = safetensors.New(nb.Dist2, nb.N, nb.K)
	}
	if h.Recall != nil {
		text, err := json.Marshal(h.Recall)
		if err != nil {
			return fmt.Errorf("the recall of the neighbours cannot be kept: %w", err)
		}
		f.Metadata["recall"] = string(text)
	}
	f.Seal(cacheKind, cacheFormat)
	return f.WriteFile(d.Path(CacheFile))
}

// PointsKey identifies points. Sparse ones are other points than the same as dense ones.
func PointsKey(m *data.Matrix) string {
	hash := sha256.New()
	for _, v := range []int{m.N, m.D} {
		_ = binary.Write(hash, binary.LittleEndian, int64(v)) // a hash never fails
	}
	hash.Write(bytesOf(m.X))
	if c := m.CSR; c != nil {
		hash.Write(bytesOf(c.Start))
		hash.Write(bytesOf(c.Column))
		hash.Write(bytesOf(c.Value))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// bytesOf returns the memory of numbers.
func bytesOf[T int | int32 | float32](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// GraphKey identifies a graph.
func GraphKey(g *neighbors.Graph) string {
	hash := sha256.New()
	_ = binary.Write(hash, binary.LittleEndian, int64(g.N)) // a hash never fails
	for i := range g.N {
		tails := g.Tails(i)
		_ = binary.Write(hash, binary.LittleEndian, int64(len(tails)))
		hash.Write(bytesOf(tails))
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
