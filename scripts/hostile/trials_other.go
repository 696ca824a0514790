package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// mtx returns a Matrix Market file of counts with a header line and entries.
func mtx(head, sizes string, entries ...string) []byte {
	return []byte("%%MatrixMarket " + head + "\n%\n" + sizes + "\n" + strings.Join(entries, "\n") + "\n")
}

// counts returns the entries of a matrix of genes × cells in which every cell has some.
func counts(genes, cells int) []string {
	var entries []string
	for c := range cells {
		for g := range genes {
			if n := (7*c + 3*g + c*g) % 5; n > 1 {
				entries = append(entries, fmt.Sprintf("%d %d %d", g+1, c+1, n+(c%3)*(g%4)))
			}
		}
	}
	return entries
}

// soundCounts returns a matrix that can be embedded.
func soundCounts(genes, cells int) []byte {
	e := counts(genes, cells)
	return mtx("matrix coordinate integer general", fmt.Sprintf("%d %d %d", genes, cells, len(e)), e...)
}

// tenX makes a folder of 10x, with some files replaced; nil leaves one out.
func tenX(w *world, others map[string][]byte) {
	files := map[string][]byte{
		"matrix.mtx":   soundCounts(30, 40),
		"barcodes.tsv": []byte(lines(40, func(i int) string { return fmt.Sprintf("CELL%d-1", i) })),
		"features.tsv": []byte(lines(30, func(i int) string { return fmt.Sprintf("ENS%d\tgene%d\tGene Expression", i, i) })),
	}
	for name, content := range files {
		if other, ok := others[name]; ok {
			content = other
		}
		if content != nil {
			w.write("cells/"+name, content)
		}
	}
}

// countTrials are about Matrix Market and folders of 10x.
func countTrials() []trial {
	const integer = "matrix coordinate integer general"
	e := counts(30, 40)
	sizes := fmt.Sprintf("30 40 %d", len(e))
	with := func(entry string) []byte {
		return mtx(integer, sizes, slices.Concat(e[:100], []string{entry}, e[101:])...)
	}
	all := badFiles("counts", onPoints, []bad{
		{"no-banner.mtx", []byte(sizes + "\n" + strings.Join(e, "\n")), "line|number"},
		{"dense.mtx", mtx("matrix array real general", "2 2", "1", "2", "3", "4"), "array"},
		{"pattern.mtx", mtx("matrix coordinate pattern general", "2 2 1", "1 1"), "pattern"},
		{"complex.mtx", mtx("matrix coordinate complex general", "2 2 1", "1 1 1 1"), "complex"},
		{"symmetric.mtx", mtx("matrix coordinate integer symmetric", "2 2 1", "1 1 1"), "symmetric"},
		{"vector.mtx", mtx("vector coordinate integer general", "2 2 1", "1 1 1"), "vector|first line"},
		{"no-sizes.mtx", []byte("%%MatrixMarket " + integer + "\n% nothing\n"), "ends"},
		{"two-sizes.mtx", mtx(integer, "30 40", e...), "line 3"},
		{"negative-sizes.mtx", mtx(integer, "-30 40 10", e...), "line 3"},
		{"sizes-1e18.mtx", mtx(integer, "1000000000000000000 40 10", e...), "rows"},
		{"sizes-1e30.mtx", mtx(integer, "1e30 40 10", e...), "line 3"},
		{"entries-1e15.mtx", mtx(integer, "30 40 1000000000000000", e...), "entries"},
		{"cells-1e9.mtx", mtx(integer, "3 1000000000 2", "1 1 1", "2 2 2"), "cells"},
		{"no-entries.mtx", mtx(integer, "30 40 0"), "0 counts|at least"},
		{"an-entry-missing.mtx", mtx(integer, sizes, e[1:]...), "ends after"},
		{"an-entry-more.mtx", mtx(integer, sizes, append(slices.Clone(e), "1 1 1")...), "more entries"},
		{"row-0.mtx", with("0 5 1"), "line 104.*outside|line 104"},
		{"row-31.mtx", with("31 5 1"), "line 104.*outside"},
		{"column-minus-1.mtx", with("3 -1 1"), "line 104"},
		{"negative-count.mtx", with("3 5 -1"), "line 104.*below 0"},
		{"nan-count.mtx", with("3 5 nan"), "line 104"},
		{"word-count.mtx", with("3 5 many"), "line 104"},
		{"huge-count.mtx", with("3 5 1e400"), "line 104"},
		{"four-fields.mtx", with("3 5 1 1"), "line 104"},
		{"half-row.mtx", with("3.5 5 1"), "line 104"},
		{"long-line.mtx", with(strings.Repeat("9", 3<<20)), "line 104"},
		{"control.mtx", with("3 \x1b[31m 1"), "line 104"},
		{"truncated.mtx.gz", cut(gz(soundCounts(30, 40)), -9), "gzip|ends"},
	})
	folders := []struct {
		name    string
		others  map[string][]byte
		message string
	}{
		{"no-matrix", map[string][]byte{"matrix.mtx": nil}, "matrix.mtx"},
		{"too-few-barcodes", map[string][]byte{"barcodes.tsv": []byte("A\nB\n")}, "barcodes.tsv.*(2|40)"},
		{"too-many-features", map[string][]byte{"features.tsv": []byte(lines(31, func(i int) string { return fmt.Sprint("g", i) }))}, "features.tsv.*3[01]"},
		{"empty-features", map[string][]byte{"features.tsv": {}}, "features.tsv"},
	}
	for _, f := range folders {
		all = append(all, trial{"counts/folder/" + f.name, func(w *world) {
			tenX(w, f.others)
			w.refused(fmt.Sprintf(onPoints, "cells")+" --set graph.k=5", f.message)
		}})
	}
	for name, others := range map[string]map[string][]byte{
		"no-features": {"features.tsv": nil}, "no-barcodes": {"barcodes.tsv": nil},
		"odd-features": {"features.tsv": []byte(lines(30, func(i int) string { return fmt.Sprint("\x00\xff\x1b[2J", i) }))},
		"same-names":   {"features.tsv": []byte(lines(30, func(i int) string { return "ENS\tgene\tGene Expression" }))},
	} {
		all = append(all, trial{"counts/odd-folder/" + name, func(w *world) {
			// Without names genes count by their place; names that do not tell them apart
			// must not put one in another's place.
			tenX(w, others)
			line := "cne train " + small + " --set model.kind=mlp --set graph.k=5 --set data.path=cells -o run"
			if res := w.run(line, effects{refused: true}); res.code == 0 {
				w.ok("cne project -q --model run cells -o out.npy")
				w.same("out.npy", "run/embedding.npy")
			}
		}})
	}
	return append(all,
		trial{"counts/the-order-of-entries-does-not-matter", func(w *world) {
			w.write("a.mtx", soundCounts(30, 40))
			reversed := slices.Clone(e)
			slices.Reverse(reversed)
			w.write("b.mtx", mtx(integer, sizes, reversed...))
			w.write("c.mtx.gz", gz(bytes.ReplaceAll(mtx(strings.ToUpper("matrix coordinate real general"), sizes, e...), []byte("\n"), []byte("\r\n"))))
			for i, name := range []string{"a.mtx", "b.mtx", "c.mtx.gz"} {
				w.ok(fmt.Sprintf("cne train "+small+" --set graph.k=5 --set data.path=%s -o run%d", name, i))
			}
			w.same("run0/embedding.npy", "run1/embedding.npy")
			w.same("run0/embedding.npy", "run2/embedding.npy")
		}},
		trial{"counts/an-entry-twice", func(w *world) {
			// scipy adds such entries up; to take one of them alone would be silent.
			twice := slices.Clone(e)
			twice[1] = twice[0]
			w.write("x.mtx", mtx(integer, sizes, twice...))
			res := w.run(fmt.Sprintf(onPoints, "x.mtx")+" --set graph.k=5", effects{refused: true})
			if res.code == 0 {
				once := slices.Clone(e)
				var g, c, n int
				fmt.Sscan(strings.ReplaceAll(once[0], " ", "\n"), &g, &c, &n)
				once[0] = fmt.Sprintf("%d %d %d", g, c, 2*n)
				once = slices.Delete(once, 1, 2)
				w.write("y.mtx", mtx(integer, fmt.Sprintf("30 40 %d", len(once)), once...))
				w.ok("cne train " + small + " --set graph.k=5 --set data.path=y.mtx -o run2")
				w.same("run/embedding.npy", "run2/embedding.npy")
			}
		}},
		trial{"counts/genes-in-another-order", func(w *world) {
			// New counts find their genes by name, whatever their order.
			tenX(w, nil)
			w.ok("cne train " + small + " --set model.kind=mlp --set graph.k=5 --set data.path=cells -o run")
			var reversed []string
			for _, entry := range e {
				var g, c, n int
				fmt.Sscan(strings.ReplaceAll(entry, " ", "\n"), &g, &c, &n)
				reversed = append(reversed, fmt.Sprintf("%d %d %d", 31-g, c, n))
			}
			w.write("other/matrix.mtx", mtx(integer, sizes, reversed...))
			w.write("other/barcodes.tsv", w.read("cells/barcodes.tsv"))
			w.text("other/features.tsv", lines(30, func(i int) string { return fmt.Sprintf("ENS%d\tgene%d\tGene Expression", 29-i, 29-i) }))
			w.ok("cne project -q --model run cells -o out1.npy && cne project -q --model run other -o out2.npy")
			w.same("out1.npy", "out2.npy")
		}},
		trial{"counts/other-genes-for-the-model", func(w *world) {
			tenX(w, nil)
			w.ok("cne train " + small + " --set model.kind=mlp --set graph.k=5 --set data.path=cells -o run")
			w.write("other/matrix.mtx", soundCounts(30, 40))
			w.write("other/barcodes.tsv", w.read("cells/barcodes.tsv"))
			w.text("other/features.tsv", lines(30, func(i int) string { return fmt.Sprintf("MUS%d\tmouse%d\tGene Expression", i, i) }))
			w.refused("cne project -q --model run other -o out.npy", "gene")
		}},
		trial{"counts/empty-cells", func(w *world) {
			// A cell without counts has no library size to divide by.
			var some []string
			for _, entry := range e {
				if f := strings.Fields(entry); f[1] != "7" {
					some = append(some, entry)
				}
			}
			w.write("x.mtx", mtx(integer, fmt.Sprintf("30 40 %d", len(some)), some...))
			if res := w.run(fmt.Sprintf(onPoints, "x.mtx")+" --set graph.k=5", effects{refused: true}); res.code == 0 {
				w.finite("run/embedding.npy", 40, 2)
			}
		}},
	)
}

// finite fails unless an array of float32 has a shape and finite values.
func (w *world) finite(name string, n, d int) []float32 {
	content := w.read(name)
	if want := fmt.Sprintf("(%d, %d)", n, d); !bytes.Contains(content[:min(len(content), 256)], []byte(want)) {
		w.fail("%s has not the shape %s", name, want)
	}
	if len(content) != 128+4*n*d {
		w.fail("%s has %d bytes, not %d", name, len(content), 128+4*n*d)
	}
	values := make([]float32, n*d)
	for i := range values {
		b := content[128+4*i:]
		values[i] = math.Float32frombits(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
		if v := float64(values[i]); math.IsNaN(v) || math.IsInf(v, 0) {
			w.fail("value %d of %s is %v", i, name, v)
		}
	}
	return values
}

// tiny is a network that pretrains in a moment.
const tiny = "--set network.width=2 --set views.size=8 --set train.epochs=2 --set train.warm_up=0 --set train.batch_size=2 --set monitor.every=0 --set evaluate.at_end=false -q"

// onImages is the command line for files of images.
const onImages = "cne simclr pretrain " + tiny + " --set data.path=%s -o run"

// imageTrials are about pictures, arrays of them and CIFAR-10.
func imageTrials() []trial {
	images, labels := pictures(24, 8)
	record := slices.Concat([]byte{3}, make([]byte, 3072))
	batch := bytes.Repeat(record, 20)
	sound := picture(8, 8, 1)
	all := badFiles("images", onImages, []bad{
		{"one-byte-short.bin", cut(batch, -1), "multiple"},
		{"class-200.bin", patched(batch, 5*3073, 200), "class 200"},
		{"empty.bin", nil, "empty|no images"},
		{"no-batches.tar", tarred(member{"readme", []byte("x")}), "data_batch_1.bin|holds no"},
		{"evil-path.tar", tarred(member{"../../data_batch_1.bin", batch}, member{"/etc/data_batch_2.bin", batch}), "missing|holds no"},
		{"same-batch-twice.tar", tarred(member{"a/data_batch_1.bin", batch}, member{"a/data_batch_1.bin", batch}), "twice|missing"},
		{"cut.tar", cut(tarred(member{"data_batch_1.bin", batch}), 9000), "damaged|ends"},
		{"text.tar", []byte("hello"), "no tar"},
		{"one.png", sound, "single image"},
		{"float-images.npy", npy("<f4", "(4, 8, 8, 3)", make([]byte, 4*4*192)), "bytes"},
		{"two-d.npy", npy("|u1", "(4, 192)", make([]byte, 4*192)), "shape"},
		{"channels-first.npy", npy("|u1", "(4, 3, 8, 8)", make([]byte, 4*192)), "transpose"},
		{"alpha.npy", npy("|u1", "(3, 8, 8, 4)", make([]byte, 3*256)), "4 values per pixel"},
		{"no-images.npy", npy("|u1", "(0, 8, 8, 3)", nil), "no images"},
		{"cut-images.npy", cut(images, -10), "ends|truncated"},
		{"huge-images.npy", npy("|u1", "(1000000, 1000000, 1000000, 3)", make([]byte, 999)), "large|ends|truncated"},
		{"overflowing-images.npy", npy("|u1", "(4294967296, 65536, 65536, 3)", make([]byte, 999)), "impossible shape"},
		{"two-values.npy", npy("|u1", "(3, 8, 8, 2)", make([]byte, 3*128)), "2 values per pixel.*greyscale"},
		{"labels-too-few.npz", npz(member{"images.npy", images}, member{"labels.npy", npy("|u1", "(3,)", []byte{0, 1, 2})}), "3 labels"},
		{"points.csv", blobs(20, 4).csv(",", "\n"), "no images"},
		{"model.safetensors", safetensors(tensor{"x", []int{1}, []float32{1}}), "no images|neither"},
	})
	folders := []struct {
		name    string
		files   func(w *world)
		message string
	}{
		{"empty", func(w *world) { w.must(w.mkdir("data")) }, "no images"},
		{"one-picture", func(w *world) { w.write("data/a.png", sound) }, "train.batch_size.*1 images"},
		{"empty-class", func(w *world) { w.must(w.mkdir("data/b")); w.write("data/a/1.png", sound) }, "data/b"},
		{"picture-beside-train", func(w *world) {
			w.write("data/train/a/1.png", sound)
			w.write("data/test/a/1.png", sound)
			w.write("data/2.png", sound)
		}, "2.png.*train"},
		{"cut-picture", func(w *world) { w.write("data/a/1.png", sound); w.write("data/a/2.png", cut(sound, -20)) }, "2.png"},
		{"empty-picture", func(w *world) { w.write("data/a/1.png", sound); w.write("data/a/2.png", nil) }, "2.png.*empty"},
		{"text-as-picture", func(w *world) { w.write("data/a/1.png", sound); w.text("data/a/2.jpg", "hello") }, "2.jpg.*neither"},
		{"gigantic-claim", func(w *world) {
			w.write("data/a/2.png", sound)
			w.write("data/a/1.png", patched(sound, 16, 0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff))
		}, "1.png"},
		{"no-pixels", func(w *world) {
			w.write("data/a/1.png", patched(sound, 16, 0, 0, 0, 0))
			w.write("data/a/2.png", sound)
		}, "1.png"},
		{"two-sizes", func(w *world) { w.write("data/a/1.png", sound); w.write("data/b/1.png", picture(9, 8, 2)) }, "data.size"},
		{"other-kinds", func(w *world) { w.write("data/a/1.png", sound); w.text("data/a/2.webp", "RIFF") }, "2.webp"},
		{"control-in-name", func(w *world) {
			w.write("data/a/1.png", sound)
			w.text("data/a/\x1b[2J\n2.png", "x")
		}, "neither|cannot be read"},
	}
	for _, f := range folders {
		all = append(all, trial{"images/folder/" + f.name, func(w *world) {
			f.files(w)
			w.refused(fmt.Sprintf(onImages, "data"), f.message)
		}})
	}
	return append(all,
		trial{"images/order-and-names-of-folders", func(w *world) {
			// An array of the same images, in the order of the names, gives the same network.
			for i := range 24 {
				w.write(fmt.Sprintf("data/class %d/%02d é.png", i/8, i), picture(8, 8, uint64(i)))
			}
			w.ok(fmt.Sprintf(onImages, "data"))
			w.ok("cp -r data outcopy && cne simclr pretrain " + tiny + " --set data.path=./outcopy/ -o run2")
			w.ok("cne simclr features -q run data -o out1.npy && cne simclr features -q run2 data -o out2.npy")
			w.same("out1.npy", "out2.npy")
		}},
		trial{"images/one-image", func(w *world) {
			w.write("x.npy", npy("|u1", "(1, 8, 8, 3)", make([]byte, 192)))
			w.refused(fmt.Sprintf(onImages, "x.npy"), "train.batch_size|images")
		}},
		trial{"images/batch-larger-than-all", func(w *world) {
			w.write("x.npy", images)
			w.refused(fmt.Sprintf(onImages, "x.npy")+" --set train.batch_size=25", "train.batch_size")
		}},
		trial{"images/all-the-same", func(w *world) {
			w.write("x.npy", npy("|u1", "(24, 8, 8, 3)", make([]byte, 24*192)))
			if res := w.run(fmt.Sprintf(onImages, "x.npy"), effects{}); res.code == 0 {
				w.ok("cne simclr features -q run x.npy -o out.npy")
				w.finite("out.npy", 24, 16)
			}
		}},
		trial{"images/features-agree-however-they-come", func(w *world) {
			w.write("x.npy", images)
			w.write("y.npz", zipped(zip.Deflate, member{"images.npy", images}, member{"labels.npy", labels}))
			w.ok(fmt.Sprintf(onImages, "x.npy"))
			w.ok("cne simclr features -q run x.npy -o out1.npy && cne simclr features -q run/model.safetensors y.npz -o out2.npy --set network.width=2 --set views.size=8")
			w.same("out1.npy", "out2.npy")
		}},
		trial{"images/evaluation-twice", func(w *world) {
			w.write("y.npz", npz(member{"images.npy", images}, member{"labels.npy", labels}))
			w.ok(fmt.Sprintf(onImages, "y.npz"))
			w.refused("cne simclr evaluate run -q", "evaluate.(test|k)|test")
			w.ok("cne simclr evaluate run -q --set evaluate.test=6 --set evaluate.k=3 -o out1.json && cne simclr evaluate run -q --set evaluate.test=6 --set evaluate.k=3 -o out2.json")
			w.same("out1.json", "out2.json")
		}},
	)
}

// network returns a sound network of one linear layer from 4 values to 2.
func network() []tensor {
	return []tensor{{"0.weight", []int{2, 4}, []float32{1, 0, 0, 0, 0, 1, 0, 0}}, {"0.bias", []int{2}, []float32{0, 0}}}
}

// modelTrials are about files of networks.
func modelTrials() []trial {
	nan := network()
	nan[0].values = slices.Clone(nan[0].values)
	nan[0].values[3] = float32(math.NaN())
	gap := []tensor{{"0.weight", []int{3, 4}, make([]float32, 12)}, {"2.weight", []int{2, 5}, make([]float32, 10)}, {"0.bias", []int{3}, make([]float32, 3)}, {"2.bias", []int{2}, make([]float32, 2)}}
	content := little([]float32{1, 2, 3, 4, 5, 6, 7, 8})
	head := func(text string) []byte { return tensors(text, content) }
	entry := func(dtype, shape, offsets string) []byte {
		return head(`{"0.weight":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}}`)
	}
	all := badFiles("model", "", nil)
	for _, f := range []bad{
		{"empty.safetensors", nil, "ends|empty|header"},
		{"four-bytes.safetensors", []byte{1, 2, 3, 4}, "ends|header"},
		{"header-of-2e63.safetensors", slices.Concat(little(uint64(1)<<63), content), "header"},
		{"header-beyond-the-end.safetensors", slices.Concat(little(uint64(1000)), content), "header"},
		{"no-json.safetensors", head("hello, world"), "JSON|begin"},
		{"json-list.safetensors", head("[1,2,3]"), "JSON|object|begin"},
		{"deep-json.safetensors", head(strings.Repeat(`{"a":`, 50000)), "header|JSON|key"},
		{"twice-the-same-key.safetensors", head(`{"a":{"dtype":"F32","shape":[8],"data_offsets":[0,32]},"a":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}}`), "twice"},
		{"offsets-beyond.safetensors", entry("F32", "[2,4]", "[0,64]"), "offset|ends|bytes|tensor"},
		{"offsets-backwards.safetensors", entry("F32", "[2,4]", "[32,0]"), "offset|bytes|tensor"},
		{"offsets-negative.safetensors", entry("F32", "[2,4]", "[-32,0]"), "whole number|offset"},
		{"shape-negative.safetensors", entry("F32", "[-2,-4]", "[0,32]"), "whole number|shape"},
		{"shape-overflowing.safetensors", entry("F32", "[4294967296,4294967296]", "[0,32]"), "shape|elements"},
		{"shape-other-than-bytes.safetensors", entry("F32", "[3,4]", "[0,32]"), "bytes"},
		{"unknown-dtype.safetensors", entry("F99", "[2,4]", "[0,32]"), "F99|dtype"},
		{"control-dtype.safetensors", entry(`\u001b[2J\n`, "[2,4]", "[0,32]"), "dtype|type"},
		{"half-a-hole.safetensors", entry("F32", "[4]", "[16,32]"), "offset|hole|gap|byte|begin"},
		{"no-tensors.safetensors", head("{}"), "tensor|byte|network|model"},
		{"integers.safetensors", entry("I64", "[1,4]", "[0,32]"), "I64|dtype|network|float|linear|bias"},
		{"nan-weights.safetensors", safetensors(nan...), "finite|NaN"},
		{"layers-do-not-fit.safetensors", safetensors(gap...), "2.weight|fit|width|values|3.*5|5.*3"},
		{"bias-alone.safetensors", safetensors(network()[1]), "0.weight|weight|linear|network"},
		{"truncated.safetensors", cut(safetensors(network()...), -1), "offset|ends|bytes|tensor"},
		{"trailing.safetensors", append(safetensors(network()...), 0), "byte|tensor|behind|more"},
		{"other-names.safetensors", safetensors(tensor{"encoder.block\x07.weight", []int{2, 4}, make([]float32, 8)}), "network|linear|layer|weight"},
		{"points-as-model.npy", blobs(60, 4).npy(), "safetensors|header|model"},
	} {
		all = append(all, trial{"model/" + f.name, func(w *world) {
			w.write("x.npy", blobs(60, 4).npy())
			w.write(f.name, f.content)
			if res := w.refused("cne project -q --model "+f.name+" x.npy -o out.npy", f.message); !strings.Contains(res.last(), f.name) {
				w.fail("the message does not name the file: %s", res.last())
			}
		}})
	}
	damaged := func(name, file string, damage func(w *world, b []byte) []byte, line, message string) trial {
		return trial{"model/run/" + name, func(w *world) {
			w.write("x.npy", blobs(60, 4).npy())
			w.ok("cne train " + small + " --set data.path=x.npy --set model.kind=mlp --set model.hidden=[8] -o run")
			w.write(file, damage(w, w.read(file)))
			w.refused(line, message)
		}}
	}
	flip := func(w *world, b []byte) []byte {
		i := len(b) - 1 - w.rng.IntN(200)
		return patched(b, i, b[i]^0x10)
	}
	return append(all,
		trial{"model/foreign-network-places-points", func(w *world) {
			p := blobs(60, 4)
			w.write("x.npy", p.npy())
			w.write("m.safetensors", safetensors(network()...))
			w.ok("cne project -q --model m.safetensors x.npy -o out.npy")
			got := w.finite("out.npy", 60, 2)
			for i := range p {
				if got[2*i] != p[i][0] || got[2*i+1] != p[i][1] {
					w.fail("point %d is at (%v, %v), not at (%v, %v)", i, got[2*i], got[2*i+1], p[i][0], p[i][1])
				}
			}
		}},
		damaged("a-bit-flipped", "run/model.safetensors", flip, "cne project -q --model run x.npy -o out.npy", "model.safetensors.*(damaged|checksum|digest|sum)|model.safetensors"),
		damaged("cut", "run/model.safetensors", func(_ *world, b []byte) []byte { return cut(b, -64) }, "cne project -q --model run x.npy -o out.npy", "model.safetensors"),
		damaged("both-checkpoints-cut", "run/checkpoint.safetensors", func(w *world, b []byte) []byte {
			w.must(w.removeFile("run/checkpoint.previous.safetensors"))
			return cut(b, -1)
		}, "cne train -q --resume run --epochs 9", "checkpoint"),
		damaged("checkpoint-is-the-model", "run/checkpoint.safetensors", func(w *world, b []byte) []byte {
			w.must(w.removeFile("run/checkpoint.previous.safetensors"))
			return w.read("run/model.safetensors")
		}, "cne train -q --resume run --epochs 9", "checkpoint"),
		damaged("metrics-no-json", "run/metrics.json", func(*world, []byte) []byte { return []byte("{") }, "cne evaluate -q run", "metrics.json"),
		damaged("embedding-cut", "run/embedding.npy", func(w *world, b []byte) []byte {
			w.must(w.removeFile("run/embedding.csv"))
			return cut(b, -3)
		}, "cne evaluate -q run", "embedding.npy"),
		damaged("embedding-of-fewer", "run/embedding.npy", func(w *world, b []byte) []byte {
			w.must(w.removeFile("run/embedding.csv"))
			return blobs(59, 2).npy()
		}, "cne evaluate -q run", "59.*60|60.*59"),
		damaged("records-no-json", "run/metrics.jsonl", func(*world, []byte) []byte { return []byte("{\"epoch\": 1}\nhello\n") }, "cne plot --metrics run -o out.png", "metrics.jsonl"),
	)
}

// graphTrials are about graph.file.
func graphTrials() []trial {
	indptr, indices, data := ring(60)
	sound := csr(60, indptr, indices, data)
	int32s := func(v []int32, at int, to int32) []int32 {
		v = slices.Clone(v)
		v[at] = to
		return v
	}
	floats := func(at int, to float32) []float32 {
		v := slices.Clone(data)
		v[at] = to
		return v
	}
	other := func(name string, content []byte) []byte {
		return csrOf(map[string][]byte{name: content}, 60, indptr, indices, data)
	}
	var all []trial
	for _, f := range []bad{
		{"no-indptr.npz", other("indptr.npy", nil), "indptr"},
		{"no-indices.npz", other("indices.npy", nil), "indices"},
		{"no-shape.npz", other("shape.npy", nil), "shape"},
		{"no-format.npz", other("format.npy", nil), "format"},
		{"csc.npz", other("format.npy", npy("|S3", "()", []byte("csc"))), "csr|csc"},
		{"pickled-format.npz", other("format.npy", npy("|O", "()", []byte("\x80\x04."))), "format"},
		{"falling.npz", csr(60, int32s(indptr, 10, 30), indices, data), "fall"},
		{"starts-at-2.npz", csr(60, int32s(indptr, 0, 2), indices, data), "start"},
		{"ends-early.npz", csr(60, int32s(indptr, 60, 118), indices, data), "120|118"},
		{"index-60.npz", csr(60, indptr, int32s(indices, 7, 60), data), "59|column"},
		{"index-negative.npz", csr(60, indptr, int32s(indices, 7, -1), data), "negative|column"},
		{"self-loop.npz", csr(60, indptr, int32s(indices, 7, 3), data), "itself"},
		{"fewer-weights.npz", csr(60, indptr, indices, data[1:]), "data"},
		{"nan-weight.npz", csr(60, indptr, indices, floats(3, float32(math.NaN()))), "NaN|finite"},
		{"no-edges.npz", csr(60, make([]int32, 61), nil, nil), "no edges|number"},
		{"other-points.npz", csr(61, append(slices.Clone(indptr), 120), indices, data), "61.*60|60.*61"},
		{"not-square.npz", other("shape.npy", npy("<i8", "(2,)", little([]int64{60, 61}))), "square"},
		{"shape-negative.npz", other("shape.npy", npy("<i8", "(2,)", little([]int64{-60, -60}))), "shape"},
		{"shape-huge.npz", other("shape.npy", npy("<i8", "(2,)", little([]int64{1 << 40, 1 << 40}))), "shape"},
		{"indices-promise-more.npz", other("indices.npy", npy("<i4", "(1000000000000,)", little(indices))), "indices"},
		{"indices-of-floats.npz", other("indices.npy", npy("<f4", "(120,)", little(data))), "indices"},
		{"points.npz", npz(member{"x.npy", blobs(60, 4).npy()}), "missing|csr|scipy"},
		{"cut.npz", cut(sound, -50), "npz|zip"},
		{"not-an-archive.npz", []byte("hello"), "npz"},
	} {
		all = append(all, trial{"graph/" + f.name, func(w *world) {
			w.write("x.npy", blobs(60, 4).npy())
			w.write(f.name, f.content)
			res := w.refused(fmt.Sprintf(onPoints, "x.npy")+" --set graph.file="+f.name, f.message)
			if !strings.Contains(res.last(), f.name) {
				w.fail("the message does not name the file: %s", res.last())
			}
		}})
	}
	return append(all,
		trial{"graph/its-own-graph", func(w *world) {
			// The graph that a run has written gives the same run again.
			w.write("x.npy", blobs(60, 4).npy())
			w.ok(fmt.Sprintf(onPoints, "x.npy"))
			w.ok("cne train " + small + " --set data.path=x.npy --set graph.file=run/graph.npz -o run2")
			w.same("run/embedding.npy", "run2/embedding.npy")
		}},
		trial{"graph/deflated-and-int64", func(w *world) {
			w.write("x.npy", blobs(60, 4).npy())
			w.write("a.npz", sound)
			long := func(v []int32) []byte {
				var out []int64
				for _, x := range v {
					out = append(out, int64(x))
				}
				return npy("<i8", fmt.Sprintf("(%d,)", len(v)), little(out))
			}
			w.write("b.npz", zipped(zip.Deflate,
				member{"shape.npy", npy("<i8", "(2,)", little([]int64{60, 60}))}, member{"data.npy", npy("<f8", "(120,)", little(ones64(120)))},
				member{"format.npy", npy("<U3", "()", []byte("c\x00\x00\x00s\x00\x00\x00r\x00\x00\x00"))},
				member{"indptr.npy", long(indptr)}, member{"indices.npy", long(indices)}))
			w.ok(fmt.Sprintf(onPoints, "x.npy") + " --set graph.file=a.npz")
			w.ok("cne train " + small + " --set data.path=x.npy --set graph.file=b.npz -o run2")
			w.same("run/embedding.npy", "run2/embedding.npy")
		}},
		trial{"graph/isolated-points", func(w *world) {
			// Points without any edge stay where they began, and are no NaN.
			few := make([]int32, 61)
			for i := 1; i <= 60; i++ {
				few[i] = int32(min(i, 2))
			}
			w.write("x.npy", blobs(60, 4).npy())
			w.write("g.npz", csr(60, few, []int32{1, 0}, []float32{1, 1}))
			if res := w.run(fmt.Sprintf(onPoints, "x.npy")+" --set graph.file=g.npz", effects{refused: true}); res.code == 0 {
				w.finite("run/embedding.npy", 60, 2)
			}
		}},
		trial{"graph/one-way-edges-are-told", func(w *world) {
			one := make([]int32, 61)
			to := make([]int32, 60)
			for i := range 60 {
				one[i+1] = int32(i + 1)
				to[i] = int32((i + 1) % 60)
			}
			w.write("x.npy", blobs(60, 4).npy())
			w.write("g.npz", csr(60, one, to, data[:60]))
			res := w.run(fmt.Sprintf("cne train --epochs 4 --set output.plot=false --set data.path=%s -o run", "x.npy")+" --set graph.file=g.npz", effects{refused: true})
			if res.code == 0 && !strings.Contains(res.stderr, "symmetric") && !strings.Contains(res.stderr, "directed") {
				w.fail("a graph that is not symmetric is taken without a word")
			}
		}},
	)
}

// ones64 returns n ones.
func ones64(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

// figure returns a number from a JSON file of figures.
func (w *world) figure(file, key string) float64 {
	var figures map[string]any
	if err := json.Unmarshal(w.read(file), &figures); err != nil {
		w.fail("%s is no JSON: %v", file, err)
	}
	v, ok := figures[key].(float64)
	if !ok {
		w.fail("%s has no number %s", file, key)
	}
	return v
}
