package cne_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"cne"
	"cne/data"
)

// Embeddings of 3-dimensional points of every kind that Project knows.
func projecting(t testing.TB) map[string]*cne.Embedding {
	t.Helper()
	m, err := data.FromMat(rings(40))
	must(t, err)
	all := map[string]*cne.Embedding{}
	for name, change := range map[string]func(*cne.Options){
		"table":              func(*cne.Options) {},
		"components, table":  func(o *cne.Options) { o.Components, o.GraphMetric = new(2), data.Cosine },
		"network":            func(o *cne.Options) { o.Hidden = []int{20, 7} },
		"one layer":          func(o *cne.Options) { o.Hidden = []int{} },
		"float64":            func(o *cne.Options) { o.Hidden, o.Float64 = []int{20}, true },
		"components":         func(o *cne.Options) { o.Hidden, o.OnComponents, o.Components = []int{9}, true, new(2) },
		"standard, cosine":   func(o *cne.Options) { o.Hidden, o.Scaling, o.GraphMetric = []int{9}, data.ScaleStandard, data.Cosine },
		"standard, no layer": func(o *cne.Options) { o.Hidden, o.Scaling = []int{9}, data.ScaleStandard },
	} {
		o := cne.Options{Epochs: 4, Neighbors: 5}
		change(&o)
		all[name], err = cne.Embed(t.Context(), m, o)
		must(t, err)
	}
	return all
}

// Goroutines that share an embedding get the bits that one gets alone, from the first call
// on, which prepares what all need.
func TestProjectTogether(t *testing.T) {
	x := points(t, 300)
	for name, e := range projecting(t) {
		t.Run(name, func(t *testing.T) {
			want := project(t, e, x)
			must(t, e.UseDevice(nil)) // prepares again
			var group sync.WaitGroup
			for g := range 32 {
				group.Go(func() {
					for i := range 30 {
						lo := (g*31 + i*7) % x.N
						hi := min(x.N, lo+1+(g*i)%200)
						got, err := e.Project(t.Context(), x.Rows(lo, hi))
						if err != nil || !slices.Equal(got.X, want.X[2*lo:2*hi]) {
							t.Errorf("points %d to %d: other positions than alone (%v)", lo, hi, err)
							return
						}
						if !e.HasTrainingPoints() || e.Dim() != 2 {
							t.Error("it is not what it was")
						}
						if w, err := e.Width(); w != 3 || err != nil {
							t.Errorf("width %d, %v", w, err)
						}
					}
				})
			}
			group.Wait()
		})
	}
}

// ProjectInto writes what Project returns, whatever was in the matrix, and refuses a matrix
// of another size.
func TestProjectInto(t *testing.T) {
	x := points(t, 300)
	before := x.Clone()
	for name, e := range projecting(t) {
		want := project(t, e, x)
		for _, n := range []int{1, 2, 95, 96, 97, x.N} {
			dst := &data.Matrix{N: n, D: 2, X: slices.Repeat([]float32{float32(math.NaN())}, 2*n)}
			if err := e.ProjectInto(t.Context(), dst, x.Rows(0, n)); err != nil || !slices.Equal(dst.X, want.X[:2*n]) {
				t.Errorf("%s: %d points get other positions (%v)", name, n, err)
			}
		}
		for _, dst := range []*data.Matrix{nil, {}, data.NewMatrix(4, 2), data.NewMatrix(3, 3), {N: 3, D: 2, X: make([]float32, 5)}, sparsePoints(t, 3)} {
			if err := e.ProjectInto(t.Context(), dst, x.Rows(0, 3)); !errors.Is(err, cne.ErrPoints) {
				t.Errorf("%s: a matrix of another size: %v", name, err)
			}
		}
	}
	same(t, "the points are changed", x.X, before.X)
}

// One point through a network costs no memory but its position.
func TestProjectAllocatesLittle(t *testing.T) {
	e, x := paperNetwork(t), pixels(12)
	dst := data.NewMatrix(12, 2)
	for _, n := range []int{1, 12} {
		points, to := x.Rows(0, n), dst.Rows(0, n)
		for what, x := range map[string]struct {
			most float64
			call func()
		}{
			"into a matrix": {0, func() { must(t, e.ProjectInto(t.Context(), to, points)) }},
			"and returned":  {2, func() { project(t, e, points) }},
		} {
			// With -race, a sync.Pool drops some of its values, so the least of some calls counts.
			least := math.Inf(1)
			for range 50 {
				least = min(least, testing.AllocsPerRun(1, x.call))
			}
			if least > x.most {
				t.Errorf("%d points %s: %v allocations", n, what, least)
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		project(t, e, x.Rows(0, 1))
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / 100; got > 100_000 {
		t.Errorf("a point costs %d bytes", got)
	}
}

// The service of the example answers as often as it is asked, and ends when it is told to.
func TestService(t *testing.T) {
	for name, e := range projecting(t) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		served := make(chan error)
		go func() { served <- serve(ctx, l, newService(e)) }()
		want := project(t, e, &data.Matrix{N: 2, D: 3, X: []float32{0.25, 1, 2, 3, 0, 1}})
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				answer, err := http.Post("http://"+l.Addr().String(), "application/json", strings.NewReader("[[0.25, 1, 2], [3, 0, 1]]"))
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				var got [][]float32
				if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || !slices.Equal(slices.Concat(got...), want.X) {
					t.Errorf("%s: the answer is %v, want %v (%v)", name, got, want.X, err)
				}
			})
		}
		group.Wait()
		cancel()
		must(t, <-served)
		http.DefaultClient.CloseIdleConnections()
	}
}

// Whatever a client sends, the service answers with positions or with what is wrong.
func FuzzService(f *testing.F) {
	for _, body := range []string{"", "[]", "[[]]", "[[1,2,3]]", "[[1,2],[3,4]]", "[[1,2,3],[4]]", "[[1e39,0,0]]", "[[1e38,-1e38,3e38]]", "[[0,0,0]]", "[[1,1,1]]",
		"null", "[null]", "[[null,1,2]]", `[["1",2,3]]`, `{"rows":[[1,2,3]]}`, "[[1e999,2,3]]", "[[NaN,1,2]]", "[[1,2,3]]]", "[[1,2,3]", "[[100000000,100000001,1]]"} {
		f.Add(body)
	}
	services := map[string]http.Handler{}
	for name, e := range projecting(f) {
		services[name] = newService(e)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for name, service := range services {
			w := httptest.NewRecorder()
			service.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
			switch text, _ := io.ReadAll(w.Body); w.Code {
			case http.StatusOK:
				var rows, positions [][]float64
				if err := json.Unmarshal(text, &positions); err != nil || json.Unmarshal([]byte(body), &rows) != nil || len(positions) != len(rows) || len(rows) == 0 {
					t.Errorf("%s: %q is answered with %q (%v)", name, body, text, err)
				}
			case http.StatusBadRequest:
				if len(text) < 10 || strings.Count(string(text), "\n") != 1 {
					t.Errorf("%s: %q is refused with %q", name, body, text)
				}
			default:
				t.Errorf("%s: %q is answered with %d: %s", name, body, w.Code, text)
			}
		}
	})
}
