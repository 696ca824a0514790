package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileTrials are about names, links, rights and odd files.
func fileTrials() []trial {
	p := blobs(60, 4)
	with := func(name string, do func(w *world)) trial {
		return trial{"file/" + name, func(w *world) {
			w.write("x.npy", p.npy())
			do(w)
		}}
	}
	train := fmt.Sprintf(onPoints, "x.npy")
	base := func(w *world) string {
		dir, _ := w.base("points", func(u *world) { u.write("x.npy", p.npy()) }, train)
		return dir
	}
	var all []trial
	for what, name := range map[string]string{
		"spaces": "a b  c.npy", "leading-dash": "-x.npy", "leading-dashes": "--set.npy", "percent": "%s%n%d.npy", "newline": "a\nb.npy", "escape": "\x1b[31mred.npy",
		"quotes": `a"b'c.npy`, "unicode": "日本 ü🙂.npy", "right-to-left": "\u202egnp.npy", "not-utf8": "a\xff\xfe.npy", "255-bytes": strings.Repeat("n", 251) + ".npy",
		"dots": "...npy.npy", "backslash": `a\nb.npy`, "star": "*.npy", "hash": "#x.npy", "colon": "a: b.npy", "dollar": "$HOME`id`.npy", "number": "0.1", "builtin": "builtin:x.npy",
	} {
		all = append(all, trial{"file/name/" + what, func(w *world) {
			w.write(name, p.npy())
			dir := base(w)
			list := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x1b", `\e`).Replace(name)
			res := w.run("cne train "+small+" -o run --set "+quote(`data.path=["`+list+`"]`), effects{refused: true})
			switch {
			case res.code == 0:
				w.sameAs(dir, "run/embedding.npy")
				w.ok("cne evaluate -q run > out.txt && cne plot run -o out.png && cne train -q --resume run")
			case what != "not-utf8" && what != "builtin": // a configuration is text, and knows builtin: by that word
				w.fail("a file of this name is refused: %s", res.last())
			}
			// And one that is not there.
			w.must(w.removeFile(name))
			if res := w.run("cne train "+small+" -o run2 --set "+quote(`data.path=["`+list+`"]`), effects{refused: true}); res.code == 0 {
				w.fail("a file that is not there is embedded")
			}
		}})
		if what == "not-utf8" {
			continue
		}
		all = append(all, trial{"file/output/" + what, func(w *world) {
			w.write("x.npy", p.npy())
			dir := base(w)
			w.ok("mkdir runs && cne train " + small + " --set data.path=x.npy -o " + quote("runs/"+name))
			w.sameAs(dir, "x.npy")
			if !bytes.Equal(w.read("runs/"+name+"/embedding.npy"), mustRead(w, filepath.Join(dir, "run/embedding.npy"))) {
				w.fail("the embedding is another one")
			}
			w.ok("cne train -q --resume " + quote("runs/"+name))
			w.ok("cne evaluate -q " + quote("runs/"+name) + " > out.txt && cne plot " + quote("runs/"+name) + " -o out.png")
		}})
	}
	// Paths for the run folder.
	for _, o := range []struct {
		name, folder string
		code         int
		message      string
	}{
		{"is-the-points", "x.npy", 1, "x.npy"},
		{"below-a-file", "x.npy/run", 1, "x.npy"},
		{"device", "/dev/null", 1, "/dev/null"},
		{"process-folder", "/proc/self/run", 1, "/proc/self/run"},
		{"name-too-long", strings.Repeat("r", 300), 1, "name"},
		{"path-too-long", strings.Repeat("run/", 1200), 1, "name"},
		{"deep", strings.Repeat("run/", 50), 0, ""},
		{"trailing-slashes", "run///", 0, ""},
		{"dots", "run/../run2/./x", 0, ""},
		{"in-a-link", "runlink/r", 0, ""},
		{"a-link-to-a-folder", "runlink", 0, ""},
		{"a-dangling-link", "rundangling", 1, "rundangling"},
		{"a-looping-link", "runloop/r", 1, "runloop"},
		{"a-fifo", "runpipe", 1, "runpipe"},
		{"unwritable", "locked/run", 1, "locked"},
	} {
		all = append(all, with("folder/"+o.name, func(w *world) {
			w.ok("mkdir outdir && ln -s outdir runlink && ln -s nowhere rundangling && ln -s runloop runloop && mkfifo runpipe")
			w.must(os.Mkdir(w.path("locked"), 0o755))
			w.must(os.Chmod(w.path("locked"), 0o555))
			if o.code == 0 {
				w.ok("cne train " + small + " --set data.path=x.npy -o " + quote(o.folder))
				return
			}
			w.ends("cne train "+small+" --set data.path=x.npy -o "+quote(o.folder), o.code, o.message, effects{refused: true})
		}))
	}
	// Odd things in the place of points.
	for _, o := range []struct{ name, make, path, message string }{
		{"missing", "true", "out.npy", "out.npy"},
		{"folder", "mkdir out.npy", "out.npy", "out.npy"},
		{"dangling-link", "ln -s nowhere out.npy", "out.npy", "out.npy"},
		{"looping-link", "ln -s out.npy out.npy", "out.npy", "out.npy"},
		{"forbidden", "cp x.npy out.npy && chmod 000 out.npy", "out.npy", "out.npy"},
		{"in-a-forbidden-folder", "mkdir out && cp x.npy out/x.npy && chmod 000 out", "out/x.npy", "out/x.npy"},
		{"below-a-file", "true", "x.npy/y.npy", "x.npy"},
		{"null-device", "true", "/dev/null", "/dev/null.*empty"},
		{"folder-loop", "mkdir out && ln -s ../out out/out", "out", "out"},
		{"a-run", "cne train --set data.path=x.npy " + small + " -o run0", "run0", "run0"},
	} {
		all = append(all, with("points/"+o.name, func(w *world) {
			w.ok(o.make)
			w.refused("cne train "+small+" -o run --set "+quote("data.path="+o.path), o.message)
			w.refused("cne evaluate -q x.npy --data "+quote(o.path), o.message+"|--data")
		}))
	}
	all = append(all,
		with("points/endless", func(w *world) {
			w.tool("prlimit")
			w.ends("timeout --foreground --preserve-status -s INT 2 cne train "+small+" -o run --set data.path=/dev/zero", 1, "", effects{refused: true})
		}),
		with("points/from-a-pipe", func(w *world) {
			dir := base(w)
			w.ok("mkfifo outpipe; cat x.npy > outpipe & cne train " + small + " --set data.path=outpipe -o run")
			w.sameAs(dir, "run/embedding.npy")
		}),
		with("points/from-stdin", func(w *world) {
			dir := base(w)
			w.ok("cne train " + small + " --set data.path=/dev/stdin -o run < x.npy && cat x.npy | cne train " + small + " --set data.path=/dev/stdin -o run2")
			w.sameAs(dir, "run/embedding.npy")
			w.same("run/embedding.npy", "run2/embedding.npy")
		}),
		with("points/through-links", func(w *world) {
			dir := base(w)
			w.ok("ln -s x.npy out1 && ln -s out1 out2 && cne train " + small + " --set data.path=out2 -o run")
			w.sameAs(dir, "run/embedding.npy")
		}),
		with("points/in-pieces", func(w *world) {
			dir := base(w)
			w.write("a.npy", p[:17].npy())
			w.write("b.csv", p[17:40].csv(",", "\n"))
			w.write("c.npz", npz(member{"x.npy", p[40:].npy()}))
			w.ok("cne train " + small + " --set data.path=[a.npy,b.csv,c.npz] -o run")
			w.sameAs(dir, "run/embedding.npy")
		}),
		with("output/full-stdout", func(w *world) {
			for _, line := range []string{"cne config", "cne version", "cne --help", "cne train --help", "cne simclr config", "cne completion bash", "cne evaluate -q x.npy --against x.npy", "cne evaluate -q --json x.npy --against x.npy"} {
				w.refused(line+" > /dev/full", "space|write|stdout")
			}
		}),
		with("output/full-stdout-of-a-run", func(w *world) {
			dir := base(w)
			w.breaks(strings.Replace(train, " -q", "", 1)+" > /dev/full", "space|write|stdout")
			w.sameAs(dir, "run/embedding.npy")
		}),
		with("output/full-stderr", func(w *world) {
			dir := base(w)
			w.ok(strings.Replace(train, " -q", "", 1) + " 2> /dev/full")
			w.sameAs(dir, "run/embedding.npy")
		}),
		with("output/full-disk", func(w *world) {
			w.namespaces()
			for _, size := range []string{"8k", "16k", "24k", "40k"} {
				w.ends("mkdir -p out && unshare -rm bash -c 'mount -t tmpfs -o size="+size+" tmpfs out && { cne train --epochs 4 -q --set data.path=x.npy -o out/run; s=$?; find out -name .cne-\\* | grep . && exit 3; exit $s; }'", 1, "space|out/run", effects{})
			}
		}),
		with("output/room-made-and-resumed", func(w *world) {
			dir := base(w)
			w.namespaces()
			w.ok("mkdir out && unshare -rm bash -c 'mount -t tmpfs -o size=1m tmpfs out && head -c 1020k /dev/zero > out/filler && { ! cne train " + small + " --set data.path=x.npy -o out/run 2> /dev/null; } && rm out/filler && " +
				"{ cne train -q --resume out/run 2> /dev/null || cne train " + small + " --set data.path=x.npy -o out/run; } && cp out/run/embedding.npy run.npy'")
			if !bytes.Equal(w.read("run.npy"), mustRead(w, filepath.Join(dir, "run/embedding.npy"))) {
				w.fail("the embedding is another one")
			}
		}),
		with("output/read-only-disk", func(w *world) {
			w.namespaces()
			w.ends("mkdir out && unshare -rm bash -c 'mount -t tmpfs -o ro tmpfs out && cne train "+small+" --set data.path=x.npy -o out/run'", 1, "read-only|out/run", effects{})
		}),
		with("output/full-disk-for-positions", func(w *world) {
			w.namespaces()
			w.write("big.npy", blobs(20000, 4).npy())
			w.write("m.safetensors", safetensors(network()...))
			w.ends("mkdir out && unshare -rm bash -c 'mount -t tmpfs -o size=64k tmpfs out && { cne project -q --model m.safetensors big.npy -o out/p.npy; s=$?; ls -A out | grep . && exit 3; exit $s; }'", 1, "space|out/p.npy", effects{})
		}),
		with("output/folder-becomes-read-only", func(w *world) {
			w.ok(train)
			w.must(os.Chmod(w.path("run"), 0o555))
			w.refused("cne train -q --resume run --epochs 9", "run")
			w.refused("cne plot -q run", "run")
			w.ok("cne plot -q run -o out.png && cne evaluate -q run > out.txt")
			w.must(os.Chmod(w.path("run"), 0o777))
		}),
		with("output/files-read-only", func(w *world) {
			// A file that is replaced by another needs no right to write in it.
			dir := base(w)
			w.ok(train + " && chmod 444 run/* && cne train -q --resume run")
			w.sameAs(dir, "run/embedding.npy")
		}),
		with("output/umask-777", func(w *world) {
			w.breaks("umask 777; "+train, "run")
		}),
		with("output/umask-077", func(w *world) {
			w.ok("umask 077; " + train)
			if info, err := os.Stat(w.path("run/embedding.npy")); err != nil || info.Mode().Perm()&0o077 != 0 {
				w.fail("others may read embedding.npy: %v, %v", info.Mode(), err)
			}
		}),
		with("output/foreign-files-stay", func(w *world) {
			w.ok(train)
			w.text("run/notes.txt", "mine")
			w.text("run/embedding-old.npy", "mine")
			w.text("run/snapshots/mine.npy", "mine")
			w.ok(train + " --force --seed 3 && cne train -q --resume run --epochs 5")
			for _, name := range []string{"run/notes.txt", "run/embedding-old.npy", "run/snapshots/mine.npy"} {
				if string(w.read(name)) != "mine" {
					w.fail("%s has changed", name)
				}
			}
		}),
		with("output/points-in-the-folder", func(w *world) {
			w.write("run/x.npy", p.npy())
			w.ok("cne train " + small + " --set data.path=run/x.npy -o run --force")
			if !bytes.Equal(w.read("run/x.npy"), p.npy()) {
				w.fail("the points in the run folder have changed")
			}
		}),
		with("output/points-are-a-file-of-the-run", func(w *world) {
			w.write("run/embedding.npy", p.npy())
			w.ends("cne train "+small+" --set data.path=run/embedding.npy -o run --force", 1, "embedding.npy", effects{refused: true})
			w.refused("cne train "+small+" --set data.path=run/embedding.npy -o run", "run")
		}),
		with("output/labels-are-a-file-of-the-run", func(w *world) {
			w.text("run/embedding.csv", lines(60, func(i int) string { return fmt.Sprint(i % 2) }))
			w.refused("cne train "+small+" --set data.path=x.npy --set data.labels=run/embedding.csv -o run --force", "embedding.csv")
		}),
		with("output/folder-of-files-in-the-way", func(w *world) {
			w.must(w.mkdir("run/embedding.npy/x"))
			w.run(train, effects{})
			if !w.exists("run/embedding.npy/x") {
				w.fail("a folder has been replaced")
			}
		}),
		with("output/hard-links-keep-their-content", func(w *world) {
			w.ok(train + " && ln run/embedding.npy outlink.npy && cne train -q --resume run --epochs 9")
			w.differ("outlink.npy", "run/embedding.npy")
			w.finite("outlink.npy", 60, 2)
		}),
	)
	return all
}

// namespaces skips the trial if no file system can be mounted here.
func (w *world) namespaces() {
	w.tool("unshare")
	if res, err := w.start("mkdir -p outmount && unshare -rm mount -t tmpfs tmpfs outmount; s=$?; rmdir outmount; exit $s"); err != nil || res.code != 0 {
		w.skip("no file system can be mounted here: %s", res.last())
	}
}

// mustRead returns the content of a file outside the world.
func mustRead(w *world, path string) []byte {
	content, err := os.ReadFile(path)
	w.must(err)
	return content
}

// runTrials are about run folders in careless hands.
func runTrials() []trial {
	p := blobs(60, 4)
	files := func(w *world) {
		w.write("x.csv", withLabels(p))
	}
	const line = "cne train -q --epochs 12 --set checkpoint.epochs=5 --set output.snapshots=6 --html --set data.path=x.csv --set data.label_column=kind -o run"
	whole := func(w *world) string {
		dir, _ := w.base("a whole run", files, line)
		files(w)
		return dir
	}
	// finished makes the run in the trial's folder without carrying it out again.
	finished := func(w *world) string {
		dir := whole(w)
		w.ok("cp -r " + quote(filepath.Join(dir, "run")) + " run")
		return dir
	}
	leaves := append(slices.Clone(trained), "run/embedding.html", "run/embedding.png", "run/snapshots/epoch-0006.npy", "run/snapshots/epoch-0012.npy")
	var all []trial
	for _, name := range []string{"cache.safetensors", "checkpoint.safetensors", "checkpoint.previous.safetensors", "config.yaml", "embedding.csv", "embedding.html", "embedding.npy", "embedding.png", "graph.npz", "metrics.json", "metrics.jsonl", "model.safetensors", "snapshots/epoch-0006.npy"} {
		for _, d := range []struct {
			what   string
			damage func(b []byte) []byte
		}{
			{"lost", nil},
			{"emptied", func([]byte) []byte { return nil }},
			{"cut", func(b []byte) []byte { return b[:len(b)/2] }},
			{"of-noise", func(b []byte) []byte { return noise(len(b)) }},
		} {
			all = append(all, trial{"run/" + name + "/" + d.what, func(w *world) {
				// What is left of the run is resumed to what it was, or refused in words.
				dir := finished(w)
				if d.damage == nil {
					w.must(w.removeFile("run/" + name))
				} else {
					w.write("run/"+name, d.damage(w.read("run/"+name)))
				}
				res := w.run("cne train -q --resume run", effects{refused: true})
				if res.code == 0 {
					expect := leaves
					if strings.HasPrefix(name, "snapshots/") || name == "graph.npz" || name == "metrics.jsonl" {
						// These are of the course of the run, which is over.
						expect = slices.DeleteFunc(slices.Clone(leaves), func(f string) bool { return f == "run/"+name })
					}
					w.sameRun(dir, expect)
				}
				w.run("cne evaluate -q run > out.txt", effects{})
				w.run("cne plot -q run -o out.png", effects{})
				w.run("cne plot -q --animate run -o out.gif", effects{})
				w.run("cne plot -q --metrics run -o outm.png", effects{})
				w.run("cne project -q --model run x.csv --label-column kind -o out.npy", effects{})
			}})
		}
	}
	careless := func(name string, do func(w *world)) trial {
		return trial{"careless/" + name, func(w *world) {
			files(w)
			do(w)
		}}
	}
	changed := func(name, settings, message string) trial {
		return careless("resumed-with/"+name, func(w *world) {
			finished(w)
			w.refused("cne train -q --resume run "+settings, message)
			w.ok("cne train -q --resume run")
		})
	}
	all = append(all,
		changed("another-seed", "--seed 3", "seed"),
		changed("another-rate", "--set train.lr=0.3", "train.lr"),
		changed("fewer-epochs", "--epochs 3", "train.epochs"),
		changed("another-loss", "--set loss.name=nc", "loss.name"),
		changed("another-k", "--set graph.k=7", "graph.k"),
		changed("another-scale", "--set data.scale=none", "data.scale"),
		changed("another-width", "--set model.dim=3", "model.dim"),
		changed("a-configuration", "--config <(echo 'train: {lr: 0.3}')", "train.lr"),
		changed("the-environment", "--set loss.negatives=9", "loss.negatives"),
		careless("resumed-with/other-points", func(w *world) {
			w.ok(line)
			w.write("x.csv", withLabels(p.mapped(func(i, j int, v float32) float32 {
				if i == 59 && j == 3 {
					return v + 1.0/64
				}
				return v
			})))
			w.refused("cne train -q --resume run --epochs 20", "x.csv|points|data")
		}),
		careless("resumed-with/other-labels", func(w *world) {
			w.ok(line)
			w.write("x.csv", bytes.Replace(w.read("x.csv"), []byte(",a\n"), []byte(",z\n"), 1))
			w.run("cne train -q --resume run --epochs 20", effects{refused: true})
		}),
		careless("resumed-with/points-in-another-order", func(w *world) {
			w.ok(line)
			rows := slices.Clone(p)
			slices.Reverse(rows)
			w.write("x.csv", withLabels(rows))
			w.refused("cne train -q --resume run --epochs 20", "x.csv|points|data")
		}),
		careless("resumed-with/points-gone", func(w *world) {
			w.ok(line + " && cp x.csv out.csv")
			w.must(w.removeFile("x.csv"))
			w.refused("cne train -q --resume run --epochs 20", "x.csv")
			w.ok("cne train -q --resume run --epochs 20 --set data.path=out.csv")
		}),
		careless("taken-folder", func(w *world) {
			finished(w)
			w.refused(line, "--force")
			w.refused("cne spectrum -q --epochs 12 --set data.path=x.csv --set data.label_column=kind --s 0,1 -o run", "--force|another run")
		}),
		careless("forced-to-be-a-spectrum", func(w *world) {
			w.ok(line)
			w.ok("cne spectrum -q --epochs 12 --set data.path=x.csv --set data.label_column=kind --s 0,1 -o run --force")
			w.refused("cne train -q --resume run", "spectrum")
			w.refused("cne evaluate -q run", "spectrum|s=0")
			w.refused("cne project -q --model run x.csv --label-column kind -o out.npy", "spectrum|model|s=0")
			w.refused("cne plot -q --animate run -o out.gif", "snapshots|spectrum")
			w.ok(line + " --force")
			w.ok("cne evaluate -q run > out.txt && cne train -q --resume run")
		}),
		careless("simclr-on-a-run-of-points", func(w *world) {
			images, _ := pictures(12, 8)
			w.write("i.npy", images)
			w.ok(line)
			w.refused("cne simclr evaluate -q run", "train|images|simclr")
			w.refused("cne simclr features -q run i.npy -o out.npy", "points|images|simclr")
			w.refused("cne simclr pretrain -q --resume run", "cne train")
		}),
		careless("train-on-a-run-of-images", func(w *world) {
			images, _ := pictures(24, 8)
			w.write("i.npy", images)
			w.ok(fmt.Sprintf(onImages, "i.npy"))
			w.refused("cne train -q --resume run", "simclr")
			w.refused("cne evaluate -q run", "simclr|embedding|images")
			w.refused("cne project -q --model run x.csv -o out.npy", "images|simclr")
			w.refused("cne plot -q run", "embedding|images|simclr")
		}),
		careless("points-of-another-width", func(w *world) {
			w.ok(strings.Replace(line, "--html", "--set model.kind=mlp", 1))
			w.write("y.npy", blobs(60, 5).npy())
			w.refused("cne project -q --model run y.npy -o out.npy", "y.npy.*5.*4")
		}),
		careless("points-with-a-gap", func(w *world) {
			w.ok(strings.Replace(line, "--html", "--set model.kind=mlp", 1))
			nan := p.mapped(func(i, j int, v float32) float32 {
				if i == 7 && j == 2 {
					return float32(math.NaN())
				}
				return v
			})
			w.write("y.npy", nan.npy())
			w.write("x.npy", p.npy())
			w.refused("cne project -q --model run y.npy -o out.npy", "y.npy.*7.*(NaN|finite)|row 8.*NaN")
			w.ok("cne project -q --skip-bad --model run y.npy -o out.npy && cne project -q --model run x.npy -o out2.npy")
			a, b := w.read("out.npy"), w.read("out2.npy")
			if !bytes.Equal(a[:128+56], b[:128+56]) || !bytes.Equal(a[128+64:], b[128+64:]) {
				w.fail("the other points are placed elsewhere")
			}
		}),
		careless("table-without-points", func(w *world) {
			finished(w)
			w.refused("cne project -q --model run x.csv --label-column kind -o out.npy", "model.keep_data")
		}),
		careless("embeddings-of-two-lengths", func(w *world) {
			w.write("a.npy", blobs(60, 2).npy())
			w.write("b.npy", blobs(59, 2).npy())
			w.refused("cne evaluate -q a.npy b.npy --data x.csv", "b.npy.*59|59.*60|columns|number")
			w.refused("cne evaluate -q a.npy --against b.npy", "59")
			w.refused("cne evaluate -q b.npy --graph "+"x.csv", "x.csv|graph")
		}),
		careless("runs-of-different-points", func(w *world) {
			w.ok(line)
			w.write("y.npy", blobs(60, 4).mapped(func(i, j int, v float32) float32 { return v + float32(i%5) }).npy())
			w.ok("cne train " + small + " --set data.path=y.npy -o run2")
			w.refused("cne evaluate -q run run2", "data.path")
		}),
		careless("cache-of-another-run", func(w *world) {
			dir := whole(w)
			w.write("y.npy", blobs(60, 4).mapped(func(i, j int, v float32) float32 { return v * float32(1+i%2) }).npy())
			w.ok("cne train " + small + " --set data.path=y.npy -o run2 && mkdir run && cp run2/cache.safetensors run/")
			w.ok(line)
			w.sameRun(dir, leaves)
		}),
		careless("checkpoint-of-another-run", func(w *world) {
			dir := whole(w)
			w.ok(line + " && " + strings.Replace(line, "-o run", "--seed 8 -o run2", 1) + " && cp run2/checkpoint.safetensors run/ && rm -f run/checkpoint.previous.safetensors")
			if res := w.run("cne train -q --resume run", effects{}); res.code == 0 {
				w.sameRun(dir, leaves)
			}
		}),
		careless("moved", func(w *world) {
			dir := whole(w)
			w.ok(line + " && mkdir out && mv run out/elsewhere && cd out && cne train -q --resume elsewhere --set data.path=../x.csv && cne evaluate -q elsewhere --data ../x.csv --set data.label_column=kind > ../out.txt; s=$?; cd ..; mv out/elsewhere run; exit $s")
			w.sameRun(dir, []string{"run/embedding.npy", "run/graph.npz"})
		}),
		careless("its-own-configuration", func(w *world) {
			dir := whole(w)
			w.ok(line + " && cne train -q --config run/config.yaml -o run2 && mv run run1 && mv run2 run")
			w.sameRun(dir, []string{"run/embedding.npy", "run/embedding.csv", "run/graph.npz", "run/embedding.png"})
		}),
		careless("results-over-results", func(w *world) {
			finished(w)
			w.write("m.safetensors", safetensors(network()...))
			w.write("y.npy", p.npy())
			for _, out := range []string{"run/embedding.npy", "./run/../run/embedding.npy", "run/embedding.csv"} {
				w.refused("cne project -q --model m.safetensors y.npy -o "+out, "embedding")
			}
			w.refused("cne project -q --model m.safetensors y.npy -o y.npy", "y.npy")
			w.refused("cne project -q --model m.safetensors y.npy -o out.npy --plot run/embedding.png", "embedding.png")
			w.misused("cne plot -q run -o run/model.safetensors", "png|svg")
			w.refused("cne evaluate -q run -o run/metrics.json", "metrics.json")
			w.refused("cne project -q --model m.safetensors y.npy -o missing/out.npy", "missing")
		}),
		careless("everything-at-once-in-one-folder", func(w *world) {
			dir := whole(w)
			w.ok("for i in 1 2 3 4; do (" + line + " --force || true) 2>> outlog & done; wait")
			w.ok("cne train -q --resume run")
			w.sameRun(dir, leaves)
		}),
		careless("other-option-for-the-same-result", func(w *world) {
			// What is only written or measured leaves the embedding as it is.
			dir := whole(w)
			for i, o := range []string{"--set output.metrics_every=1", "--set output.tensorboard=true", "--set model.keep_data=true", "--set quality.spearman=0", "--set quality.recall=false --set quality.kl=false", "--set checkpoint.epochs=1", "--set graph.cache=false", "--log-format json", "--set train.log_every=5", "--device cpu"} {
				w.ok(strings.Replace(line, "-o run", fmt.Sprintf("-o run%d ", i), 1) + " " + o)
				if !bytes.Equal(w.read(fmt.Sprintf("run%d/embedding.npy", i)), mustRead(w, filepath.Join(dir, "run/embedding.npy"))) {
					w.fail("%s changes the embedding", o)
				}
			}
		}),
	)
	return all
}

// plotTrials are about pictures and pages.
func plotTrials() []trial {
	var all []trial
	values := func(n, d int, f func(i, j int) float64) table {
		return blobs(n, d).mapped(func(i, j int, _ float32) float32 { return float32(f(i, j)) })
	}
	for _, e := range []struct {
		name string
		t    table
	}{
		{"one-point", values(1, 2, func(i, j int) float64 { return 3 })},
		{"two-points", values(2, 2, func(i, j int) float64 { return float64(i) })},
		{"all-equal", values(50, 2, func(i, j int) float64 { return 7 })},
		{"on-a-line", values(50, 2, func(i, j int) float64 { return float64(i * (1 - j)) })},
		{"one-dimension", values(50, 1, func(i, j int) float64 { return float64(i * i) })},
		{"three-dimensions", values(50, 3, func(i, j int) float64 { return math.Sin(float64(i * (j + 1))) })},
		{"300-dimensions", values(50, 300, func(i, j int) float64 { return math.Sin(float64(i * (j + 1))) })},
		{"huge", values(50, 2, func(i, j int) float64 { return 3e38 * math.Cos(float64(i+j)) })},
		{"denormal", values(50, 2, func(i, j int) float64 { return 1e-44 * float64(i*(j+1)) })},
		{"one-far-away", values(50, 2, func(i, j int) float64 { return math.Pow(float64(i), 20*float64(i/49)) })},
		{"equal-but-far", values(50, 2, func(i, j int) float64 { return 1e8 + 8*float64(i*(j+1)%3) })},
		{"one-with-nan", values(50, 2, func(i, j int) float64 { return math.Log(float64(i)) })},
		{"nothing-but-nan", values(50, 2, func(i, j int) float64 { return math.NaN() })},
	} {
		all = append(all, trial{"plot/" + e.name, func(w *world) {
			w.write("x.npy", e.t.npy())
			for _, end := range []string{"png", "svg", "html"} {
				res := w.run("cne plot -q x.npy -o out."+end, effects{refused: true})
				if res.code != 0 && !strings.Contains(res.last(), "x.npy") {
					w.fail("the message does not name the file: %s", res.last())
				}
				if res.code == 0 {
					w.drawn("out." + end)
				}
			}
			w.run("cne evaluate -q x.npy --against x.npy > outfigures.txt", effects{})
			if bytes.Contains(w.read("outfigures.txt"), []byte("NaN")) {
				w.fail("a figure is NaN")
			}
		}})
	}
	titles := map[string]string{
		"markup": `</title><script>alert(1)</script>&amp;"'`, "percent": "%s %n %d", "control": "a\x1b[31mb\x07c\td", "newlines": "a\nb\nc", "long": strings.Repeat("very ", 2000),
		"unicode": "日本 🙂 é \u202eabc", "not-utf8": "a\xffb", "blank": "   ", "nul-like": `\0 \n`,
	}
	for name, title := range titles {
		all = append(all, trial{"plot/title/" + name, func(w *world) {
			w.write("x.npy", blobs(30, 2).npy())
			for _, end := range []string{"png", "svg", "html"} {
				if res := w.run("cne plot -q x.npy -o out."+end+" --title "+quote(title), effects{refused: true}); res.code == 0 {
					w.drawn("out." + end)
				}
			}
			if w.exists("out.html") && bytes.Contains(w.read("out.html"), []byte("<script>alert(1)")) {
				w.fail("the title has become code in the page")
			}
		}})
	}
	for _, l := range []struct{ name, options, message string }{
		{"too-few-labels", "--labels l.txt", "l.txt.*59|59.*60"},
		{"labels-missing", "--labels nothing.txt", "nothing.txt"},
		{"too-few-images", "-o out.html --images i.npy", "12.*60"},
		{"too-small", "-o out.png --width 0.01", "width|room"},
		{"over-its-input", "-o x.npy", "x.npy"},
		{"over-its-labels", "--labels m.svg -o m.svg", "m.svg"},
		{"into-a-missing-folder", "-o missing/out.png", "missing"},
		{"onto-a-folder", "-o folder.png", "folder.png"},
		{"label-column-of-an-array", "--label-column kind", "column"},
		{"two-inputs-without-output", "y.npy", "--output"},
		{"animated-points", "--animate", "x.npy"},
	} {
		all = append(all, trial{"plot/refused/" + l.name, func(w *world) {
			images, _ := pictures(12, 8)
			w.write("x.npy", blobs(60, 2).npy())
			w.write("y.npy", blobs(60, 2).npy())
			w.write("i.npy", images)
			w.text("l.txt", lines(59, func(i int) string { return "a" }))
			w.text("m.svg", lines(60, func(i int) string { return "a" }))
			w.must(w.mkdir("folder.png/x"))
			res := w.run("cne plot -q x.npy "+l.options, effects{refused: true})
			if res.code == 0 {
				w.fail("it is not refused")
			}
			if !strings.Contains(res.last(), "cne: ") || !matches(l.message, res.last()) {
				w.fail("the last message does not match %q: %s", l.message, res.last())
			}
		}})
	}
	return append(all,
		trial{"plot/many-classes", func(w *world) {
			w.write("x.npy", blobs(3000, 2).npy())
			w.text("l.txt", lines(3000, func(i int) string { return fmt.Sprintf("class %d", i) }))
			w.ok("cne plot -q x.npy --labels l.txt -o out.png && cne plot -q x.npy --labels l.txt -o out.svg && cne plot -q x.npy --labels l.txt -o out.html")
			w.drawn("out.png")
			w.drawn("out.svg")
		}},
		trial{"plot/many-inputs", func(w *world) {
			w.write("x.npy", blobs(30, 2).npy())
			w.ok("cne plot -q " + strings.Repeat("x.npy ", 60) + "-o out.png --columns 7")
			w.drawn("out.png")
		}},
		trial{"plot/same-bytes-twice", func(w *world) {
			w.write("x.csv", withLabels(blobs(60, 2)))
			for _, end := range []string{"png", "svg", "html"} {
				w.ok("cne plot -q x.csv --label-column kind -o out1." + end + " && cne plot -q x.csv --label-column kind -o out2." + end)
				w.same("out1."+end, "out2."+end)
			}
		}},
	)
}

// drawn fails unless a picture can be read.
func (w *world) drawn(name string) {
	content := w.read(name)
	switch filepath.Ext(name) {
	case ".png":
		if _, err := png.Decode(bytes.NewReader(content)); err != nil {
			w.fail("%s is no picture: %v", name, err)
		}
	case ".svg":
		d := xml.NewDecoder(bytes.NewReader(content))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				w.fail("%s is no XML: %v", name, err)
			}
		}
		if bytes.Contains(content, []byte("NaN")) || bytes.Contains(content, []byte("Inf")) {
			w.fail("%s has coordinates that are no numbers", name)
		}
	}
}
