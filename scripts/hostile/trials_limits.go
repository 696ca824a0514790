package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"debug/buildinfo"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// needC skips the trial if the program was built without a C compiler: Go's runtime then
// dies of a limit on its memory before anything of the program has run.
func (w *world) needC() {
	info, err := buildinfo.ReadFile(filepath.Join(w.r.bin, "cne"))
	w.must(err)
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"}) {
		w.skip("the program was built without a C compiler")
	}
}

// matches tells whether a regular expression occurs in a text.
func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// limitTrials are about narrow and odd surroundings.
func limitTrials() []trial {
	p := blobs(60, 4)
	train := fmt.Sprintf(onPoints, "x.npy")
	var all []trial
	// Surroundings in which nothing may change.
	for name, before := range map[string]string{
		"one-core": "GOMAXPROCS=1", "seven-cores": "GOMAXPROCS=7", "hundred-cores": "GOMAXPROCS=100", "wrong-cores": "GOMAXPROCS=-3", "no-collection": "GOGC=off", "eager-collection": "GOGC=1",
		"no-vectors": "GODEBUG=cpu.all=off", "other-language": "LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8", "no-language": "LC_ALL=C", "nonsense-language": "LANG=xx_YY.nonsense", "no-home": "env -u HOME",
		"home-missing": "HOME=/nonexistent", "no-temporary-folder": "TMPDIR=/nonexistent", "dumb-terminal": "TERM=dumb COLUMNS=-1 LINES=x", "no-environment": "env -i \"$(command -v cne)\"", "zone": "TZ=Pacific/Kiritimati", "nonsense-zone": "TZ=../../etc/passwd",
		"own-stack-small": "ulimit -s 128;", "no-core-files": "ulimit -c 0;", "no-stdin": "exec <&-;", "files-64": "ulimit -n 64;", "files-20": "ulimit -n 20;", "locked-memory-0": "ulimit -l 0;", "lowest-priority": "nice -n 19",
		"processor-60s": "ulimit -t 60;", "umask-022": "umask 022;", "no-stdout": "exec >&-;", "no-stderr": "exec 2>&-;", "no-streams": "exec <&- >&- 2>&-;", "stdin-is-a-folder": "exec < .;", "debug": "CNE_DEBUG=1",
	} {
		all = append(all, trial{"around/" + name, func(w *world) {
			dir, _ := w.base("points", func(u *world) { u.write("x.npy", p.npy()) }, train)
			w.write("x.npy", p.npy())
			line := before + " " + train
			if name == "no-environment" {
				line = before + strings.TrimPrefix(train, "cne")
			}
			w.ok(line)
			if name == "no-vectors" { // other kernels add in another order
				w.finite("run/embedding.npy", 60, 2)
				return
			}
			w.sameAs(dir, "run/embedding.npy", "run/graph.npz", "run/embedding.csv")
		}})
	}
	// Limits under which a run may fail, in one sentence, but not crash; without the
	// limit it goes on or begins again.
	for name, limit := range map[string]string{
		"files-8": "-n 8", "files-7": "-n 7", "files-12": "-n 12", "data-100mb": "-d 100000", "data-200mb": "-d 200000", "data-400mb": "-d 400000", "size-1k": "-f 1", "size-4k": "-f 4", "size-8k": "-f 8", "size-20k": "-f 20",
		"space-150mb": "-v 150000", "space-250mb": "-v 250000", "space-600mb": "-v 600000", "space-1200mb": "-v 1200000",
	} {
		all = append(all, trial{"limit/" + name, func(w *world) {
			dir, _ := w.base("points", func(u *world) { u.write("x.npy", p.npy()) }, train)
			if strings.HasPrefix(limit, "-v") || strings.HasPrefix(limit, "-d") {
				w.needC()
			}
			w.write("x.npy", p.npy())
			if res := w.run("ulimit "+limit+"; "+train, effects{}); res.code != 0 {
				if w.exists("run/config.yaml") {
					w.ok("cne train -q --resume run")
				} else {
					w.ok(train)
				}
			}
			w.sameAs(dir, "run/embedding.npy", "run/graph.npz", "run/embedding.csv")
		}})
	}
	return append(all,
		trial{"limit/folder-that-is-gone", func(w *world) {
			w.write("x.npy", p.npy())
			w.refused("mkdir out; cd out; rmdir ../out; cne train "+small+" --set data.path=../x.npy -o run", "")
		}},
		trial{"limit/folder-that-is-gone-config", func(w *world) {
			w.ok("mkdir out; cd out; rmdir ../out; cne config > /dev/null && cne version > /dev/null")
		}},
		trial{"limit/reader-of-results-leaves", func(w *world) {
			w.run("set -o pipefail; cne config | head -n 1 > /dev/null; exit ${PIPESTATUS[0]}", effects{codes: []int{128 + 13}})
			w.run("cne completion bash | true; exit ${PIPESTATUS[0]}", effects{codes: []int{128 + 13}})
		}},
		trial{"limit/json-messages", func(w *world) {
			w.write("x.npy", p.npy())
			for _, line := range []string{"cne train --log-format json --epochs 4 --set data.path=x.npy -o run", "cne train --log-format json --epochs 4 --set data.path=x.npy -o run", "cne train --log-format json --set data.path=nothing.npy", "cne train --log-format json --set a=b"} {
				res := w.run(line, effects{refused: true})
				for l := range strings.Lines(res.stderr) {
					if !json.Valid([]byte(l)) {
						w.fail("a line is no JSON: %s", l)
					}
				}
			}
		}},
		trial{"limit/quiet", func(w *world) {
			w.write("x.npy", p.npy())
			if res := w.ok(train); res.stderr != "" {
				w.fail("--quiet speaks: %s", res.stderr)
			}
		}},
		trial{"limit/processor-1s", func(w *world) {
			l := longRuns()[0]
			dir, _ := l.undisturbed(w)
			l.files(w)
			// The soft limit sends SIGXCPU, the hard one SIGKILL.
			line := "(ulimit -S -t 1; ulimit -H -t 2; exec " + strings.Replace(l.line, "--epochs 1500", "--epochs 1500 --set quality.spearman=60", 1) + ")"
			if res := w.run(line, effects{codes: []int{128 + 9, 128 + 24}}); res.code == 0 {
				w.sameRun(dir, []string{"run/embedding.npy"})
			}
		}},
	)
}

// A sparse graph as the program writes it.
type graph struct{ indptr, indices []int64 }

// graph reads a graph.npz.
func (w *world) graph(name string) graph {
	content := w.read(name)
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	w.must(err)
	z.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser { return flate.NewReader(r) })
	list := func(name string) []int64 {
		f, err := z.Open(name)
		w.must(err)
		defer f.Close()
		b, err := io.ReadAll(f)
		w.must(err)
		head := int(binary.LittleEndian.Uint16(b[8:]))
		text, body := string(b[10:10+head]), b[10+head:]
		var out []int64
		switch {
		case strings.Contains(text, "<i4"):
			for ; len(body) >= 4; body = body[4:] {
				out = append(out, int64(int32(binary.LittleEndian.Uint32(body))))
			}
		case strings.Contains(text, "<i8"):
			for ; len(body) >= 8; body = body[8:] {
				out = append(out, int64(binary.LittleEndian.Uint64(body)))
			}
		default:
			w.fail("%s has an unknown type: %s", name, text)
		}
		return out
	}
	return graph{list("indptr.npy"), list("indices.npy")}
}

// edges returns the edges of a graph as a set, with its points renamed.
func (g graph) edges(rename func(int64) int64) map[[2]int64]bool {
	all := make(map[[2]int64]bool)
	for i := range len(g.indptr) - 1 {
		for _, j := range g.indices[g.indptr[i]:g.indptr[i+1]] {
			all[[2]int64{rename(int64(i)), rename(j)}] = true
		}
	}
	return all
}

// sameEdges fails unless two graphs are the same after renaming the points of the first.
func (w *world) sameEdges(a, b graph, rename func(int64) int64) {
	x, y := a.edges(rename), b.edges(func(i int64) int64 { return i })
	if len(x) != len(y) {
		w.fail("the graphs have %d and %d edges", len(x), len(y))
	}
	for e := range x {
		if !y[e] {
			w.fail("the edge %v is in the first graph alone", e)
		}
	}
}

// exactGraph returns the edges of the symmetric graph of nearest neighbours of points
// whose distances all differ.
func exactGraph(t table, k int) map[[2]int64]bool {
	all := make(map[[2]int64]bool)
	for i := range t {
		type other struct {
			d float64
			j int
		}
		var near []other
		for j := range t {
			if i == j {
				continue
			}
			d := 0.0
			for c := range t[i] {
				x := float64(t[i][c]) - float64(t[j][c])
				d += x * x
			}
			near = append(near, other{d, j})
		}
		slices.SortFunc(near, func(a, b other) int {
			switch {
			case a.d < b.d:
				return -1
			case a.d > b.d:
				return 1
			}
			return a.j - b.j
		})
		for _, o := range near[:k] {
			all[[2]int64{int64(i), int64(o.j)}] = true
			all[[2]int64{int64(o.j), int64(i)}] = true
		}
	}
	return all
}

// propertyTrials are about what has to hold of every result: that is where being silently
// wrong shows.
func propertyTrials() []trial {
	p := smooth(120, 5)
	same := func(i int64) int64 { return i }
	// twins trains on two forms of points with options, and returns their graphs.
	twins := func(w *world, a, b table, options string) (graph, graph) {
		w.write("a.npy", a.npy())
		w.write("b.npy", b.npy())
		w.ok("cne train " + small + " " + options + " --set data.path=a.npy -o runa && cne train " + small + " " + options + " --set data.path=b.npy -o runb")
		return w.graph("runa/graph.npz"), w.graph("runb/graph.npz")
	}
	property := func(name string, do func(w *world)) trial { return trial{"property/" + name, do} }
	all := []trial{
		property("graph-is-exact", func(w *world) {
			w.write("a.npy", p.npy())
			w.ok("cne train " + small + " --set data.path=a.npy -o run")
			got := w.graph("run/graph.npz").edges(same)
			want := exactGraph(p, 15)
			for e := range want {
				if !got[e] {
					w.fail("the edge %v is missing", e)
				}
			}
			if len(got) != len(want) {
				w.fail("there are %d edges, not %d", len(got), len(want))
			}
		}),
		property("rows-permuted", func(w *world) {
			n := int64(len(p))
			q := make(table, n)
			for i := range p {
				q[(int64(i)*7+3)%n] = p[i]
			}
			a, b := twins(w, p, q, "")
			w.sameEdges(a, b, func(i int64) int64 { return (i*7 + 3) % n })
		}),
		property("columns-permuted", func(w *world) {
			a, b := twins(w, p, p.mapped(func(i, j int, _ float32) float32 { return p[i][4-j] }), "")
			w.sameEdges(a, b, same)
		}),
		property("columns-negated", func(w *world) {
			a, b := twins(w, p, p.mapped(func(_, _ int, v float32) float32 { return -v }), "")
			w.sameEdges(a, b, same)
		}),
		property("moved-by-64", func(w *world) {
			// 64 and the points' values add up exactly in float32.
			q := coarse(p)
			a, b := twins(w, q, q.mapped(func(_, _ int, v float32) float32 { return v + 64 }), "--set data.scale=none")
			w.sameEdges(a, b, same)
		}),
		property("moved-by-4096-and-standardized", func(w *world) {
			q := coarse(p)
			a, b := twins(w, q, q.mapped(func(_, j int, v float32) float32 { return v + 4096*float32(j) }), "--set data.scale=standard")
			if n := differing(a, b); n > 0 {
				w.fail("%d edges differ", n)
			}
		}),
		property("far-away-in-float64", func(w *world) {
			q := coarse(p)
			w.write("a.npy", q.npy())
			var far []float64
			for _, v := range q.flat() {
				far = append(far, float64(v)+1e9)
			}
			w.write("b.npy", npy("<f8", q.shape(), little(far)))
			w.ok("for x in a b; do cne train " + small + " --set data.scale=standard --set data.path=$x.npy -o run$x || exit; done")
			if n := differing(w.graph("runa/graph.npz"), w.graph("runb/graph.npz")); n > 0 {
				w.fail("%d edges differ", n)
			}
		}),
		property("duplicates-are-neighbours", func(w *world) {
			q := slices.Concat(p, p)
			w.write("a.npy", q.npy())
			w.ok("cne train " + small + " --set data.path=a.npy -o run")
			e := w.graph("run/graph.npz").edges(same)
			n := int64(len(p))
			for i := range n {
				if !e[[2]int64{i, i + n}] || !e[[2]int64{i + n, i}] {
					w.fail("point %d and its twin are no neighbours", i)
				}
			}
			w.finite("run/embedding.npy", 2*len(p), 2)
		}),
		property("graph-is-symmetric-without-loops", func(w *world) {
			w.write("a.npy", slices.Concat(p, p, p, p, p).npy())
			w.ok("cne train " + small + " --set data.path=a.npy -o run")
			e := w.graph("run/graph.npz").edges(same)
			for edge := range e {
				if edge[0] == edge[1] || !e[[2]int64{edge[1], edge[0]}] {
					w.fail("the edge %v has no other direction, or is a loop", edge)
				}
			}
		}),
		property("all-equal-points", func(w *world) {
			for i, kind := range []string{"table", "mlp"} {
				w.write("a.npy", p.mapped(func(_, _ int, _ float32) float32 { return 3 }).npy())
				if res := w.run(fmt.Sprintf("cne train %s --set model.kind=%s --set data.path=a.npy -o run%d", small, kind, i), effects{}); res.code == 0 {
					w.finite(fmt.Sprintf("run%d/embedding.npy", i), len(p), 2)
				}
			}
		}),
		property("all-zero", func(w *world) {
			w.write("a.npy", p.mapped(func(_, _ int, _ float32) float32 { return 0 }).npy())
			for _, scale := range []string{"none", "unit", "standard"} {
				res := w.run("cne train "+small+" --set data.path=a.npy -o run-"+scale+" --set data.scale="+scale, effects{})
				if res.code != 0 && !strings.Contains(res.last(), "a.npy") {
					w.fail("the message does not name a.npy: %s", res.last())
				}
			}
		}),
		property("constant-columns", func(w *world) {
			// A column that says nothing changes no neighbour.
			q := p.mapped(func(_, _ int, v float32) float32 { return v })
			for i := range q {
				q[i] = append(q[i], 5)
			}
			a, b := twins(w, p, q, "--set data.scale=standard")
			w.sameEdges(a, b, same)
		}),
		property("one-column", func(w *world) {
			q := make(table, 80)
			for i := range q {
				q[i] = []float32{float32(i * i)}
			}
			w.write("a.npy", q.npy())
			w.ok("cne train " + small + " --set graph.k=3 --set data.path=a.npy -o run")
			w.finite("run/embedding.npy", 80, 2)
			for e := range exactGraph(q, 3) {
				if !w.graph("run/graph.npz").edges(same)[e] {
					w.fail("the edge %v is missing", e)
				}
			}
		}),
		property("two-points", func(w *world) {
			w.write("a.npy", p[:2].npy())
			if res := w.run("cne train "+small+" --set graph.k=1 --set data.path=a.npy -o run", effects{refused: true}); res.code == 0 {
				w.finite("run/embedding.npy", 2, 2)
			}
		}),
		property("one-point", func(w *world) {
			w.write("a.npy", p[:1].npy())
			w.refused("cne train "+small+" --set graph.k=1 --set data.path=a.npy -o run", "point")
		}),
		property("k-of-all-points", func(w *world) {
			w.write("a.npy", p[:16].npy())
			w.ok("cne train " + small + " --set data.path=a.npy -o run")
			w.refused("cne train "+small+" --set graph.k=16 --set data.path=a.npy -o run2", "graph.k")
		}),
		property("cosine-of-stretched-points", func(w *world) {
			// Angles do not see how long a row is, nor correlations where its mean lies.
			stretched := p.mapped(func(i, _ int, v float32) float32 { return v * float32(int(1)<<(i%9)) })
			a, b := twins(w, p, stretched, "--set data.scale=none --set graph.metric=cosine")
			w.sameEdges(a, b, same)
			q := coarse(p)
			w.write("c.npy", q.npy())
			w.write("d.npy", q.mapped(func(i, _ int, v float32) float32 { return 4*v + 8*float32(i%5) }).npy())
			w.ok("for x in c d; do cne train " + small + " --set data.scale=none --set graph.metric=correlation --set data.path=$x.npy -o run$x || exit; done")
			if n := differing(w.graph("runc/graph.npz"), w.graph("rund/graph.npz")); n > 4 {
				w.fail("%d edges differ", n) // but for ties of rounded rows
			}
		}),
		property("rows-without-direction", func(w *world) {
			for _, metric := range []string{"cosine", "correlation"} {
				w.write("a.npy", p.mapped(func(i, _ int, v float32) float32 { return v * float32(min(i%7, 1)) }).npy())
				if res := w.run("cne train "+small+" --set data.scale=none --set graph.metric="+metric+" --set data.path=a.npy -o run-"+metric, effects{refused: true}); res.code == 0 {
					w.finite("run-"+metric+"/embedding.npy", len(p), 2)
				} else if !strings.Contains(res.last(), "a.npy") && !strings.Contains(res.last(), "graph.metric") {
					w.fail("the message names neither the file nor the key: %s", res.last())
				}
			}
		}),
		property("points-replaced-behind-a-run", func(w *world) {
			w.write("a.npy", p.npy())
			w.ok("cne train " + small + " --set data.path=a.npy -o run && cne evaluate -q run > out.txt")
			rows := slices.Clone(p)
			slices.Reverse(rows)
			w.write("a.npy", rows.npy())
			w.refused("cne evaluate -q run", "a.npy|points|data.path")
		}),
		property("kept-points-find-themselves", func(w *world) {
			// A table with its points places one of them where it is, or near by.
			w.write("a.npy", p.npy())
			w.ok("cne train -q --epochs 60 --set output.plot=false --set model.keep_data=true --set data.path=a.npy -o run && cne project -q --model run a.npy -o out.npy && cne project -q --model run a.npy -o out2.npy")
			w.same("out.npy", "out2.npy")
			e, got := w.finite("run/embedding.npy", len(p), 2), w.finite("out.npy", len(p), 2)
			far, spread := 0.0, 0.0
			for i := range e {
				far += float64((e[i] - got[i]) * (e[i] - got[i]))
				spread += float64(e[i] * e[i])
			}
			if far > 0.2*spread {
				w.fail("the points are placed %.2f of the embedding's spread away from themselves", math.Sqrt(far/spread))
			}
		}),
		property("thinned-classes", func(w *world) {
			w.write("a.npy", p.npy())
			w.text("l.txt", lines(len(p), func(i int) string { return "abcd"[i%4 : i%4+1] }))
			w.ok("cne train " + small + " --set data.path=a.npy --set data.labels=l.txt --set data.imbalance=linear -o run")
			var kept table
			for _, field := range strings.Fields(string(w.read("run/rows.csv"))) {
				var i int
				if _, err := fmt.Sscanf(field, "%d", &i); err == nil {
					if i < 0 || i >= len(p) {
						w.fail("rows.csv has the row %d", i)
					}
					kept = append(kept, p[i])
				}
			}
			w.finite("run/embedding.npy", len(kept), 2)
			w.write("b.npy", kept.npy())
			w.ok("cne train " + small + " --set data.path=b.npy -o run2")
			w.same("run/embedding.npy", "run2/embedding.npy")
		}),
		property("a-place-of-a-spectrum-again", func(w *world) {
			// cne train makes an embedding of a spectrum again from its configuration, up
			// to how it lies: distances stay.
			w.write("a.npy", p.npy())
			w.ok("cne spectrum -q --epochs 30 --set data.path=a.npy --s 0,1 -o run && cne train -q --config run/s=1/config.yaml -o run2")
			e, f := w.finite("run/s=1/embedding.npy", len(p), 2), w.finite("run2/embedding.npy", len(p), 2)
			distance := func(e []float32, i, j int) float64 {
				return math.Hypot(float64(e[2*i]-e[2*j]), float64(e[2*i+1]-e[2*j+1]))
			}
			for i := range p {
				j := (i + 37) % len(p)
				if a, b := distance(e, i, j), distance(f, i, j); math.Abs(a-b) > 1e-4*(1+a) {
					w.fail("points %d and %d are %v apart in the spectrum, but %v in the run of its configuration", i, j, a, b)
				}
			}
		}),
		property("large-values-unscaled", func(w *world) {
			w.write("a.npy", p.mapped(func(_, _ int, v float32) float32 { return v * 1e37 }).npy())
			w.write("b.npy", p.npy())
			if res := w.run("cne train "+small+" --set data.scale=none --set data.path=a.npy -o run", effects{}); res.code == 0 {
				w.ok("cne train " + small + " --set data.scale=none --set data.path=b.npy -o run2")
				if n := differing(w.graph("run/graph.npz"), w.graph("run2/graph.npz")); n > 20 {
					w.fail("%d edges of points times 1e37 differ, without a word", n)
				}
			}
		}),
		property("small-values-unscaled", func(w *world) {
			w.write("a.npy", p.mapped(func(_, _ int, v float32) float32 { return v * 0x1p-90 }).npy())
			w.write("b.npy", p.npy())
			if res := w.run("cne train "+small+" --set data.scale=none --set data.path=a.npy -o run", effects{}); res.code == 0 && !strings.Contains(res.stderr, "warning") {
				w.ok("cne train " + small + " --set data.scale=none --set data.path=b.npy -o run2")
				if n := differing(w.graph("run/graph.npz"), w.graph("run2/graph.npz")); n > 0 {
					w.fail("%d edges of points times 2^-90 differ, without a word", n)
				}
			}
		}),
		property("denormal-values", func(w *world) {
			w.write("a.npy", p.mapped(func(_, _ int, v float32) float32 { return v * 0x1p-135 }).npy())
			w.write("b.npy", p.npy())
			if res := w.run("cne train "+small+" --set data.path=a.npy -o run", effects{}); res.code == 0 {
				w.finite("run/embedding.npy", len(p), 2)
				if !strings.Contains(res.stderr, "warning") {
					w.ok("cne train " + small + " --set data.path=b.npy -o run2")
					// Denormals have lost bits; near ties may fall otherwise.
					if n := differing(w.graph("run/graph.npz"), w.graph("run2/graph.npz")); n > 40 {
						w.fail("%d edges of points times 2^-135 differ, without a word", n)
					}
				}
			}
		}),
		property("another-seed-is-another-embedding", func(w *world) {
			w.write("a.npy", p.npy())
			w.ok("for s in 0 1; do cne train " + small + " --seed $s --set data.path=a.npy -o run$s || exit; done")
			w.differ("run0/embedding.npy", "run1/embedding.npy")
			w.same("run0/graph.npz", "run1/graph.npz")
		}),
		property("labels-change-nothing", func(w *world) {
			w.write("a.npy", p.npy())
			w.text("l.txt", lines(len(p), func(i int) string { return fmt.Sprint(i % 7) }))
			w.ok("cne train " + small + " --set data.path=a.npy -o run1 && cne train " + small + " --set data.path=a.npy --set data.labels=l.txt -o run2")
			w.same("run1/embedding.npy", "run2/embedding.npy")
		}),
		property("resumed-for-more", func(w *world) {
			// Where the learning rate does not fall, more epochs are the same as more at once.
			w.write("a.npy", p.npy())
			const line = "cne train -q --set output.plot=false --set data.path=a.npy --set train.anneal=none "
			w.ok(line + "--epochs 7 -o run1 && cne train -q --resume run1 --epochs 20 && " + line + "--epochs 20 -o run2")
			w.same("run1/embedding.npy", "run2/embedding.npy")
			w.same("run1/embedding.csv", "run2/embedding.csv")
		}),
		property("holdout-parts", func(w *world) {
			w.write("a.npy", p.npy())
			w.ok("cne train " + small + " --set model.kind=mlp --set data.holdout=0.25 --set data.path=a.npy -o run")
			w.finite("run/holdout.npy", 30, 2)
			w.finite("run/embedding.npy", 90, 2)
			var rows table
			seen := make(map[int]bool)
			for _, field := range strings.Fields(string(w.read("run/holdout_rows.csv"))) {
				var i int
				if _, err := fmt.Sscanf(field, "%d", &i); err == nil {
					if seen[i] || i < 0 || i >= len(p) {
						w.fail("row %d of holdout_rows.csv is there twice, or no row", i)
					}
					seen[i] = true
					rows = append(rows, p[i])
				}
			}
			if len(rows) != 30 {
				w.fail("holdout_rows.csv has %d rows, not 30", len(rows))
			}
			w.write("h.npy", rows.npy())
			w.ok("cne project -q --model run h.npy -o out.npy")
			w.same("out.npy", "run/holdout.npy")
		}),
		property("figures-agree", func(w *world) {
			w.write("a.npy", p.npy())
			w.ok("cne train " + small + " --set data.path=a.npy -o run && cne evaluate -q run -o out.json && cne evaluate -q run/embedding.csv --data a.npy -o out2.json --set quality.k=15")
			text := string(w.read("out.json"))
			for _, key := range []string{"knn_recall", "spearman", "partition_function", "kl"} {
				v := w.figure("run/metrics.json", key)
				if got, ok := number(text, key); !ok || math.Abs(got-v) > 1e-6*math.Abs(v) {
					w.fail("%s is %v in metrics.json, but %v by evaluate", key, v, got)
				}
				if got, ok := number(string(w.read("out2.json")), key); !ok || math.Abs(got-v) > 1e-4*math.Abs(v) {
					w.fail("%s is %v in metrics.json, but %v of embedding.csv", key, v, got)
				}
			}
		}),
		property("figures-of-a-turned-embedding", func(w *world) {
			e := smooth(120, 2)
			w.write("a.npy", p.npy())
			w.write("e.npy", e.npy())
			w.write("f.npy", e.mapped(func(i, j int, _ float32) float32 { return []float32{-e[i][1], e[i][0]}[j] }).npy())
			w.ok("for x in e f; do cne evaluate -q $x.npy --data a.npy -o out$x.json || exit; done")
			for _, key := range []string{"knn_recall", "spearman", "partition_function", "kl"} {
				a, _ := number(string(w.read("oute.json")), key)
				b, ok := number(string(w.read("outf.json")), key)
				if !ok || math.Abs(a-b) > 1e-5*math.Abs(a) {
					w.fail("%s is %v, but %v of the same embedding, turned", key, a, b)
				}
			}
		}),
		property("an-embedding-of-itself-is-perfect", func(w *world) {
			w.write("e.npy", p.npy())
			w.ok("cne evaluate -q e.npy --data e.npy -o out.json")
			for _, key := range []string{"knn_recall", "spearman", "trustworthiness"} {
				if v, ok := number(string(w.read("out.json")), key); !ok || math.Abs(v-1) > 1e-9 {
					w.fail("%s is %v, not 1", key, v)
				}
			}
		}),
		property("figures-are-the-same-twice", func(w *world) {
			w.write("a.npy", p.npy())
			w.ok("cne evaluate -q a.npy --against a.npy -o out1.json && cne evaluate -q a.npy --against a.npy -o out2.json")
			if !bytes.Equal(timeless(w.read("out1.json")), timeless(w.read("out2.json"))) {
				w.fail("the figures of one embedding are not the same twice")
			}
		}),
	}
	for _, options := range []string{"", "--set data.scale=standard", "--set data.scale=none", "--set model.input=pca --set graph.pca=3", "--set model.dtype=float64", "--set model.hidden=[]", "--set model.hidden=[7,1,3] --set model.dim=4", "--set loss.metric=cosine --set model.dim=3"} {
		all = append(all, property("projected-training-points/"+strings.ReplaceAll(strings.TrimSpace(options), "--set ", ""), func(w *world) {
			// A saved network places the points of its training where they are.
			w.write("a.npy", p.npy())
			w.write("a.csv", p.csv(",", "\n"))
			w.ok("cne train " + small + " --set model.kind=mlp " + options + " --set data.path=a.npy -o run && cne project -q --model run a.npy -o out.npy && cne project -q --model run/model.safetensors a.csv -o out2.npy")
			w.same("out.npy", "out2.npy")
			d := 2
			if i := strings.Index(options, "model.dim="); i >= 0 {
				d = int(options[i+len("model.dim=")] - '0')
			}
			a, b := w.finite("out.npy", len(p), d), w.finite("run/embedding.npy", len(p), d)
			for i := range a {
				if math.Abs(float64(a[i]-b[i])) > 1e-5*(1+math.Abs(float64(b[i]))) {
					w.fail("value %d is %v in the embedding, but placed at %v", i, b[i], a[i])
				}
			}
			// One point at a time is the same as all at once.
			w.write("one.npy", p[77:78].npy())
			w.ok("cne project -q --model run one.npy -o out3.npy")
			if !slices.Equal(w.finite("out3.npy", 1, d), a[77*d:78*d]) {
				w.fail("point 77 alone is placed elsewhere than among all")
			}
		}))
	}
	for _, k := range []float32{0x1p-40, 0x1p-3, 0x1p20, 0x1p100} {
		for _, scale := range []string{"unit", "standard"} {
			all = append(all, property(fmt.Sprintf("times-%g-%s", k, scale), func(w *world) {
				// A power of two changes no bit of what is left after scaling.
				twins(w, p, p.mapped(func(_, _ int, v float32) float32 { return v * k }), "--set data.scale="+scale)
				w.same("runa/embedding.npy", "runb/embedding.npy")
				w.same("runa/graph.npz", "runb/graph.npz")
			}))
		}
	}
	return all
}

// smooth returns points whose distances all differ, as far as can be.
func smooth(n, d int) table {
	return blobs(n, d).mapped(func(i, j int, v float32) float32 { return v + float32(math.Sin(float64(i*d+j)*1.7))/3 })
}

// coarse rounds points so that offsets can be added exactly.
func coarse(t table) table {
	return t.mapped(func(_, _ int, v float32) float32 { return float32(math.Round(float64(v)*1024) / 1024) })
}

// differing returns the number of edges that only one of two graphs has.
func differing(a, b graph) int {
	same := func(i int64) int64 { return i }
	x, y := a.edges(same), b.edges(same)
	n := 0
	for e := range x {
		if !y[e] {
			n++
		}
	}
	for e := range y {
		if !x[e] {
			n++
		}
	}
	return n
}

// number returns the first number of a key in a text of JSON.
func number(text, key string) (v float64, ok bool) {
	m := regexp.MustCompile(`"` + key + `":\s*([-+0-9.eE]+)`).FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	_, err := fmt.Sscanf(m[1], "%g", &v)
	return v, err == nil
}
