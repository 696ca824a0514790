package rundir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/images"
	"cne/data/neighbors"
	"cne/data/pca"
	"cne/internal/kind"
	"cne/internal/safetensors"
)

// Kind and format version of the files of a cache.
const (
	cacheKind   = "cache"
	cacheFormat = 3
)

// lookAgain is the time between checks for what another run computes.
const lookAgain = 50 * time.Millisecond

// A Cache keeps the principal components and neighbours of the points of a run (it is a
// cne.Cache): in the run folder for its next run, in a folder of its own for many runs.
type Cache struct {
	// PointsKey identifies the points, once Load was called: see the function.
	PointsKey string

	run    *Dir
	keep   bool   // if not, it finds nothing
	shared string // the folder; "" for the run folder
	log    *slog.Logger
	key    string
	unlock func() // lets other runs compute what was not found
}

// Cache returns the configured cache.
func (d *Dir) Cache(log *slog.Logger, c configs.Cache) *Cache {
	return &Cache{run: d, keep: c.Keep, shared: c.Folder, log: log}
}

// Release lets other runs compute values that Load did not find and that were not saved.
func (c *Cache) Release() {
	if c.unlock != nil {
		c.unlock()
		c.unlock = nil
	}
}

// keyOf returns the key of the principal components and k nearest neighbours of points,
// given the points' key.
func keyOf(pointsKey string, points data.Source, o *cne.Options, k int) string {
	n, d := points.Dims()
	components := o.Reduces(n, d)
	key := fmt.Sprintf("%s, %d components, %d neighbours", pointsKey, components, k)
	if o.GraphMetric.Direct() { // others change the points
		key += ", " + string(o.GraphMetric)
	}
	m, _ := points.(*data.Matrix)
	sparse := m != nil && m.CSR != nil
	if components == 0 && sparse { // the search is exact
		return key
	}
	if o.Graph == nil && o.Approximates(n, cmp.Or(components, d), k) {
		key += fmt.Sprintf(", approximate, seed %d", o.Seed)
	}
	if sparse {
		key += fmt.Sprintf(", of sparse points, seed %d", o.Seed)
	}
	return key
}

// path returns the file of a key.
func (c *Cache) path(key string) string {
	if c.shared == "" {
		return c.run.Path(CacheFile)
	}
	hash := sha256.Sum256([]byte(key))
	return filepath.Join(c.shared, "neighbors-"+hex.EncodeToString(hash[:8])+".safetensors")
}

// Load implements cne.Cache. A file that cannot be read is computed and written again. If
// several runs miss the same entry of a shared cache at once, the first computes it; the
// others wait until it saves the entry or gives up (Release), or until their context
// ends. A resumed run keeps its neighbours on another device, where an automatic search may
// be exact instead of approximate, or the other way round.
func (c *Cache) Load(ctx context.Context, h *cne.Neighborhood, o *cne.Options, k int) (found bool, err error) {
	if c.PointsKey, err = PointsKey(ctx, h.Source()); err != nil || !c.keep {
		return false, err
	}
	c.key = keyOf(c.PointsKey, h.Source(), o, k)
	n, d := h.Source().Dims()
	reduced, path := o.Reduces(n, d) > 0, c.path(c.key)
	if load(path, c.key, h, reduced, k) {
		return true, nil
	}
	if o.Resume != nil && o.Search == neighbors.Auto {
		for _, search := range []neighbors.SearchMethod{neighbors.Exact, neighbors.Approximate} {
			other := *o
			other.Search = search
			if key := keyOf(c.PointsKey, h.Source(), &other, k); load(c.path(key), key, h, reduced, k) {
				return true, nil
			}
		}
	}
	if c.shared == "" || c.run.readOnly {
		return false, nil
	}
	if err := os.MkdirAll(c.shared, 0o777); err != nil {
		return false, fmt.Errorf("cannot make the folder of graph.cache: %w", err)
	}
	for logged := false; ; logged = true {
		if c.unlock, err = LockFile(path + ".lock"); err == nil {
			return load(path, c.key, h, reduced, k), nil
		}
		if !errors.Is(err, ErrLocked) {
			return false, fmt.Errorf("cannot use the folder of graph.cache: %w", err)
		}
		if !logged {
			c.log.Info("another run finds the neighbours; waiting for it", "cache", c.shared)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
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
	found := *h
	if reduced {
		points := f.Tensors["points"]
		x, err := points.Float32s()
		if err != nil || len(points.Shape) != 2 || points.Shape[0] != n {
			return false
		}
		found.Reduced = &data.Matrix{N: n, D: points.Shape[1], X: x}
		found.PCA = new(pca.PCA)
		_, d := h.Source().Dims()
		if f.Value("pca", found.PCA) != nil || found.PCA.Check(d) != nil || found.PCA.K != found.Reduced.D {
			return false
		}
	}
	if k > 0 {
		found.Nearest = neighborsIn(f)
		if found.Nearest == nil || found.Nearest.N != n || found.Nearest.K != k {
			return false
		}
	}
	if _, ok := f.Metadata["recall"]; ok {
		found.Recall = new(neighbors.Recall)
		if f.Value("recall", found.Recall) != nil {
			return false
		}
	}
	*h = found
	return true
}

// neighborsIn returns the neighbours in a cache; nil if it has none, or invalid ones.
func neighborsIn(f *safetensors.File) *neighbors.Neighbors {
	shape := f.Tensors["neighbors"].Shape
	index, err := f.Tensors["neighbors"].Int32s()
	dist2, err2 := f.Tensors["squared_distances"].Float64s()
	if err != nil || err2 != nil || len(shape) != 2 || len(dist2) != len(index) ||
		slices.ContainsFunc(index, func(j int32) bool { return j < 0 || int(j) >= shape[0] }) {
		return nil
	}
	return &neighbors.Neighbors{N: shape[0], K: shape[1], Index: index, Dist2: dist2}
}

// KeptNeighbors returns the neighbours of the points that the run in a folder was trained
// on; nil if no cache has them. It looks in the folder, in its parent (possibly a
// spectrum's folder), and in the shared cache of c.
func KeptNeighbors(folder string, c configs.Cache) *neighbors.Neighbors {
	points, _ := DataKeys(folder)
	paths := []string{filepath.Join(folder, CacheFile), filepath.Join(folder, "..", CacheFile)}
	shared := cmp.Or(c.Folder, folder)
	names, _ := fs.Glob(os.DirFS(shared), "neighbors-*.safetensors") // a valid pattern
	for _, name := range names {
		paths = append(paths, filepath.Join(shared, name))
	}
	for _, path := range paths {
		if f, err := safetensors.ReadFile(path); err == nil && points != "" && strings.HasPrefix(f.Metadata["key"], points+",") &&
			f.Unseal(cacheKind, cacheFormat) == nil {
			return neighborsIn(f)
		}
	}
	return nil
}

// Save implements cne.Cache.
func (c *Cache) Save(h *cne.Neighborhood) (err error) {
	defer kind.Catch(&err)
	defer c.Release()
	if !c.keep || c.run.readOnly {
		return nil
	}
	f := &safetensors.File{
		Metadata: map[string]string{"key": c.key, "version": configs.Version()},
		Tensors:  map[string]safetensors.Tensor{},
	}
	if h.PCA != nil {
		kind.Check(f.PutValue("pca", h.PCA))
		f.Tensors["points"] = safetensors.New(h.Reduced.X, h.Reduced.N, h.Reduced.D)
	}
	if nb := h.Nearest; nb != nil {
		f.Tensors["neighbors"] = safetensors.New(nb.Index, nb.N, nb.K)
		f.Tensors["squared_distances"] = safetensors.New(nb.Dist2, nb.N, nb.K)
	}
	if h.Recall != nil {
		kind.Check(f.PutValue("recall", h.Recall))
	}
	f.Seal(cacheKind, cacheFormat)
	return f.WriteFile(c.path(c.key))
}

// KeepGraph writes a graph for other programs: as GraphFile in the run folder, or once
// for all runs in a shared cache, under a name with its GraphKey.
func (c *Cache) KeepGraph(g *neighbors.Graph, key string) error {
	if !c.keep {
		return nil
	}
	path := c.run.Path(GraphFile)
	if c.shared != "" {
		path = filepath.Join(c.shared, "graph-"+key[:16]+".npz")
		if exists(path) {
			return nil
		}
	}
	return g.WriteNPZ(path)
}

// hashedValues is the approximate number of values hashed between two checks of the
// context.
const hashedValues = 1 << 22

// PointsKey identifies points. Sparse points have another key than the same points made
// dense. The error comes from reading them.
func PointsKey(ctx context.Context, points data.Source) (string, error) {
	hash := sha256.New()
	n, d := points.Dims()
	_ = binary.Write(hash, binary.LittleEndian, []int64{int64(n), int64(d)}) // a hash never fails
	if m, ok := points.(*data.Matrix); ok && m.CSR != nil {
		hash.Write(bytesOf(m.CSR.Start))
		hash.Write(bytesOf(m.CSR.Column))
		hash.Write(bytesOf(m.CSR.Value))
		return hex.EncodeToString(hash.Sum(nil)), nil
	}
	err := points.Each(ctx, max(1, hashedValues/d), func(_ int, block *data.Matrix) error {
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

// ImagesKey identifies images and the rows that are trained on. Labels do not count.
func ImagesKey(images *images.Set, rows []int32) string {
	hash := sha256.New()
	sizes := []int64{int64(images.N), int64(images.H), int64(images.W), int64(images.C)}
	_ = binary.Write(hash, binary.LittleEndian, sizes) // a hash never fails
	hash.Write(images.Pixels)
	_ = binary.Write(hash, binary.LittleEndian, rows)
	return hex.EncodeToString(hash.Sum(nil))
}
