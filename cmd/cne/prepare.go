package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unsafe"

	"cne/configs"
	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rundir"
	"cne/internal/safetensors"
	"cne/internal/version"
	"cne/model"
)

// readGraph reads graph.file, for n points.
func readGraph(path string, n int) (*neighbors.Graph, error) {
	g, err := neighbors.ReadNPZ(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("graph.file cannot be used: %w", err)
	case g.N != n:
		return nil, fmt.Errorf("graph.file %s has %d points, but the data have %d; build the graph from the same points", path, g.N, n)
	case g.Edges() == 0:
		return nil, fmt.Errorf("graph.file %s has no edges; an embedding needs some", path)
	}
	return g, nil
}

// warnAboutGraph says what a person may not expect of a graph of their own.
func warnAboutGraph(log *slog.Logger, g *neighbors.Graph) {
	if !g.Symmetric() {
		log.Warn("graph.file holds a directed graph, and its edges are used as they are; in Python, g.maximum(g.T) makes it symmetric")
	}
	touched := make([]bool, g.N)
	for i := range g.N {
		for _, j := range g.Tails(i) {
			touched[i], touched[j] = true, true
		}
	}
	alone := 0
	for _, t := range touched {
		if !t {
			alone++
		}
	}
	if alone > 0 {
		log.Warn("points without an edge in graph.file stay where they start", "points", alone, "of", g.N)
	}
}

// A neighbourhood is what the embedding shall preserve.
type neighbourhood struct {
	// points are the data, or their principal components if the data are
	// wide: the space in which neighbours are near.
	points *data.Matrix
	// nearest has as many neighbours of each point as graph and recall need;
	// nil if the graph is the user's own and no recall is asked for.
	nearest *neighbors.Neighbors
	graph   *neighbors.Graph
	// pca made the points; nil if they are the data.
	pca *data.PCA
	// pointsKey identifies the data, and key the settings too.
	pointsKey, key string

	pcaTime, graphTime time.Duration
}

// What marks a file as a cache, and its form.
const (
	cacheKind   = "cache"
	cacheFormat = 2
)

// prepare computes the neighbourhood of the points on a device, or takes it from the cache
// of an earlier run on the same points with the same settings. Unless the model
// sees the points of the set themselves, it releases them when it no longer
// needs them.
func prepare(ctx context.Context, c *configs.Config, dir *rundir.Dir, log *slog.Logger, on *model.Device, set *data.Dataset) (*neighbourhood, error) {
	n := set.Points.N
	var own *neighbors.Graph
	k := 0
	if c.Graph.File != nil {
		var err error
		if own, err = readGraph(*c.Graph.File, n); err != nil {
			return nil, err
		}
		warnAboutGraph(log, own)
	} else {
		k = c.Graph.K
	}
	if c.Quality.Recall {
		k = max(k, c.Quality.K)
	}
	if n < 2 {
		if c.Data.Holdout != nil {
			return nil, errors.New("data.holdout leaves a single point, which has no neighbours; hold fewer out, or give more points")
		}
		return nil, errors.New("there is a single point, which has no neighbours; give more points")
	}
	if n <= k {
		if c.Data.Holdout != nil {
			return nil, fmt.Errorf("the %d points that data.holdout leaves do not have %d neighbours each; hold fewer out, or set graph.k and quality.k below %d", n, k, n)
		}
		return nil, fmt.Errorf("%d points do not have %d neighbours each; give more points, or set graph.k and quality.k below %d", n, k, n)
	}

	components := 0
	if c.Graph.PCA > 0 && c.Graph.PCA < set.Points.D {
		components = min(c.Graph.PCA, n)
	}
	h := &neighbourhood{graph: own, pointsKey: pointsKey(set.Points)}
	h.key = h.cacheKey(components, k)
	var raw *data.Matrix
	if components == 0 {
		raw = set.Points
	}
	if c.Graph.Cache && h.load(dir, raw, n, k) {
		log.Info("principal components and neighbours are those of the last run in this folder")
	} else {
		if err := h.compute(ctx, log, on, set, components, k, c.Model.SeesPoints()); err != nil {
			return nil, err
		}
		if c.Graph.Cache && !dir.ReadOnly() {
			if err := h.save(dir); err != nil {
				return nil, err
			}
		}
	}
	if !c.Model.SeesPoints() {
		set.Points = nil
	}
	if h.graph == nil {
		start := time.Now()
		var err error
		if h.graph, err = neighbors.FromNeighbors(h.nearest.Nearest(c.Graph.K)); err != nil {
			return nil, err
		}
		h.graphTime += time.Since(start)
	}
	return h, ctx.Err()
}

func (h *neighbourhood) compute(ctx context.Context, log *slog.Logger, on *model.Device, set *data.Dataset, components, k int, keep bool) error {
	h.points = set.Points
	start := time.Now()
	if components > 0 {
		log.Info("computing principal components", "from", set.Points.D, "to", components)
		var err error
		if h.pca, err = data.FitPCA(ctx, set.Points, components, on); err != nil {
			return err
		}
		if h.points, err = h.pca.Transform(ctx, set.Points, on); err != nil {
			return err
		}
		if !keep {
			set.Points = nil // the neighbours' search needs the memory more
		}
	}
	h.pcaTime = time.Since(start)
	if err := ctx.Err(); err != nil || k == 0 {
		return err
	}
	start = time.Now()
	log.Info("searching the nearest neighbours", "points", h.points.N, "k", k)
	var err error
	h.nearest, err = neighbors.KNN(ctx, h.points, k, neighbors.Options{Device: on})
	h.graphTime = time.Since(start)
	if errors.Is(err, neighbors.ErrNotFinite) && components > 0 {
		return errors.New("the principal components are too large for float32; set data.scale to standard or unit")
	}
	return err
}

// pointsKey identifies points.
func pointsKey(m *data.Matrix) string {
	hash := sha256.New()
	for _, v := range []int{m.N, m.D} {
		_ = binary.Write(hash, binary.LittleEndian, int64(v)) // a hash never fails
	}
	if len(m.X) > 0 {
		hash.Write(unsafe.Slice((*byte)(unsafe.Pointer(&m.X[0])), 4*len(m.X)))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// cacheKey identifies the points and what is computed of them.
func (h *neighbourhood) cacheKey(components, k int) string {
	return fmt.Sprintf("%s, %d components, %d neighbours", h.pointsKey, components, k)
}

// graphKey identifies the graph.
func (h *neighbourhood) graphKey() string {
	hash := sha256.New()
	_ = binary.Write(hash, binary.LittleEndian, int64(h.graph.N)) // a hash never fails
	for i := range h.graph.N {
		tails := h.graph.Tails(i)
		_ = binary.Write(hash, binary.LittleEndian, int64(len(tails)))
		if len(tails) > 0 {
			hash.Write(unsafe.Slice((*byte)(unsafe.Pointer(&tails[0])), 4*len(tails)))
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// load fills h from the cache if that has the key; raw are the points if no
// principal components are asked for, else nil. A cache that cannot be read is
// as good as none: it is written anew.
func (h *neighbourhood) load(dir *rundir.Dir, raw *data.Matrix, n, k int) bool {
	f, err := safetensors.ReadFile(dir.Path(rundir.CacheFile))
	if err != nil || f.Unseal(cacheKind, cacheFormat) != nil || f.Metadata["key"] != h.key {
		return false
	}
	found := neighbourhood{graph: h.graph, points: raw, pointsKey: h.pointsKey, key: h.key}
	if raw == nil {
		points := f.Tensors["points"]
		x, err := points.Float32s()
		if err != nil || len(points.Shape) != 2 || points.Shape[0] != n {
			return false
		}
		found.points = &data.Matrix{N: n, D: points.Shape[1], X: x}
		found.pca = new(data.PCA)
		if json.Unmarshal([]byte(f.Metadata["pca"]), found.pca) != nil || found.pca.K != found.points.D {
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
		found.nearest = &neighbors.Neighbors{N: n, K: k, Index: index, Dist2: dist2}
	}
	*h = found
	return true
}

func (h *neighbourhood) save(dir *rundir.Dir) error {
	f := &safetensors.File{
		Metadata: map[string]string{"key": h.key, "version": version.String()},
		Tensors:  map[string]safetensors.Tensor{},
	}
	if h.pca != nil {
		text, err := json.Marshal(h.pca)
		if err != nil {
			return fmt.Errorf("the principal components cannot be kept: %w", err)
		}
		f.Metadata["pca"] = string(text)
		f.Tensors["points"] = safetensors.New(h.points.X, h.points.N, h.points.D)
	}
	if nb := h.nearest; nb != nil {
		f.Tensors["neighbors"] = safetensors.New(nb.Index, nb.N, nb.K)
		f.Tensors["squared_distances"] = safetensors.New(nb.Dist2, nb.N, nb.K)
	}
	f.Seal(cacheKind, cacheFormat)
	return f.WriteFile(dir.Path(rundir.CacheFile))
}

// await returns what f does, or ctx's error as soon as ctx ends: f then goes
// on behind the scenes until the program ends, which is soon. A panic of f is
// raised again on the calling goroutine.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value    T
		err      error
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			done <- r
		}()
		r.value, r.err = f()
	}()
	select {
	case r := <-done:
		if r.panicked != nil {
			panic(r.panicked)
		}
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
