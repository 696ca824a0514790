package main

import (
	"archive/zip"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// mutations is how often each kind of file is damaged.
const mutations = 24

// damaged returns a copy of a file with a few of its bytes changed, taken out, doubled or
// moved, or with its end missing.
func damaged(rng *rand.Rand, content []byte) []byte {
	content = slices.Clone(content)
	for range 1 + rng.IntN(3) {
		if len(content) < 2 {
			return content
		}
		at, n := rng.IntN(len(content)), 1+rng.IntN(min(len(content), 16))
		if rng.IntN(2) == 0 { // most of what a reader decides by stands at the beginning
			at = rng.IntN(min(len(content), 200))
		}
		end := min(at+n, len(content))
		switch rng.IntN(6) {
		case 0:
			content[at] ^= 1 << rng.IntN(8)
		case 1:
			content[at] = []byte{0, 0xff, 0x7f, 0x80, '-', '9', '"', '\n', ',', '{'}[rng.IntN(10)]
		case 2:
			content = slices.Delete(content, at, end)
		case 3:
			content = slices.Insert(content, at, slices.Clone(content[at:end])...)
		case 4:
			for i := at; i < end; i++ {
				content[i] = byte(rng.Uint32())
			}
		default:
			content = content[:at]
		}
	}
	return content
}

// noiseTrials damage files of every kind at random: whatever comes of it, no crash, and no
// file but the results changes. What the program has sealed with a checksum is refused.
func noiseTrials() []trial {
	p := blobs(60, 4)
	indptr, indices, data := ring(60)
	e := counts(30, 40)
	images, _ := pictures(12, 8)
	var yaml strings.Builder
	yaml.WriteString("seed: 3\ndata:\n  path: [x.npy]\n  drop: []\ntrain:\n  epochs: 3\n  phases: []\nmodel: {hidden: [7, 5], dim: 2}\nloss:\n  s: null\n  negatives: full\nplot:\n  title: \"a: b\"\n")
	const points = "cne train " + small + " --force --set graph.k=5 --set data.path=%s -o run"
	var all []trial
	for _, f := range []struct {
		name    string
		content []byte
		line    string
	}{
		{"x.npy", p.npy(), points},
		{"x.csv", withLabels(p), points + " --set data.label_column=-1"},
		{"x.tsv", p.csv("\t", "\r\n", "a", "b", "c", "d"), points},
		{"x.idx", idx(0x0d, big(p.flat()), 60, 4), points},
		{"x.csv.gz", gz(p.csv(",", "\n")), points},
		{"x.npz", zipped(zip.Deflate, member{"x.npy", p.npy()}, member{"y.npy", npy("<i8", "(60,)", make([]byte, 480))}), points},
		{"x.parquet", parquet(60, append(columnsOf(p), texts("kind", strings.Split(strings.Repeat("ab ", 60), " ")[:60]...))...), points + " --set data.label_column=kind"},
		{"s.npz", sparse(p, nil), points + " --set graph.pca=2"},
		{"knn.npy", npy("<i8", "(60, 2)", little(slices.Repeat(counted(30), 4))), "cne train " + small + " --force --set data.path=in.npy --set graph.file=%s -o run"},
		{"x.mtx", mtx("matrix coordinate integer general", fmt.Sprintf("30 40 %d", len(e)), e...), points},
		{"labels.txt", []byte(lines(60, func(i int) string { return fmt.Sprint(i % 3) })), "cne train " + small + " --force --set data.path=in.npy --set data.labels=%s -o run"},
		{"graph.npz", csr(60, indptr, indices, data), "cne train " + small + " --force --set data.path=in.npy --set graph.file=%s -o run"},
		{"c.yaml", []byte(yaml.String()), "cne config --check --config %s"},
		{"m.safetensors", safetensors(network()...), "cne project -q --model %s in.npy -o out.npy"},
		{"i.npy", images, "cne simclr views -q --set views.size=8 --set data.path=%s -o out.png"},
		{"photos/a/1.png", picture(9, 7, 1), "test -e %s && cne simclr views -q --set views.size=8 --set data.path=photos -o out.png"},
		{"i.tar", tarred(member{"data_batch_1.bin", make([]byte, 3073*3)}, member{"test_batch.bin", make([]byte, 3073)}), "cne simclr views -q --set data.path=%s -o out.png"},
		{"e.csv", withLabels(blobs(30, 2)), "cne plot -q %s -o out.svg"},
	} {
		all = append(all, trial{"noise/" + f.name, func(w *world) {
			w.write("in.npy", p.npy())
			for range mutations {
				w.write(f.name, damaged(w.rng, f.content))
				w.run(fmt.Sprintf(f.line, f.name), effects{refused: true})
			}
		}})
	}
	for _, f := range []struct {
		name, line string
		sealed     bool // a change never goes unseen
	}{
		{"model.safetensors", "cne project -q --model run in.npy -o out.npy", true},
		{"checkpoint.safetensors", "cne train -q --resume run --epochs 9", true},
		{"cache.safetensors", "cne train -q --resume run --epochs 9", false},
		{"config.yaml", "cne evaluate -q run", false},
		{"metrics.json", "cne evaluate -q run", false},
		{"metrics.jsonl", "cne plot -q --metrics run -o out.png", false},
		{"embedding.csv", "cne plot -q run -o out.png", false},
		{"embedding.npy", "cne evaluate -q run", false},
	} {
		all = append(all, trial{"noise/run/" + f.name, func(w *world) {
			w.write("in.npy", p.npy())
			w.ok("cne train " + small + " --set model.kind=mlp --set model.hidden=[8] --set data.path=in.npy -o runwhole")
			whole := w.read("runwhole/" + f.name)
			for range mutations {
				w.ok("rm -rf run && cp -r runwhole run && rm -f run/checkpoint.previous.safetensors")
				other := damaged(w.rng, whole)
				w.write("run/"+f.name, other)
				res := w.run(f.line, effects{refused: true})
				if f.sealed && res.code == 0 && !slices.Equal(other, whole) {
					w.fail("a damaged %s is taken", f.name)
				}
			}
		}})
	}
	return all
}
