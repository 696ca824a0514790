package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// put writes a file below the current folder, with what others can run.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
}

// program is cne as far as the check sees it: it notes its arguments, and leaves the
// files of a run in the folder that they name. A run of 7 epochs is interrupted
// after the third of them, the first time.
const program = `#!/bin/sh
echo "$@" >>calls
for a; do
  case $last in --output|--resume|evaluate) folder=$a;; --epochs) epochs=$a;; esac
  last=$a
done
echo "computing on cuda:0, a Pretence" >&2
echo "epoch 1 of 3" >&2
case $1 in simclr) echo "convolutions are computed by cuDNN 9.1";; *) echo "nothing can be written to /x, so that …";; esac >&2
[ "$epochs" != 13 ] || { echo "cne: thirteen is refused" >&2; exit 1; }
mkdir -p $folder
echo '{"knn": {"mean": 0.81, "std": 0.01}, "linear": {"mean": 0.85, "std": 0}}' >$folder/evaluation.json
n=${epochs:-750}
if [ "$n" = 7 ] && [ ! -e $folder/checkpoint.safetensors ]; then n=3 stop=yes; fi
[ -z "$epochs" ] || echo x >$folder/checkpoint.safetensors
echo y >$folder/config.yaml
rm -f $folder/metrics.jsonl.new
i=1
while [ $i -le $n ] && [ $i -le 10 ]; do echo "{\"epoch\": $i, \"loss\": 0.5, \"seconds\": $((i + 9))}"; i=$((i + 1)); done >$folder/metrics.jsonl
if [ "$stop" ]; then exec sleep 100; fi
echo '{"knn_recall": 0.1, "epochs": '$n', "seconds": {"optimize": 2.5, "total": 9}, "version": "1.2"}' >$folder/metrics.json
`

// tests is the program with the tests, as far as the check sees it.
const tests = `#!/bin/sh
[ "$CUDA_TESTS" = required ] || exit 3
case "$* " in *-test.bench*)
  [ $1 = train ] || exit 0
  head -c 70000 /dev/zero | tr '\0' x
  echo "
goos: linux
BenchmarkDeviceCopy/MiB=64-16   	     100	  50000 ns/op	  4000 GB/s
BenchmarkDeviceSums/n=10-16     	     100	   2000 ns/op	  1000 GB/s	  0.5 TFLOP/s
BenchmarkDeviceProduct/exact=false-16 	 100	 2000 ns/op	 400 TFLOP/s-tf32
BenchmarkDeviceProduct/exact=true-16 	 100	 2000 ns/op	 50 TFLOP/s
BenchmarkConvolutionOnDevice-16 	 100	 2000 ns/op	 0 roof-ns::launches:0	 500.0 roof-ns::tf32:132	 100 TFLOP/s-tf32
BenchmarkEpochOnDevice/table/b=1024/m=5-16 	 100	 4000000 ns/op	 300 Medges/s	 4000 roof-ns::launches:0	 1500000 roof-ns:batches:instructions:1	 500000 roof-ns:shuffle:cache:132
PASS"
  exit 0
esac
case $1 in
model/op) echo "=== RUN   TestSumOnDevice
=== RUN   TestSumOnDevice/n=1
--- PASS: TestSumOnDevice (0.01s)
    --- PASS: TestSumOnDevice/n=1 (0.00s)
=== RUN   TestDeviceIsLost
    x.go:1: a GPU cannot be made to fail
--- SKIP: TestDeviceIsLost (0.00s)
PASS" ;;
train) TRAIN ;;
data) echo "=== RUN   TestRowsOnDevice"; echo "--- PASS: TestRowsOnDevice (0.1s)" ;;
esac
`

// putTests writes that program, where the tests of train do what the shell is told.
func putTests(t *testing.T, train string) {
	t.Helper()
	put(t, "programs/tests", strings.ReplaceAll(tests, "TRAIN", train))
}

const trainPasses = `echo "=== RUN   TestStepOnDevice"; echo "--- PASS: TestStepOnDevice (0.1s)"`

// folder makes a folder as scripts/gpu-check fills it, and run unpacks it, the current
// one.
func folder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("PATH", filepath.Join(mustGetwd(t), "bin")+":"+os.Getenv("PATH"))
	t.Setenv("PYTHON", "nothing")
	put(t, "programs/cne", program)
	put(t, "programs/version", "abc\n0123\n")
	put(t, "programs/packages", "data\nmodel/op\ntrain\n")
	for _, p := range []string{"data", "model/op", "train"} {
		if err := os.MkdirAll("programs/of/"+p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	putTests(t, trainPasses)
	for _, name := range []string{"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"} {
		put(t, "programs/mnist/"+name, "test images")
	}
	for _, name := range []string{"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"} {
		put(t, "data/mnist/"+name, "images")
	}
	if err := os.MkdirAll("data/cifar10", 0o777); err != nil {
		t.Fatal(err)
	}
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	d, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// carryOut runs a step and returns its report.
func carryOut(t *testing.T, args ...string) (*report, error) {
	t.Helper()
	failed := run(t.Context(), args, new(bytes.Buffer))
	r := new(report)
	if err := readJSON("out/report-"+args[0]+".json", r); err != nil {
		t.Fatalf("%v: %v, %v", args, failed, err)
	}
	return r, failed
}

func TestTests(t *testing.T) {
	folder(t)
	r, err := carryOut(t, "ops")
	if err != nil || len(r.Tests) != 3 || r.Tests[1].Package != "model/op" || r.Left != "" || r.Check != "abc" || r.Sources != "0123" ||
		!slices.Equal(r.Tests[1].Passed, []string{"TestSumOnDevice"}) || !slices.Equal(r.Tests[1].Skipped, []string{"TestDeviceIsLost"}) ||
		!slices.Equal(r.Tests[2].Passed, []string{"TestStepOnDevice"}) {
		t.Errorf("%v: %+v", err, r)
	}

	// A test that fails, and one that ends its process.
	putTests(t, "echo '--- FAIL: TestA (0.1s)'; echo '=== RUN   TestB'; echo fatal; exit 2")
	r, err = carryOut(t, "ops", "-packages", "train")
	if err != errFailed || len(r.Tests) != 1 || !slices.Equal(r.Tests[0].Failed, []string{"TestA", "TestB"}) || !strings.Contains(r.Tests[0].Output, "fatal") {
		t.Errorf("%v: %+v", err, r)
	}

	put(t, "bin/compute-sanitizer", "#!/bin/sh\necho \"$@\" $CNE_LIBCUDNN >>../../../../sanitized\n[ \"$2\" != racecheck ] || exit 86\n")
	if r, err = carryOut(t, "memcheck", "-packages", "model/op"); err != nil || r.Tests[0].Tool != "memcheck" {
		t.Errorf("%v: %+v", err, r)
	}
	if r, err = carryOut(t, "racecheck", "-packages", "model/op"); err != errFailed || len(r.Tests[0].Failed) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
	said, err := os.ReadFile("sanitized")
	program := filepath.Join(mustGetwd(t), "programs/tests")
	if want := "--tool memcheck --error-exitcode 86 --report-api-errors no " + program + " model/op -test.v -test.run Device -test.timeout 6m -test.short none\n" +
		"--tool racecheck --error-exitcode 86 " + program + " model/op -test.v -test.run Device -test.timeout 6m -test.short none\n"; err != nil || string(said) != want {
		t.Errorf("compute-sanitizer was given %s, want %s (%v)", said, want, err)
	}
	// Without names, those of which it is worth it.
	put(t, "bin/compute-sanitizer", "#!/bin/sh\n")
	if r, err = carryOut(t, "synccheck"); err != nil || len(r.Tests) != 2 || r.Tests[0].Package != "model/op" || r.Tests[1].Package != "train" {
		t.Errorf("%v: %+v", err, r)
	}
}

// A kernel that fails takes the tests after it with it: each is tried alone.
func TestFailuresAreTriedAlone(t *testing.T) {
	folder(t)
	putTests(t, `case "$*" in
*'^TestA$'*) echo "=== RUN   TestA"; echo "the cause"; exit 2;;
*'^TestB$'*) echo "=== RUN   TestB"; echo "--- PASS: TestB (0.1s)";;
*'^TestC$'*) echo "=== RUN   TestC"; exec sleep 100;;
*) for n in A B C D; do echo "=== RUN   Test$n"; echo "--- FAIL: Test$n (0.1s)"; done; exit 1;;
esac`)
	r, err := carryOut(t, "ops", "-packages", "train,data", "-minutes", "0.02")
	if err != errFailed || len(r.Tests) != 1 || r.Left != "data" {
		t.Fatalf("%v: %+v", err, r)
	}
	got := r.Tests[0]
	if !slices.Equal(got.Failed, []string{"TestA", "TestB", "TestC", "TestD"}) || !slices.Equal(got.FailedAlone, []string{"TestA"}) || !slices.Equal(got.FailedAfter, []string{"TestB"}) ||
		!strings.HasSuffix(got.Output, "TestA alone:\n=== RUN   TestA\nthe cause") {
		t.Errorf("%+v", got)
	}
	if want := "| train |  | 0 | 0 | alone: TestA; after another: TestB; not tried alone: TestC, TestD |"; !strings.Contains(markdown([]*report{r}), want) {
		t.Errorf("%s\nlacks %q", markdown([]*report{r}), want)
	}
}

// What a tool has started ends with it, though it ignores interruptions.
func TestNothingIsLeftRunning(t *testing.T) {
	folder(t)
	put(t, "bin/compute-sanitizer", "#!/bin/sh\n(trap '' INT; exec sleep 100 >/dev/null 2>&1) &\necho $! >../../../../child\nwait\n")
	if r, err := carryOut(t, "memcheck", "-packages", "model/op", "-minutes", "0.02"); err != nil || r.Left != "model/op" {
		t.Fatalf("%v: %+v", err, r)
	}
	child, err := os.ReadFile("child")
	if err != nil {
		t.Fatal(err)
	}
	// The system may take a moment to end it, and nobody may have asked yet what has
	// become of it.
	stat := filepath.Join("/proc", strings.TrimSpace(string(child)), "stat")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		state, err := os.ReadFile(stat)
		if err != nil || bytes.Contains(state, []byte(") Z ")) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it is still there: %s", state)
		}
	}
}

// The time of a visit is over in the tests of a package: the next visit begins with
// these and keeps what the first has seen, if the programs are the same.
func TestTestsGoOn(t *testing.T) {
	folder(t)
	putTests(t, "echo '=== RUN   TestA'; exec sleep 100")
	r, err := carryOut(t, "ops", "-minutes", "0.02")
	if err != nil || len(r.Tests) != 2 || r.Left != "train" || r.Note != "interrupted in TestA of train" {
		t.Errorf("%v: %+v", err, r)
	}
	if err := os.Mkdir("resume", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("out/report-ops.json", "resume/report-ops.json"); err != nil {
		t.Fatal(err)
	}
	putTests(t, trainPasses)
	r, err = carryOut(t, "ops")
	if err != nil || len(r.Tests) != 3 || r.Left != "" || !strings.HasPrefix(r.Note, "begun on ") {
		t.Errorf("%v: %+v", err, r)
	}
	r.Left, r.Tests = "train", r.Tests[:2]
	r.Sources = "other"
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	put(t, "out/report-ops.json", string(text))
	if r, err = carryOut(t, "ops"); err != nil || len(r.Tests) != 3 || r.Note != "" {
		t.Errorf("%v: %+v", err, r)
	}
}

// Without names all steps are done but those that are, or lack their data; one that is
// cut short and would begin again is not begun with less time than it had.
func TestAllSteps(t *testing.T) {
	folder(t)
	put(t, "bin/compute-sanitizer", "#!/bin/sh\n")
	if err := os.RemoveAll("data"); err != nil {
		t.Fatal(err)
	}
	visit := func(args ...string) string {
		t.Helper()
		var stdout bytes.Buffer
		if err := run(t.Context(), append(args, "-o", "out", "-epochs", "4"), &stdout); err != nil {
			t.Errorf("%v: %v\n%s", args, err, &stdout)
		}
		return stdout.String()
	}
	reports := func() (names []string) {
		found, err := filepath.Glob("out/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			names = append(names, filepath.Base(f))
		}
		return names
	}
	said := visit()
	if got, want := reports(), []string{"report-kernels.json", "report-memcheck.json", "report-ops.json", "report-synccheck.json"}; !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	for _, want := range []string{
		"table: the part mnist is missing (there is no data/mnist/train-images-idx3-ubyte.gz beside run); make it with scripts/gpu-check --parts mnist, and copy it here\n",
		"simclr: the part cifar10 is missing (there is no data/cifar10-jpeg.tar.xz beside run); make it with scripts/gpu-check --parts cifar10, and copy it here\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%s\nlacks %q", said, want)
		}
	}
	if err := run(t.Context(), []string{"table", "-o", "out"}, new(bytes.Buffer)); err != errFailed {
		t.Errorf("a step without its data ends with %v", err)
	}
	put(t, "data/cifar10-jpeg.tar.xz", "no archive")
	if said := visit(); !strings.Contains(said, "simclr: data/cifar10-jpeg.tar.xz is unpacked neither by tar with xz nor by nothing: it is damaged, or neither is here; make it with scripts/gpu-check --parts cifar10") {
		t.Error(said)
	}

	folder(t)
	if said := visit(); strings.Contains(said, "ops: done") || len(reports()) != 8 {
		t.Errorf("%s\n%v", said, reports())
	}
	if said := visit(); strings.Count(said, ": done on ") != 8 || strings.Contains(said, "+ ") {
		t.Error(said)
	}
	r := new(report)
	if err := readJSON("out/report-simclr.json", r); err != nil {
		t.Fatal(err)
	}
	r.Left, r.Allotted = "epochs 3 to 4", 470
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	put(t, "out/report-simclr.json", string(text))
	if err := os.RemoveAll("runs/simclr"); err != nil {
		t.Fatal(err)
	}
	if said := visit(); !strings.Contains(said, ": simclr\n") || strings.Contains(said, "+ ") {
		t.Error(said)
	}
	// With more time, or where the run is, it goes on; the steps are not measured again.
	before := fmt.Sprint(r.Runs[0])
	for _, args := range [][]string{{"-minutes", "10"}, nil} {
		put(t, "out/report-simclr.json", string(text))
		said := visit(args...)
		if !strings.Contains(said, "report-simclr.json is written") || strings.Contains(said, "simclr-epochs") || strings.Contains(said, "torch") {
			t.Error(said)
		}
		r := new(report)
		if err := readJSON("out/report-simclr.json", r); err != nil || r.Left != "" || len(r.Runs) != 4 || fmt.Sprint(r.Runs[0]) != before || strings.Count(r.Note, "; steps were measured on ") != 1 {
			t.Errorf("%v: %+v", err, r)
		}
	}
}

// A step that failed is not repeated unasked, and the visit is not well because of it.
func TestFailuresAreNotRepeated(t *testing.T) {
	folder(t)
	put(t, "bin/compute-sanitizer", "#!/bin/sh\n")
	putTests(t, "echo '--- FAIL: TestA (0.1s)'; exit 1")
	visit := func(args ...string) (said string, err error) {
		t.Helper()
		var stdout bytes.Buffer
		err = run(t.Context(), append(args, "-epochs", "13"), &stdout)
		return stdout.String(), err
	}
	if said, err := visit("ops", "table", "parametric"); err != errFailed || strings.Count(said, "is written") != 3 {
		t.Errorf("%v: %s", err, said)
	}
	said, err := visit()
	if err != errFailed || !strings.Contains(said, ", not well; name it to repeat it\ntable: done on ") || strings.Count(said, ", not well and not to its end; name it to try again\n") != 2 || !strings.Contains(said, "report-kernels.json is written") {
		t.Errorf("%v: %s", err, said)
	}
	putTests(t, trainPasses)
	if said, err := visit("ops"); err != nil || !strings.Contains(said, "report-ops.json is written") {
		t.Errorf("%v: %s", err, said)
	}
	// Of other programs nothing is known.
	put(t, "programs/version", "abc\n4567\n")
	if said, err := visit("-minutes", "0.000001"); err != nil || strings.Contains(said, "done on") {
		t.Errorf("%v: %s", err, said)
	}
}

// All that is to come back is in one file, with what earlier visits brought back.
func TestArchive(t *testing.T) {
	folder(t)
	packed := func() (names []string) {
		t.Helper()
		out, err := exec.Command("tar", "-tf", "out.tar").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Fields(string(out))
	}
	putTests(t, "exit 2")
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"ops", "simclr-run", "-epochs", "7", "-minutes", "0.03"}, &stdout); err != errFailed {
		t.Errorf("%v: %s", err, &stdout)
	}
	if got, want := packed(), []string{"out/report-ops.json", "out/report-simclr-run.json", "out/simclr-run.part-1-of-1"}; !slices.Equal(got, want) || !strings.Contains(stdout.String(), "out.tar has all that is to come back, 0.01 MiB\n") {
		t.Errorf("there are %v, want %v\n%s", got, want, &stdout)
	}
	if err := os.Rename("out", "resume"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll("runs"); err != nil {
		t.Fatal(err)
	}
	if _, err := carryOut(t, "table", "-part-mib", "0.001"); err != nil {
		t.Error(err)
	}
	if got, want := packed(), []string{"out/report-ops.json", "out/report-simclr-run.json", "out/report-table.json", "out/simclr-run.part-1-of-1"}; !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	// A larger one may not be carried.
	stdout.Reset()
	if err := run(t.Context(), []string{"simclr-run", "-epochs", "7", "-part-mib", "0.001953125"}, &stdout); err != nil || !strings.Contains(stdout.String(), "which is more than the 0.001953 MiB of -part-mib: bring the files of ") {
		t.Errorf("%v: %s", err, &stdout)
	}
	// A run that is at its end needs no parts.
	if got := packed(); len(got) != 3 {
		t.Errorf("there are %v", got)
	}
}

// The sources are the same as long as what is built of them is.
func TestSources(t *testing.T) {
	script, err := filepath.Abs("sources.bash")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Skipf("git %v: %v, %s", args, err, out)
		}
	}
	sources := func(words ...string) string {
		t.Helper()
		out, err := exec.Command("bash", append([]string{script}, words...)...).CombinedOutput()
		if err != nil || len(out) != 17 {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	git("init", "-q")
	for _, name := range []string{"docs/gpu.md", "README.md", "a.go", "testdata/a.csv", "gone.go", ".gitignore"} {
		put(t, name, "ignored\n")
	}
	git("add", ".")
	seen := map[string]string{sources(): "at first"}
	for _, c := range []struct {
		name   string
		change func()
		same   bool
	}{
		{"a document", func() { put(t, "docs/gpu.md", "figures") }, true},
		{"a document elsewhere", func() { put(t, "README.md", "more") }, true},
		{"a source", func() { put(t, "a.go", "one") }, false},
		{"the same source once more", func() { put(t, "a.go", "two") }, false},
		{"test data", func() { put(t, "testdata/a.csv", "1") }, false},
		{"a file that is not added", func() { put(t, "b.go", "") }, false},
		{"a file that is nobody's", func() { put(t, "out.tar", "") }, true},
		{"a file that git ignores", func() { put(t, "ignored", "") }, true},
		{"a file that is gone", func() {
			if err := os.Remove("gone.go"); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		c.change()
		now := sources()
		if _, same := seen[now]; same != c.same {
			t.Errorf("%s: the same is %t", c.name, same)
		}
		seen[now] = c.name
	}
	if seen[sources("model/op")] != "" {
		t.Error("of other packages, it is the same")
	}
}

func TestKernels(t *testing.T) {
	folder(t)
	if _, err := carryOut(t, "table"); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"kernels"}, &stdout); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n  DeviceSums/n=10: 2 µs; at best unknown\n",
		"\n  ConvolutionOnDevice: 2 µs; at best 0.5 µs, 25 % reached: tf32 of 132 multiprocessors\n",
		"\n  EpochOnDevice/table/b=1024/m=5: 4 ms; at best 2 ms, 50 % reached: batches 75 % (instructions of one multiprocessor), shuffle 25 % (cache of 132 multiprocessors)\n",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%s\nlacks %q", &stdout, want)
		}
	}
	r, err := carryOut(t, "kernels", "-short")
	if err != nil || len(r.Benchmarks) != 6 || r.Benchmarks[1].Name != "DeviceSums/n=10" || math.Abs(r.Benchmarks[1].Seconds-2e-6) > 1e-12 || r.Benchmarks[1].Rates["GB/s"] != 1000 {
		t.Fatalf("%v: %+v", err, r)
	}
	put(t, "gpu.md", beginMark+endMark)
	if err := run(t.Context(), []string{"-report", "out", "-into", "gpu.md"}, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| DeviceSums/n=10 | 2 µs | 1000 GB/s (25 %), 0.5 TFLOP/s (1 %) |  |\n",
		"| ConvolutionOnDevice | 2 µs | 100 TFLOP/s-tf32 (25 %) | 0.5 µs, 25 % reached: tf32 of 132 multiprocessors |\n",
		// 750 epochs of 2 ms; the run says that it took 2.5 s.
		"| Neg-t-SNE of MNIST, table, b=1024, 750 epochs | 2.5 s | at most 10 s | yes | 1.5 s, 60 % reached: batches 75 % (instructions of one multiprocessor), shuffle 25 % (cache of 132 multiprocessors) |\n",
		"| Neg-t-SNE of MNIST, table, b=2¹⁹, 750 epochs | 2.5 s | at most 1 s | no |  |\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nlacks %q", text, want)
		}
	}
}

func TestNoSanitizer(t *testing.T) {
	folder(t)
	if findSanitizer() != "" {
		t.Skip("there is one here")
	}
	if r, err := carryOut(t, "memcheck"); err != nil || !strings.Contains(r.Note, "no compute-sanitizer") {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestRuns(t *testing.T) {
	folder(t)
	r, err := carryOut(t, "table")
	if err != nil || len(r.Runs) != 2 || r.Runs[0].Figure != 2.5 || !r.Runs[0].reached() || r.Runs[1].reached() || r.Version != "1.2" ||
		r.Device != "computing on cuda:0, a Pretence" || !strings.Contains(r.Runs[1].Command, "train.batch_size=524288") {
		t.Errorf("%v: %+v", err, r)
	}
	// What is compiled is compiled before the clock runs.
	calls, err := os.ReadFile("calls")
	if lines := strings.Split(string(calls), "\n"); err != nil || len(lines) != 5 || !strings.Contains(lines[0], "runs/table-1024-before") || !strings.HasSuffix(lines[0], "--epochs 2") ||
		!strings.Contains(lines[1], "runs/table-1024 ") || strings.Contains(lines[1], "--epochs") || r.Runs[0].More["first epoch"] != 10 {
		t.Errorf("cne was called as %s (%v), and the figures are %v", calls, err, r.Runs[0].More)
	}
	if want := []string{"nothing can be written to /x, so that …"}; !slices.Equal(r.Notes, want) {
		t.Errorf("the notes are %q, want %q", r.Notes, want)
	}
	// The first epoch, of 10 s, does not count.
	r, err = carryOut(t, "parametric", "-epochs", "5")
	if err != nil || len(r.Runs) != 1 || r.Runs[0].Figure != 1 || r.Runs[0].reached() {
		t.Errorf("%v: %+v", err, r)
	}
	r, err = carryOut(t, "table", "-epochs", "13")
	if err != errFailed || !strings.Contains(r.Error, "thirteen is refused") {
		t.Errorf("%v: %+v", err, r)
	}
	r, err = carryOut(t, "simclr", "-epochs", "9")
	if err != nil || len(r.Runs) != 4 || r.Runs[0].Figure != 1 || r.Runs[1].Figure != 9 || r.Runs[2].Figure != 81 || r.Runs[2].Goal != 80 || !strings.HasPrefix(r.Note, "PyTorch was not measured") {
		t.Errorf("%v: %+v", err, r)
	}
	// A step of PyTorch that takes 2048 views per second, for 58 batches of as many.
	put(t, "bin/python", "#!/bin/sh\necho PyTorch 9.0\necho 2048 2048\n")
	t.Setenv("PYTHON", "python")
	r, err = carryOut(t, "simclr", "-epochs", "9")
	if err != nil || len(r.Runs) != 6 || r.Runs[1].Figure != 58 || r.Runs[2].Figure != 58 || !strings.HasPrefix(r.Runs[1].Name, "PyTorch 9.0") {
		t.Errorf("%v: %+v", err, r)
	}
}

// A run goes on in the folder in which it was begun, and from its pieces in another.
func TestLongRunGoesOn(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		folder(t)
		r, err := carryOut(t, "simclr-run", "-epochs", "7", "-minutes", "0.03")
		if err != nil || len(r.Runs) != 1 || r.Runs[0].Figure != 3 || r.Left != "epochs 4 to 7, and the accuracies" {
			t.Errorf("%v: %+v", err, r)
		}
		if elsewhere {
			kept := map[string][]byte{}
			for _, name := range []string{"simclr-run.part-1-of-1", "report-simclr-run.json", "calls"} {
				from := name
				if name != "calls" {
					from = "out/" + name
				}
				if kept[name], err = os.ReadFile(from); err != nil {
					t.Fatal(err)
				}
			}
			folder(t)
			for name, text := range kept {
				if name != "calls" {
					name = "resume/" + name
				}
				put(t, name, string(text))
			}
		}
		r, err = carryOut(t, "simclr-run", "-epochs", "7")
		if err != nil || len(r.Runs) != 3 || r.Runs[0].Figure != 7 || r.Runs[1].Figure != 81 || !r.Runs[1].reached() || r.Note != "" || r.Left != "" || !strings.Contains(r.Runs[1].Name, "width 24") {
			t.Errorf("%v: %+v", err, r)
		}
		calls, err := os.ReadFile("calls")
		if lines := strings.Split(strings.TrimSpace(string(calls)), "\n"); err != nil || len(lines) != 3 ||
			!strings.Contains(lines[0], "--config") || !strings.Contains(lines[0], "network.width=24") || !strings.Contains(lines[1], "--resume runs/simclr-run") || !strings.HasPrefix(lines[2], "simclr evaluate") {
			t.Errorf("cne was called as %s (%v)", calls, err)
		}
		if _, err := os.Stat("out/simclr-run.part-1-of-1"); err == nil {
			t.Error("the pieces of a run that is done are still there")
		}
	}
}

// The state of a run that is too large to travel stays where it is, and the report says
// so.
func TestLargeStateStays(t *testing.T) {
	folder(t)
	r, err := carryOut(t, "simclr-run", "-epochs", "7", "-minutes", "0.03", "-carry-mib", "0.001")
	if err != nil || !strings.Contains(r.Note, "travels only up to 0.0 (-carry-mib)") || r.Left == "" {
		t.Errorf("%v: %+v", err, r)
	}
	if found, _ := filepath.Glob("out/*.part-*"); len(found) > 0 {
		t.Errorf("there are %v", found)
	}
}

// Interrupted from outside, a visit writes what it knows.
func TestInterruption(t *testing.T) {
	folder(t)
	ctx, interrupt := context.WithTimeout(t.Context(), time.Second)
	defer interrupt()
	if err := run(ctx, []string{"simclr-run", "-epochs", "7"}, new(bytes.Buffer)); err != nil {
		t.Error(err)
	}
	r := new(report)
	if err := readJSON("out/report-simclr-run.json", r); err != nil || r.Left != "epochs 4 to 7, and the accuracies" {
		t.Errorf("%v: %+v", err, r)
	}
	if _, err := os.Stat("out/simclr-run.part-1-of-1"); err != nil {
		t.Error(err)
	}
}

func TestPieces(t *testing.T) {
	t.Chdir(t.TempDir())
	p := pieces{run: "simclr-run", width: 8, epochs: 10}
	write := func(folder, text string, epoch int) {
		t.Helper()
		for _, name := range carried {
			put(t, filepath.Join("run", name), name+text)
		}
		put(t, folder+"/simclr-run.part-9-of-9", "stale")
		if size, err := p.split("run", folder, epoch, 2500, 1<<20); err != nil || size < 4096 {
			t.Fatalf("%d, %v", size, err)
		}
	}
	write("a", " after three", 3)
	write("b", " after five", 5)
	if got := p.found("b"); len(got) < 3 || filepath.Base(got[0]) != fmt.Sprintf("simclr-run.part-1-of-%d", len(got)) {
		t.Fatalf("the pieces are %v", got)
	}
	for _, path := range p.found("b") {
		if info, err := os.Stat(path); err != nil || info.Size() > 2500 {
			t.Errorf("%s has %d bytes (%v)", path, info.Size(), err)
		}
	}
	for _, folders := range [][]string{{"nowhere", "b", "a"}, {"a", "b"}} {
		if epoch, err := p.join("again", folders...); err != nil || epoch != 5 {
			t.Fatalf("%v: %d, %v", folders, epoch, err)
		}
	}
	for _, name := range carried {
		if text, err := os.ReadFile(filepath.Join("again", name)); err != nil || string(text) != name+" after five" {
			t.Errorf("%s is %q (%v)", name, text, err)
		}
	}
	if epoch, err := p.join("none", "nowhere"); err != nil || epoch != 0 {
		t.Errorf("%d, %v", epoch, err)
	}

	second := filepath.Base(p.found("a")[1])
	text, err := os.ReadFile("a/" + second)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(text)
	flipped[len(flipped)-1] ^= 1
	other := pieces{run: "other", width: 8, epochs: 10}
	if err := os.Mkdir("other", 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := other.split("run", "other", 3, 2500, 1<<20); err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(other.found("other")[1])
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func()
		p      pieces
		want   string
	}{
		"missing": {func() {
			if err := os.Remove("b/" + second); err != nil {
				t.Fatal(err)
			}
		}, p, "b/" + second + " is missing, without which"},
		"earlier":     {func() { put(t, "b/"+second, string(text)) }, p, "b/" + second + ", of epoch 3, does not belong to the other parts, of epoch 5"},
		"damaged":     {func() { put(t, "b/"+second, string(flipped)) }, p, "b/" + second + " is damaged"},
		"truncated":   {func() { put(t, "b/"+second, string(text[:len(text)/2])) }, p, "b/" + second + " is damaged"},
		"empty":       {func() { put(t, "b/"+second, "") }, p, "b/" + second + " is damaged"},
		"foreign":     {func() { put(t, "b/"+second, string(foreign)) }, p, "b/" + second + " is a part of other and not of simclr-run"},
		"wider":       {func() {}, pieces{run: p.run, width: 16, epochs: 10}, "the parts in b are of a run with -width 8 -epochs 10; give these"},
		"more epochs": {func() {}, pieces{run: p.run, width: 8, epochs: 20}, "the parts in b are of a run with -width 8 -epochs 10; give these"},
	} {
		write("b", " after five", 5)
		c.change()
		if _, err := c.p.join("again", "b"); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
	if size, err := p.split("run", "b", 6, 2500, 100); err != nil || size <= 100 || len(p.found("b")) > 0 {
		t.Errorf("%d, %v, %v", size, err, p.found("b"))
	}
}

func TestImagesAreUnpacked(t *testing.T) {
	folder(t)
	put(t, "cifar10/train/cat/1.jpg", "a cat")
	if err := os.RemoveAll("data/cifar10"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-cJf", "data/cifar10-jpeg.tar.xz", "cifar10").CombinedOutput(); err != nil {
		t.Skipf("no tar with xz: %s", out)
	}
	for range 2 {
		if err := cifar10(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile("data/cifar10/train/cat/1.jpg"); err != nil || string(text) != "a cat" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.RemoveAll("data/cifar10"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-cJf", "data/cifar10-jpeg.tar.xz", "programs/version").CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cifar10(over); err != errOver {
		t.Errorf("after the end of the visit, the error is %v", err)
	}
	if err := cifar10(t.Context()); err == nil || !strings.Contains(err.Error(), "has no folder cifar10") {
		t.Errorf("the error is %v", err)
	}
}

func TestWriteDown(t *testing.T) {
	folder(t)
	for _, step := range []string{"ops", "table", "parametric", "simclr-run"} {
		if _, err := carryOut(t, step); err != nil {
			t.Fatal(err)
		}
	}
	put(t, "gpu.md", "# GPUs\n\n"+beginMark+"\nNot yet.\n"+endMark+"\n\nThe end.\n")
	for range 2 {
		if err := run(t.Context(), []string{"-report", "out", "-into", "gpu.md"}, new(bytes.Buffer)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# GPUs\n\n" + beginMark + "\n| step |", endMark + "\n\nThe end.\n",
		"| ops |", "cne 1.2: computing on cuda:0, a Pretence\n", "\ntable, parametric: nothing can be written to /x, so that ….\n", "\nsimclr-run: convolutions are computed by cuDNN 9.1.\n",
		"| Neg-t-SNE of MNIST, table, b=1024, 750 epochs | 2.5 s | at most 10 s | yes |",
		"| Neg-t-SNE of MNIST, table, b=2¹⁹, 750 epochs | 2.5 s | at most 1 s | no |",
		"| model/op |  | 1 | 1 | 0 |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nlacks %q", text, want)
		}
	}
	if strings.Contains(string(text), "Not yet") {
		t.Error("what stood there before is still there")
	}
	put(t, "bare.md", "# Nothing\n")
	if err := run(t.Context(), []string{"-report", "out", "-into", "bare.md"}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "bare.md lacks the lines") {
		t.Errorf("the error is %v", err)
	}
	if err := run(t.Context(), []string{"-report", "bin", "-into", "gpu.md"}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "there is no report") {
		t.Errorf("the error is %v", err)
	}
}

// What is wrong with the command line, or with where the reports go, is said in one
// sentence.
func TestWrongUse(t *testing.T) {
	folder(t)
	put(t, "file", "")
	for _, c := range []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"fly"}, `there is no step "fly"; take one of ops, table, `, true},
		{[]string{"ops", "-fast"}, "flag provided but not defined: -fast; README, beside run, says which", true},
		{[]string{"-minutes", "0"}, "-minutes must be more than 0", true},
		{[]string{"ops", "-part-mib", "0"}, "-part-mib must be more than 0", true},
		{[]string{"-width", "0"}, "-width and -epochs must be 1 or more", true},
		{[]string{"ops", "-o", "file"}, "where the reports go", false},
	} {
		err := run(t.Context(), c.args, new(bytes.Buffer))
		var usage usageError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &usage) != c.usage || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: the error is %v, want %q", c.args, err, c.want)
		}
	}
	if r, err := carryOut(t, "ops", "-packages", "nonsense"); err != errFailed || !strings.Contains(r.Error, "the programs have no tests of nonsense") {
		t.Errorf("%v: %+v", err, r)
	}
	if err := os.Remove("programs/version"); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"ops"}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "there is no programs/version") {
		t.Errorf("the error is %v", err)
	}
}
