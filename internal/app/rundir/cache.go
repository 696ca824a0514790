package rundir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"cne"
	"cne/data"
	"cne/data/neighbors"
	"cne/data/pca"
	"cne/internal/safetensors"
	"cne/internal/version"
)

// What marks a file as a cache, or as a note of PointsKey, and its form.
const (
	cacheKind   = "cache"
	cacheFormat = 2
	noteKind    = "points key"
	noteFormat  = 1 // one more whenever PointsKey changes
)

// CacheKey identifies the principal components and the k nearest neighbours of points,
// whose own key is given.
func CacheKey(pointsKey string, points data.Source, o *cne.Options, components, k int) string {
	n, d := points.Dims()
	key := fmt.Sprintf("%s, %d components, %d neighbours", pointsKey, components, k)
	if o.Graph == nil && o.Search.Approximates(n, cmp.Or(components, d), k) {
		key += fmt.Sprintf(", approximate, seed %d", o.Seed)
	}
	if m, ok := points.(*data.Matrix); ok && m.CSR != nil {
		key += fmt.Sprintf(", of sparse points, seed %d", o.Seed)
	}
	return key
}

// A Cache keeps the principal components and neighbours of points from one run to the
// next: in the run folder those of its last run, in a folder of its own those of many.
type Cache struct {
	run    *Dir
	shared string // the folder; "" for that of the run
}

// Cache returns the cache in a folder that runs share, or, if that is "", the one in the
// run folder.
func (d *Dir) Cache(shared string) *Cache { return &Cache{d, shared} }

// path returns the file of a key.
func (c *Cache) path(key string) string {
	if c.shared == "" {
		return c.run.Path(CacheFile)
	}
	hash := sha256.Sum256([]byte(key))
	return filepath.Join(c.shared, "neighbors-"+hex.EncodeToString(hash[:8])+".safetensors")
}

// lookAgain is how often a run looks whether another has found what both need.
const lookAgain = 50 * time.Millisecond

// Cached is what a cache says of a key.
type Cached struct {
	Found  bool
	unlock func()
}

// Release lets others look for what was not found. It may be called more than once, and
// of the zero value.
func (x *Cached) Release() {
	if x.unlock != nil {
		x.unlock()
		x.unlock = nil
	}
}

// Load fills h, of which the input is known, from the cache if that has the key;
// reduced says that the points are principal components, and k how many neighbours are
// wanted. A cache that cannot be read is as good as none: it is written anew.
//
// Of runs that ask at once for what a shared cache does not have yet, the first is to
// find and Save it, and to Release the others, which wait until then, or until their
// context ends. Those call waiting first.
func (c *Cache) Load(ctx context.Context, key string, h *cne.Neighborhood, reduced bool, k int, waiting func()) (x Cached, err error) {
	path := c.path(key)
	if x.Found = load(path, key, h, reduced, k); x.Found || c.shared == "" || c.run.ReadOnly() {
		return x, nil
	}
	if err := os.MkdirAll(c.shared, 0o777); err != nil {
		return x, fmt.Errorf("cannot make the folder of graph.cache: %w", err)
	}
	for told := false; ; told = true {
		x.unlock, err = LockFile(path + ".lock")
		if err == nil {
			x.Found = load(path, key, h, reduced, k)
			return x, nil
		}
		if !errors.Is(err, ErrLocked) {
			return x, fmt.Errorf("cannot use the folder of graph.cache: %w", err)
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return x, ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

func load(path, key string, h *cne.Neighborhood, reduced bool, k int) bool {
	f, err := safetensors.ReadFile(path)
	if err != nil || f.Unseal(cacheKind, cacheFormat) != nil || f.Metadata["key"] != key {
		return false
	}
	n, _ := h.Source().Dims()
	found := cne.Neighborhood{Input: h.Input, Stored: h.Stored, Before: h.Before, Points: h.Input}
	if reduced {
		points := f.Tensors["points"]
		x, err := points.Float32s()
		if err != nil || len(points.Shape) != 2 || points.Shape[0] != n {
			return false
		}
		found.Points = &data.Matrix{N: n, D: points.Shape[1], X: x}
		found.PCA = new(pca.PCA)
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

// Save writes what Load reads.
func (c *Cache) Save(key string, h *cne.Neighborhood) error {
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
	return f.WriteFile(c.path(key))
}

// KeepGraph writes a graph, whose GraphKey is given, for other programs: in the run folder
// as GraphFile, or in a shared cache, where it has a name by its key, once for all runs.
func (c *Cache) KeepGraph(g *neighbors.Graph, key string) error {
	if c.shared == "" {
		return g.WriteNPZ(c.run.Path(GraphFile))
	}
	path := filepath.Join(c.shared, "graph-"+key[:16]+".npz")
	if exists(path) {
		return nil
	}
	return g.WriteNPZ(path)
}

// PointsKey is the function of that name, with a note in a shared cache, by the
// Fingerprint of points that have one, so that of many runs on the same points only the
// first goes through their values. A note that is missing, damaged or about other points
// is written anew; where it cannot be, the next run goes through the values again.
func (c *Cache) PointsKey(ctx context.Context, points data.Source) (string, error) {
	if c.shared == "" {
		return PointsKey(ctx, points)
	}
	fingerprint, ok := data.Fingerprint(points)
	if !ok {
		return PointsKey(ctx, points)
	}
	path := filepath.Join(c.shared, "points-"+fingerprint[:16]+".safetensors")
	f, err := safetensors.ReadFile(path)
	if err == nil && f.Unseal(noteKind, noteFormat) == nil && f.Metadata["fingerprint"] == fingerprint {
		return f.Metadata["key"], nil
	}
	key, err := PointsKey(ctx, points)
	if err != nil || c.run.ReadOnly() {
		return key, err
	}
	f = &safetensors.File{Metadata: map[string]string{"fingerprint": fingerprint, "key": key, "version": version.String()}}
	f.Seal(noteKind, noteFormat)
	if os.MkdirAll(c.shared, 0o777) == nil {
		_ = f.WriteFile(path) // it saves time, and nothing depends on it
	}
	return key, nil
}

// PointsKey identifies points. Sparse ones are other points than the same as dense ones.
// The error is that of going through them.
func PointsKey(ctx context.Context, points data.Source) (string, error) {
	hash := sha256.New()
	n, d := points.Dims()
	for _, v := range []int{n, d} {
		_ = binary.Write(hash, binary.LittleEndian, int64(v)) // a hash never fails
	}
	if m, ok := points.(*data.Matrix); ok && m.CSR != nil {
		hash.Write(bytesOf(m.CSR.Start))
		hash.Write(bytesOf(m.CSR.Column))
		hash.Write(bytesOf(m.CSR.Value))
		return hex.EncodeToString(hash.Sum(nil)), nil
	}
	err := points.Each(ctx, 0, func(_ int, block *data.Matrix) error {
		hash.Write(bytesOf(block.X))
		return nil
	})
	return hex.EncodeToString(hash.Sum(nil)), err
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
	hash.Write(bytesOf(g.Weights))
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
