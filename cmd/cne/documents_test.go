package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
	"cne/internal/npy"
	"cne/internal/rng"
)

// quick are the variables that make commands of the documents quick, by a pattern in them.
var quick = []struct{ command, variables string }{
	{"", "CNE_QUALITY_SPEARMAN_SAMPLE=100"},
	{"cne train", "CNE_TRAIN_EPOCHS=3 CNE_GRAPH_K=5 CNE_TRAIN_BATCH_SIZE=64"},
	{"cne train .*(npy|csv|DIR)", "CNE_OUTPUT_PLOT=false"},
	{"cne train( --html| --set output.*)?$", "CNE_DATA_PATH=DIR"}, // not the built-in images, on which CI runs the first
	{"-k 10", "CNE_GRAPH_K="},
	{"cne spectrum", "CNE_TRAIN_EPOCHS=6 CNE_TRAIN_BATCH_SIZE=64"},
	{"mnist-tsne-quality|train.phases", "CNE_TRAIN_EPOCHS="}, // the phases have the numbers of epochs
	{"cne simclr", "CNE_VIEWS_SIZE=8 CNE_NETWORK_WIDTH=2 CNE_TRAIN_BATCH_SIZE=8 CNE_EVALUATE_K=3"},
}

// smaller replaces numbers and names of the documents for small data.
var smaller = strings.NewReplacer(
	"go run ./cmd/cne", "cne",
	"1000000", "40", "2000000", "80", "epochs: 250", "epochs: 2", "epochs: 500", "epochs: 3",
	"--epochs 150", "--epochs 3", "views.size=32", "views.size=8", "train.batch_size=256", "train.batch_size=8", "data.size=64", "data.size=8",
	"data.sample=0.01", "data.sample=0.5", "metrics_every=5", "metrics_every=1", "snapshots=5", "snapshots=1",
)

// The commands of README and guide, typed from top to bottom into a shell, all work.
func TestDocuments(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	for _, document := range []string{"README.md", "docs/guide.md"} {
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Parallel()
			commands := commandsOf(t, document)
			folder, path := writeDocumentFiles(t)
			for _, command := range append([]string{"cne train points.npy -o runs/other"}, commands...) {
				runDocumented(t, bash, folder, path, command)
			}
		})
	}
}

// README names the commands that run and test a clone. TestDocuments runs the first, and CI
// both as they stand there.
func TestCommandsOfAClone(t *testing.T) {
	readme, script := readText(t, "../../README.md"), readText(t, "../../.ci/run")
	block := regexp.MustCompile("(?s)```\\s*(go run \\./cmd/cne [^\n]*)\n\\s*(go test [^\n]*)\n\\s*```").FindStringSubmatch(readme)
	if block == nil {
		t.Fatal("README has no block of the two commands")
	}
	if !slices.Contains(commandsOf(t, "README.md"), block[1]) {
		t.Errorf("TestDocuments does not run %q", block[1])
	}
	if !strings.Contains(script, "\n"+block[1]+" --output ") || !strings.Contains(script, "\n"+block[2]+"\n") {
		t.Errorf(".ci/run does not run %q", block[1:])
	}
}

// Other shells give the program the same arguments: zsh, of every Mac, refuses brackets and
// stars that name no file and, at its prompt, has no comments.
func TestDocumentsInShells(t *testing.T) {
	commands := append(commandsOf(t, "README.md"), commandsOf(t, "docs/guide.md")...)
	quoted := regexp.MustCompile(`'[^']*'|"[^"]*"`)
	for _, command := range commands {
		if strings.ContainsAny(quoted.ReplaceAllString(command, ""), "#[]*?") {
			t.Errorf("%s: put brackets and stars in quotes, and comments elsewhere", command)
		}
	}
	bin := t.TempDir()
	writeTestFile(t, filepath.Join(bin, "cne"), "#!/bin/sh\nprintf '<%s>' \"$@\"\n")
	must(t, os.Chmod(filepath.Join(bin, "cne"), 0o777))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	script := strings.ReplaceAll(strings.Join(commands, "\n"), "go run ./cmd/cne", "cne")
	arguments := func(shell string) string {
		out, err := exec.Command(shell, "-c", script).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip(err)
		}
		if err != nil {
			t.Errorf("%s: %v", shell, err)
		}
		return string(out)
	}
	if bash, zsh := arguments("bash"), arguments("zsh"); bash != zsh {
		t.Errorf("the arguments are in bash\n%s\nand in zsh\n%s", bash, zsh)
	}
}

// commandsOf returns the commands of cne in the tables of a document, and in its blocks of code
// that are no particular language's.
func commandsOf(t *testing.T, document string) (commands []string) {
	t.Helper()
	text := strings.ReplaceAll(readText(t, filepath.Join("..", "..", document)), "\\\n", " ")
	row := regexp.MustCompile("`(cne [^`]*)`")
	block := regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```\n|^(\\|.*?)$").FindAllStringSubmatch(text, -1)
	for _, b := range block {
		if b[1] != "" {
			continue
		}
		lines := b[2]
		for _, inline := range row.FindAllStringSubmatch(b[3], -1) {
			lines += inline[1] + "\n"
		}
		for line := range strings.Lines(lines) {
			line = strings.Join(strings.Fields(line), " ")
			if strings.HasPrefix(line, "cne ") || strings.HasPrefix(line, "go run ./cmd/cne ") {
				commands = append(commands, line)
			}
		}
	}
	if len(commands) < 15 {
		t.Fatalf("%s has %d commands", document, len(commands))
	}
	return commands
}

// runDocumented runs a command of a document in a shell, with bin first in the path.
func runDocumented(t *testing.T, shell, folder, bin, command string) {
	t.Helper()
	command = smaller.Replace(command)
	if strings.HasPrefix(command, "cne simclr") {
		command = strings.ReplaceAll(command, "DIR", "images")
	}
	cmd := exec.CommandContext(t.Context(), shell, "-c", command)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), mainVariable+"=1", "GOMAXPROCS=1", "CNE_PRESET=", "CNE_OUTPUT_PLOT=") // the defaults, and one core for few points
	for _, q := range quick {
		if regexp.MustCompile(q.command).MatchString(command) {
			cmd.Env = append(cmd.Env, strings.Fields(q.variables)...)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
}

// writeDocumentFiles makes a folder with the files that the documents name, and one with the
// program itself.
func writeDocumentFiles(t *testing.T) (folder, bin string) {
	t.Helper()
	configs, err := filepath.Abs("../../configs")
	must(t, err)
	folder, bin = t.TempDir(), programFolder(t)
	at := func(name string) string { return filepath.Join(folder, name) }
	must(t, os.Symlink(configs, at("configs")))

	const n = 120
	stream := rng.New(1, rng.Sample)
	points := func(n, d int) *data.Matrix {
		m := data.NewMatrix(n, d)
		for i := range m.X {
			m.X[i] = float32(stream.Normal() + 8*float64(i/d%3*(i%d%2)))
		}
		return m
	}
	for name, d := range map[string]int{"points": 10, "texts": 20, "new": 10, "many": 10, "more": 10, "tsne": 2, "mine": 2, "theirs": 2, "embedding": 2} {
		makeArray(t, at(name+".npy"), points(n, d))
	}
	makeArray(t, at("old.npy"), points(n/2, 2))
	makeArray(t, at("features.npy"), points(36, 20)) // of the photographs below
	writeMatrix(t, at("umap.csv"), func(w io.Writer) error { return file.WriteCSV(w, points(n, 2), nil, nil) })
	makeArray(t, at("umap.npy"), points(n, 2))
	var labels, titles, rows, table, meta, all strings.Builder
	fmt.Fprintln(&table, "mass,length,species")
	fmt.Fprintln(&meta, "id,species,year")
	fmt.Fprintln(&all, "id,age,batch")
	for i := range n {
		fmt.Fprintln(&labels, animal(i))
		fmt.Fprintln(&titles, "title", i)
		fmt.Fprintln(&rows, i)
		fmt.Fprintf(&table, "%g,%g,%s\n", stream.Normal(), stream.Normal(), animal(i))
		fmt.Fprintf(&meta, "p%d,%s,%d\n", i, animal(i), 1900+i)
		fmt.Fprintf(&all, "p%d,%g,%d\n", i, stream.Normal(), i%3)
	}
	for name, b := range map[string]*strings.Builder{
		"labels.txt": &labels, "types.txt": &labels, "titles.txt": &titles, "table.csv": &table, "meta.csv": &meta, "all.csv": &all, "more.csv": &all,
	} {
		writeTestFile(t, at(name), b.String())
	}
	writeTestFile(t, at("rows.txt"), strings.Join(strings.SplitAfter(rows.String(), "\n")[:n/2], ""))
	write10X(t, at("filtered_feature_bc_matrix"), 0, n)
	for name, from := range map[string]string{"cells.h5ad": "cells.h5", "filtered_feature_bc_matrix.h5": "new10x.h5"} {
		writeTestFile(t, at(name), readText(t, "../../internal/hdf5/testdata/"+from))
	}
	writeImages(t, at("images"), 8, 8, 4)
	writeImages(t, at("photos"), 8, 8, 4)
	writeImages(t, at("new-photos"), 8, 2, 1)

	// DIR is a folder like MNIST's, of a part of the images that come with the program.
	mnist, err := file.Builtin("mnist10k")
	must(t, err)
	write := func(name string, from, to int) {
		pixels := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 3}, uint32(to-from))
		pixels = append(pixels, 0, 0, 0, 28, 0, 0, 0, 28)
		digits := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, uint32(to-from))
		for i := from; i < to; i++ {
			for _, x := range mnist.Points.X[i*28*28 : (i+1)*28*28] {
				pixels = append(pixels, byte(x))
			}
			digits = append(digits, byte(mnist.Labels.Class[i]))
		}
		writeTestFile(t, at("DIR/"+name+"-images-idx3-ubyte"), string(pixels))
		writeTestFile(t, at("DIR/"+name+"-labels-idx1-ubyte"), string(digits))
		if name == "train" {
			writeTestFile(t, at("images.npy"), string(append(npy.Head(128, "|u1", n, 28, 28), pixels[16:]...)))
			writeTestFile(t, at("score.npy"), string(append(npy.Head(128, "|u1", n), pixels[16+400:16+400+n]...)))
		}
	}
	write("train", 0, n)
	write("t10k", n, n+60)
	return folder, bin
}
