package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
[ "$epochs" != 13 ] || { echo "cne: thirteen is refused" >&2; exit 1; }
mkdir -p $folder
echo '{"knn": {"mean": 0.81, "std": 0.01}, "linear": {"mean": 0.85, "std": 0}}' >$folder/evaluation.json
n=${epochs:-750}
if [ "$n" = 7 ] && [ ! -e $folder/checkpoint.safetensors ]; then n=3; fi
[ -z "$epochs" ] || echo x >$folder/checkpoint.safetensors
rm -f $folder/metrics.jsonl.new
i=1
while [ $i -le $n ] && [ $i -le 10 ]; do echo "{\"epoch\": $i, \"loss\": 0.5, \"seconds\": $((i + 9))}"; i=$((i + 1)); done >$folder/metrics.jsonl
if [ "$n" = 3 ]; then exec sleep 100; fi
echo '{"knn_recall": 0.1, "epochs": '$n', "seconds": {"optimize": 2.5, "total": 9}, "version": "1.2"}' >$folder/metrics.json
`

// folder makes a folder as scripts/gpu-check fills it the current one.
func folder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("PATH", filepath.Join(mustGetwd(t), "bin")+":"+os.Getenv("PATH"))
	t.Setenv("PYTHON", "nothing")
	put(t, "programs/cne", program)
	put(t, "programs/packages", "model/op\ntrain\n")
	put(t, "programs/tests/model/op/package.test", `#!/bin/sh
[ "$CUDA_TESTS" = required ] || exit 3
echo "=== RUN   TestSumOnDevice
=== RUN   TestSumOnDevice/n=1
--- PASS: TestSumOnDevice (0.01s)
    --- PASS: TestSumOnDevice/n=1 (0.00s)
=== RUN   TestDeviceIsLost
    x.go:1: a GPU cannot be made to fail
--- SKIP: TestDeviceIsLost (0.00s)
PASS"
`)
	put(t, "programs/tests/train/package.test", "#!/bin/sh\necho '=== RUN   TestStepOnDevice'\necho '--- PASS: TestStepOnDevice (0.1s)'\n")
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
	failed := run(args, new(bytes.Buffer))
	r := new(report)
	if err := readJSON("report-"+args[0]+".json", r); err != nil {
		t.Fatalf("%v: %v, %v", args, failed, err)
	}
	return r, failed
}

func TestTests(t *testing.T) {
	folder(t)
	r, err := carryOut(t, "ops")
	if err != nil || len(r.Tests) != 2 || r.Tests[0].Package != "model/op" ||
		!slices.Equal(r.Tests[0].Passed, []string{"TestSumOnDevice"}) || !slices.Equal(r.Tests[0].Skipped, []string{"TestDeviceIsLost"}) ||
		!slices.Equal(r.Tests[1].Passed, []string{"TestStepOnDevice"}) {
		t.Errorf("%v: %+v", err, r)
	}

	// A test that fails, and one that ends its process.
	put(t, "programs/tests/train/package.test", "#!/bin/sh\necho '--- FAIL: TestA (0.1s)'\necho '=== RUN   TestB'\necho fatal\nexit 2\n")
	r, err = carryOut(t, "ops", "train")
	if err != errFailed || len(r.Tests) != 1 || !slices.Equal(r.Tests[0].Failed, []string{"TestA", "TestB"}) || !strings.Contains(r.Tests[0].Output, "fatal") {
		t.Errorf("%v: %+v", err, r)
	}
	put(t, "programs/tests/train/package.test", "#!/bin/sh\nexec sleep 100\n")
	r, err = carryOut(t, "ops", "-minutes", "0.01", "train", "model/op")
	if err != errFailed || !strings.Contains(r.Error, "time was over in train; name the packages that are left: train model/op") {
		t.Errorf("%v: %+v", err, r)
	}

	put(t, "bin/compute-sanitizer", "#!/bin/sh\necho \"$@\" >>../../../../sanitized\n[ \"$2\" != racecheck ] || exit 86\n")
	if r, err = carryOut(t, "memcheck", "model/op"); err != nil || r.Tests[0].Tool != "memcheck" {
		t.Errorf("%v: %+v", err, r)
	}
	if r, err = carryOut(t, "racecheck", "model/op"); err != errFailed || len(r.Tests[0].Failed) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
	said, err := os.ReadFile("sanitized")
	if want := "--tool memcheck --report-api-errors no --error-exitcode 86 ./package.test -test.v -test.run Device|Remote"; err != nil || !strings.HasPrefix(string(said), want) {
		t.Errorf("compute-sanitizer was given %s, want %s (%v)", said, want, err)
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
	// The first epoch, of 10 s, does not count.
	r, err = carryOut(t, "parametric", "-epochs", "5")
	if err != nil || len(r.Runs) != 1 || r.Runs[0].Figure != 1 || r.Runs[0].reached() {
		t.Errorf("%v: %+v", err, r)
	}
	r, err = carryOut(t, "table", "-epochs", "13")
	if err != errFailed || !strings.Contains(r.Error, "thirteen is refused") {
		t.Errorf("%v: %+v", err, r)
	}
	r, err = carryOut(t, "simclr")
	if err != nil || len(r.Runs) != 1 || r.Runs[0].Figure != 1 || !strings.HasPrefix(r.Note, "PyTorch was not measured") {
		t.Errorf("%v: %+v", err, r)
	}
	// A step of PyTorch that takes 2048 views per second, for 58 batches of as many.
	put(t, "bin/python", "#!/bin/sh\ncase $1 in -c) echo 9.0;; *) echo 2048 2048;; esac\n")
	t.Setenv("PYTHON", "python")
	r, err = carryOut(t, "simclr")
	if err != nil || len(r.Runs) != 3 || r.Runs[1].Figure != 58 || r.Runs[2].Figure != 58 || !strings.HasPrefix(r.Runs[1].Name, "PyTorch 9.0") {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestLongRunGoesOn(t *testing.T) {
	folder(t)
	r, err := carryOut(t, "simclr-run", "-epochs", "7", "-minutes", "0.03")
	if err != nil || len(r.Runs) != 1 || r.Runs[0].Figure != 3 || !strings.Contains(r.Note, "goes on") {
		t.Errorf("%v: %+v", err, r)
	}
	r, err = carryOut(t, "simclr-run", "-epochs", "7")
	if err != nil || len(r.Runs) != 3 || r.Runs[0].Figure != 7 || r.Runs[1].Figure != 81 || !r.Runs[1].reached() || r.Note != "" {
		t.Errorf("%v: %+v", err, r)
	}
	calls, err := os.ReadFile("calls")
	if lines := strings.Split(strings.TrimSpace(string(calls)), "\n"); err != nil || len(lines) != 3 ||
		!strings.Contains(lines[0], "--config") || !strings.Contains(lines[1], "--resume runs/simclr-run") || !strings.HasPrefix(lines[2], "simclr evaluate") {
		t.Errorf("cne was called as %s (%v)", calls, err)
	}
}

func TestUnpack(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := unpack("a.tar.xz", "a"); err == nil || !strings.Contains(err.Error(), "there is no a.tar.xz") {
		t.Errorf("the error is %v", err)
	}
	put(t, "a/b/c", "text")
	if out, err := exec.Command("tar", "-cJf", "a.tar.xz", "a").CombinedOutput(); err != nil {
		t.Skipf("no tar with xz: %s", out)
	}
	if err := os.RemoveAll("a"); err != nil {
		t.Fatal(err)
	}
	if err := unpack("a.tar.xz", "a"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile("a/b/c"); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWriteDown(t *testing.T) {
	folder(t)
	for _, step := range []string{"ops", "table"} {
		if _, err := carryOut(t, step); err != nil {
			t.Fatal(err)
		}
	}
	put(t, "gpu.md", "# GPUs\n\n"+beginMark+"\nNot yet.\n"+endMark+"\n\nThe end.\n")
	for range 2 {
		if err := run([]string{"-report", ".", "-in", "gpu.md"}, new(bytes.Buffer)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("gpu.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# GPUs\n\n" + beginMark + "\n| step |", endMark + "\n\nThe end.\n",
		"| ops |", "cne 1.2: computing on cuda:0, a Pretence\n",
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
	if err := run([]string{"-report", ".", "-in", "bare.md"}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "bare.md lacks the lines") {
		t.Errorf("the error is %v", err)
	}
	if err := run([]string{"-report", "bin", "-in", "gpu.md"}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "there is no report") {
		t.Errorf("the error is %v", err)
	}
	if err := run([]string{"fly"}, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), `there is no step "fly"; take one of ops`) {
		t.Errorf("the error is %v", err)
	}
}
