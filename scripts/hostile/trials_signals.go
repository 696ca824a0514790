package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A long run is one that takes long enough to be disturbed, and that can be resumed.
type longRun struct {
	name   string
	files  func(w *world)
	line   string // the command line, with the folder run
	resume string
	leaves []string // files that have to be those of an undisturbed run
}

// trained is what the command train leaves.
var trained = []string{"run/embedding.npy", "run/embedding.csv", "run/model.safetensors", "run/graph.npz", "run/config.yaml", "run/metrics.jsonl", "run/metrics.json"}

// longRuns are of every kind.
func longRuns() []longRun {
	points := func(n, d int) func(w *world) {
		return func(w *world) {
			w.write("x.csv", withLabels(blobs(n, d)))
		}
	}
	const data = " -q --set data.path=x.csv --set data.label_column=kind --set checkpoint.epochs=20 --set output.plot=false"
	images, _ := pictures(48, 8)
	return []longRun{
		{"table", points(400, 6), "cne train" + data + " --epochs 800 -o run", "cne train -q --resume run", trained},
		{"nc-float64", points(200, 6), "cne train" + data + " --epochs 350 --set loss.name=nc --set model.dtype=float64 --set train.momentum=0.5 -o run", "cne train -q --resume run", trained},
		{"phases", points(300, 6), "cne train" + data + " --set train.phases='[{epochs: 300, z_bar: uniform}, {epochs: 400, s: 0, lr: 0.5}]' --set output.metrics_every=100 --set output.snapshots=100 -o run", "cne train -q --resume run",
			append(slices.Clone(trained), "run/snapshots/epoch-0100.npy", "run/snapshots/epoch-0700.npy")},
		{"network-with-holdout", points(200, 6), "cne train" + data + " --epochs 30 --set model.kind=mlp --set data.holdout=0.2 -o run", "cne train -q --resume run",
			append(slices.Clone(trained), "run/holdout.npy", "run/holdout.csv", "run/holdout_rows.csv")},
		{"full-batches", points(200, 6), "cne train" + data + " --epochs 150 --set loss.name=infonce --set loss.negatives=full -o run", "cne train -q --resume run", trained},
		{"spectrum", points(300, 6), "cne spectrum" + data + " --epochs 250 --s 0,1,2 -o run", "cne spectrum -q --resume run",
			[]string{"run/spectrum.csv", "run/explorer.html", "run/s=0/embedding.npy", "run/s=1/embedding.npy", "run/s=2/embedding.npy"}},
		{"simclr", func(w *world) { w.write("i.npy", images) },
			"cne simclr pretrain " + strings.Replace(tiny, "train.epochs=2", "train.epochs=40", 1) + " --set data.path=i.npy --set checkpoint.epochs=3 -o run", "cne simclr pretrain -q --resume run",
			[]string{"run/model.safetensors", "run/metrics.jsonl"}},
	}
}

// withLabels returns points as text with a column kind.
func withLabels(t table) []byte {
	var b strings.Builder
	for j := range t[0] {
		fmt.Fprintf(&b, "x%d,", j)
	}
	b.WriteString("kind\n")
	for i, row := range t {
		fmt.Fprintf(&b, "%s,%s\n", strings.Join(fieldsOf(row), ","), "abc"[i%3:i%3+1])
	}
	return []byte(b.String())
}

// signalTrials are about runs that signals hit.
func signalTrials() []trial {
	var all []trial
	for _, l := range longRuns() {
		for _, how := range []struct{ name, signal string }{{"interrupted", "INT"}, {"terminated", "TERM"}, {"hung-up", "HUP"}, {"killed", "KILL"}, {"killed-early", "KILL"}} {
			all = append(all, trial{"signal/" + l.name + "/" + how.name, func(w *world) {
				dir, took := l.undisturbed(w)
				l.files(w)
				for i := range 4 {
					share := 0.9 * w.rng.Float64()
					if how.name == "killed-early" {
						share = 0.15 * w.rng.Float64()
					}
					delay := max(time.Duration(share*float64(took)), time.Millisecond)
					// Bash has what runs in the background ignore interrupts, hence timeout; of a
					// kill, it would not wait for the end.
					line := fmt.Sprintf("timeout --foreground --preserve-status -s %s %.3f %s", how.signal, delay.Seconds(), l.next(w))
					if how.signal == "KILL" {
						line = fmt.Sprintf("%s & p=$!; sleep %.3f; kill -KILL $p 2> /dev/null; wait $p", l.next(w), delay.Seconds())
					}
					res := w.run(line, effects{codes: []int{128 + 1, 128 + 2, 128 + 9, 128 + 15}})
					if res.code == 0 {
						break
					}
					if res.code == 1 && !strings.Contains(res.last(), "interrupted") {
						w.fail("after signal %d: %s", i+1, res.last())
					}
				}
				w.ok(l.next(w))
				w.sameRun(dir, l.leaves)
			}})
		}
		all = append(all, trial{"signal/" + l.name + "/stopped-and-continued", func(w *world) {
			dir, took := l.undisturbed(w)
			l.files(w)
			w.ok(fmt.Sprintf("%s & p=$!; for i in 1 2 3; do sleep %.3f; kill -STOP $p; sleep 0.05; kill -CONT $p; done 2>/dev/null; wait $p", l.line, took.Seconds()/5))
			w.sameRun(dir, l.leaves)
		}})
	}
	table := longRuns()[0]
	return append(all,
		trial{"signal/two-at-once", func(w *world) {
			// Two runs in one folder: one of them is refused, and harms nothing.
			dir, took := table.undisturbed(w)
			table.files(w)
			w.ends(fmt.Sprintf("%s & sleep %.3f; %s; s=$?; wait $!; test $? = 0 && test $s = 1 && exit 1", table.line, took.Seconds()/3, table.line), 1, "run", effects{})
			w.sameRun(dir, table.leaves)
		}},
		trial{"signal/resumed-while-it-runs", func(w *world) {
			dir, took := table.undisturbed(w)
			table.files(w)
			w.ends(fmt.Sprintf("%s & sleep %.3f; %s; s=$?; wait $!; test $? = 0 && test $s = 1 && exit 1", table.line, took.Seconds()/3, table.resume), 1, "run", effects{})
			w.sameRun(dir, table.leaves)
		}},
		trial{"signal/folder-vanishes", func(w *world) {
			_, took := table.undisturbed(w)
			table.files(w)
			res := w.run(fmt.Sprintf("%s & p=$!; sleep %.3f; rm -rf run; wait $p", table.line, took.Seconds()/3), effects{})
			if res.code == 0 && !w.exists("run/embedding.npy") {
				w.fail("the run succeeded, but its results are nowhere")
			}
		}},
		trial{"signal/points-vanish", func(w *world) {
			// The points are read once; that they vanish then changes nothing.
			dir, took := table.undisturbed(w)
			table.files(w)
			w.write("runpoints.csv", w.read("x.csv"))
			res := w.run(fmt.Sprintf("%s --set data.path=runpoints.csv & p=$!; sleep %.3f; rm runpoints.csv; wait $p", table.line, took.Seconds()/2), effects{})
			if res.code == 0 {
				w.sameRun(dir, []string{"run/embedding.npy"})
			}
		}},
		trial{"signal/fifo-without-writer", func(w *world) {
			w.ends("mkfifo outpipe && timeout --foreground --preserve-status -s INT 0.5 cne train -q --set data.path=outpipe -o run", 1, "interrupted", effects{})
		}},
		trial{"signal/writer-that-stalls", func(w *world) {
			w.write("x.csv", blobs(60, 4).csv(",", "\n"))
			w.ends("mkfifo outpipe; (head -c 500 x.csv; sleep 5) > outpipe & timeout --foreground --preserve-status -s TERM 0.5 cne train -q --set data.path=outpipe -o run", 1, "interrupted", effects{})
		}},
		trial{"signal/labels-that-stall", func(w *world) {
			w.write("x.csv", blobs(60, 4).csv(",", "\n"))
			w.ends("mkfifo outpipe; (echo a; sleep 5) > outpipe & timeout --foreground --preserve-status -s INT 0.5 cne train -q --set data.path=x.csv --set data.labels=outpipe -o run", 1, "interrupted", effects{})
		}},
		trial{"signal/writer-that-gives-up", func(w *world) {
			w.write("x.npy", blobs(60, 4).npy())
			w.ends("mkfifo outpipe; (head -c 300 x.npy; sleep 0.2) > outpipe & cne train -q --set data.path=outpipe -o run", 1, "outpipe.*(ends|truncated)", effects{})
		}},
		trial{"signal/reader-of-messages-leaves", func(w *world) {
			dir, _ := table.undisturbed(w)
			table.files(w)
			// The run goes on, and says at its end that its results had no reader, either.
			w.run(strings.Replace(table.line, " -q", "", 1)+" 2>&1 | head -n 1 > /dev/null; exit ${PIPESTATUS[0]}", effects{codes: []int{128 + 13}})
			w.sameRun(dir, table.leaves)
		}},
		trial{"signal/ignored-hang-up", func(w *world) {
			dir, took := table.undisturbed(w)
			table.files(w)
			w.ok(fmt.Sprintf("trap '' HUP; %s & p=$!; sleep %.3f; kill -HUP $p; wait $p", table.line, took.Seconds()/3))
			w.sameRun(dir, table.leaves)
		}},
		trial{"signal/second-interrupt", func(w *world) {
			_, took := table.undisturbed(w)
			table.files(w)
			res := w.run(fmt.Sprintf("%s & p=$!; { sleep %.3f; kill -TERM $p; kill -TERM $p; } 2> /dev/null; wait $p", table.line, took.Seconds()/3), effects{codes: []int{128 + 15}})
			if res.code != 0 {
				w.ok(table.next(w))
			}
		}},
		trial{"signal/project-killed", func(w *world) {
			// A half-written file of positions is never under its name.
			w.write("x.csv", blobs(20000, 6).csv(",", "\n"))
			w.write("m.safetensors", safetensors(tensor{"0.weight", []int{2, 6}, make([]float32, 12)}, tensor{"0.bias", []int{2}, []float32{1, 2}}))
			for range 5 {
				res := w.run(fmt.Sprintf("mkdir -p out; cne project -q --model m.safetensors x.csv -o out/p.npy & p=$!; sleep %.3f; kill -KILL $p 2> /dev/null; wait $p", 0.005+0.03*w.rng.Float64()), effects{codes: []int{128 + 9}})
				if res.code == 0 {
					w.finite("out/p.npy", 20000, 2)
				} else if w.exists("out/p.npy") { // complete, if killed as it was about to end
					w.finite("out/p.npy", 20000, 2)
				}
				w.must(w.removeFile("out/p.npy"))
			}
			w.ok("cne project -q --model m.safetensors x.csv -o out/p.npy")
			w.finite("out/p.npy", 20000, 2)
		}},
	)
}

// undisturbed returns the folder in which the run was left alone, and how long it took.
func (l longRun) undisturbed(w *world) (dir string, took time.Duration) {
	return w.base("long run: "+l.name, l.files, l.line)
}

// next returns what a user would type to go on.
func (l longRun) next(w *world) string {
	if w.exists("run/config.yaml") {
		return l.resume
	}
	return l.line
}

// sameRun fails unless files are those of an undisturbed run, up to what they say of
// time and memory.
func (w *world) sameRun(dir string, names []string) {
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(dir, name))
		w.must(err)
		got := w.read(name)
		if name == "run/config.yaml" { // says from where relative paths count
			got, want = bytes.ReplaceAll(got, []byte(w.dir), nil), bytes.ReplaceAll(want, []byte(dir), nil)
		}
		if strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".json") {
			got, want = timeless(got), timeless(want)
		}
		if !bytes.Equal(got, want) {
			w.fail("%s is not that of an undisturbed run", name)
		}
	}
}

// timeless returns records without what they say of time and memory.
func timeless(content []byte) []byte {
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(content))
	for {
		var record map[string]any
		if d.Decode(&record) != nil {
			return out.Bytes()
		}
		maps.DeleteFunc(record, func(key string, _ any) bool {
			return strings.Contains(key, "second") || strings.Contains(key, "rss") || strings.Contains(key, "time")
		})
		text, err := json.Marshal(record)
		if err != nil {
			panic(err) // what was decoded can be encoded
		}
		out.Write(append(text, '\n'))
	}
}
