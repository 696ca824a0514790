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
	"unsafe"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/neighbors"
	"cne/internal/rundir"
	"cne/internal/safetensors"
	"cne/internal/version"
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

// A neighborhood is what the embeddings of a run are to preserve, with what
// identifies it.
type neighborhood struct {
	*cne.Neighborhood
	// pointsKey identifies the data, and key the settings too.
	pointsKey, key string
}

// What marks a file as a cache, and its form.
const (
	cacheKind   = "cache"
	cacheFormat = 2
)

// prepare finds the neighborhood of the points, or takes it from the cache of an
// earlier run on the same points with the same settings. It takes the points from the
// set, and lets them go as soon as no model needs them: they may be most of the memory.
func prepare(ctx context.Context, c *configs.Config, o *cne.Options, dir *rundir.Dir, log *slog.Logger, in *inputs) (*neighborhood, error) {
	set := in.points
	n := set.Points.N
	k, atLeast := c.Graph.K, 0
	if c.Graph.File != nil {
		var err error
		if o.Graph, err = readGraph(*c.Graph.File, n); err != nil {
			return nil, err
		}
		warnAboutGraph(log, o.Graph)
		k = 0
	}
	if c.Quality.Recall {
		atLeast = c.Quality.K
		k = max(k, atLeast)
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

	components := o.Reduces(n, set.Points.D)
	h := &neighborhood{Neighborhood: &cne.Neighborhood{Input: set.Points, Before: in.before()}, pointsKey: pointsKey(set.Points)}
	h.key = h.cacheKey(components, k)
	set.Points = nil
	cached := c.Graph.Cache && h.load(dir, components > 0, k)
	if cached {
		log.Info("principal components and neighbours are those of the last run in this folder")
	}
	o.Log = log
	if err := h.Complete(ctx, o, atLeast); err != nil {
		if errors.Is(err, neighbors.ErrNotFinite) && components > 0 {
			return nil, errors.New("the principal components are too large for float32; set data.scale to standard or unit")
		}
		return nil, err
	}
	if c.Graph.Cache && !cached && !dir.ReadOnly() {
		return h, h.save(dir)
	}
	return h, nil
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
func (h *neighborhood) cacheKey(components, k int) string {
	return fmt.Sprintf("%s, %d components, %d neighbours", h.pointsKey, components, k)
}

// graphKey identifies the graph.
func (h *neighborhood) graphKey() string {
	hash := sha256.New()
	_ = binary.Write(hash, binary.LittleEndian, int64(h.Graph.N)) // a hash never fails
	for i := range h.Graph.N {
		tails := h.Graph.Tails(i)
		_ = binary.Write(hash, binary.LittleEndian, int64(len(tails)))
		if len(tails) > 0 {
			hash.Write(unsafe.Slice((*byte)(unsafe.Pointer(&tails[0])), 4*len(tails)))
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// load fills h from the cache if that has the key; reduced says that the points are
// principal components, and k how many neighbours are wanted. A cache that cannot be
// read is as good as none: it is written anew.
func (h *neighborhood) load(dir *rundir.Dir, reduced bool, k int) bool {
	f, err := safetensors.ReadFile(dir.Path(rundir.CacheFile))
	if err != nil || f.Unseal(cacheKind, cacheFormat) != nil || f.Metadata["key"] != h.key {
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
		found.Nearest = &neighbors.Neighbors{N: n, K: k, Index: index, Dist2: dist2}
	}
	*h.Neighborhood = found
	return true
}

func (h *neighborhood) save(dir *rundir.Dir) error {
	f := &safetensors.File{
		Metadata: map[string]string{"key": h.key, "version": version.String()},
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
