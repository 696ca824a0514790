// Package paper tests the scripts beside it.
package paper

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writeImages makes a folder of images in two classes.
func writeImages(t *testing.T, folder string) {
	t.Helper()
	for _, part := range []string{"train", "test"} {
		for class := range 2 {
			path := filepath.Join(folder, part, fmt.Sprint(class))
			if err := os.MkdirAll(path, 0o777); err != nil {
				t.Fatal(err)
			}
			for i := range 6 {
				im := image.NewRGBA(image.Rect(0, 0, 8, 8))
				for p := range 64 {
					im.SetRGBA(p%8, p/8, color.RGBA{uint8(200 * class), uint8(40 * i), uint8(3 * p), 255})
				}
				f, err := os.Create(filepath.Join(path, fmt.Sprintf("%d.png", i)))
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(png.Encode(f, im), f.Close()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// table1 runs the script with its arguments.
func table1(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	script, err := filepath.Abs("table1")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), environ...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// tiny are the arguments of two short runs.
func tiny(images, out string, more ...string) []string {
	return append(append([]string{"-m", "full 2", "-s", "5"}, more...), images, out, "--", "--quiet",
		"--set", "views.size=8", "--set", "network.width=2", "--set", "train.batch_size=8", "--set", "train.warm_up=0",
		"--epochs", "2", "--set", "monitor.every=0", "--set", "evaluate.test=6", "--set", "evaluate.k=3")
}

func needBash(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
}

const heads = "| run | runs | kNN accuracy | linear accuracy |"

func TestTable1(t *testing.T) {
	needBash(t)
	folder := t.TempDir()
	images, out := filepath.Join(folder, "the images"), filepath.Join(folder, "the runs")
	writeImages(t, images)
	stdout, stderr, code := table1(t, nil, tiny(images, out)...)
	if code != 0 || !strings.Contains(stdout, heads) || !strings.Contains(stdout, "\n| m002 | 1 | ") || !strings.Contains(stdout, "\n| mfull | 1 | ") {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	// What is done is not done again, and what was interrupted goes on.
	done := filepath.Join(out, "m002-5", "metrics.json")
	if err := os.Remove(done); err != nil {
		t.Fatal(err)
	}
	again, stderr, code := table1(t, nil, tiny(images, out)...)
	if code != 0 || !strings.Contains(again, heads) || !strings.Contains(stderr, "mfull-5 is done") || strings.Contains(stderr, "m002-5 is done") {
		t.Errorf("exit code %d\n%s\n%s", code, again, stderr)
	}
}

// A job array, of which a stand-in for sbatch runs one job after the other.
func TestTable1AsAnArray(t *testing.T) {
	needBash(t)
	folder := t.TempDir()
	images, out := filepath.Join(folder, "images"), filepath.Join(folder, "runs")
	writeImages(t, images)
	const sbatch = `#!/usr/bin/env bash
for last; do :; done
printf '%s\n' "$@" | grep -qx -- '--array=0-1' || exit 3
for id in 0 1; do SLURM_ARRAY_TASK_ID=$id bash -c "$last" || exit; done
echo 42
`
	if err := os.WriteFile(filepath.Join(folder, "sbatch"), []byte(sbatch), 0o777); err != nil {
		t.Fatal(err)
	}
	path := []string{"PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")}
	stdout, stderr, code := table1(t, path, tiny(images, out, "--array")...)
	if code != 0 || stdout != "42\n" {
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
	for _, name := range []string{"m002-5", "mfull-5"} {
		if _, err := os.Stat(filepath.Join(out, name, "metrics.json")); err != nil {
			log, _ := os.ReadFile(filepath.Join(out, name+".log"))
			t.Errorf("%v\n%s", err, log)
		}
	}
	stdout, stderr, code = table1(t, path, tiny(images, out, "--array")...)
	if code != 0 || !strings.Contains(stdout, heads) {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
	}
}

func TestTable1BadInput(t *testing.T) {
	needBash(t)
	out := t.TempDir()
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "usage:"},
		{[]string{"--frobnicate"}, 2, "usage:"},
		{[]string{"-m"}, 2, "usage:"},
		{[]string{"nowhere", out}, 1, "there is no nowhere; give CIFAR-10's archive"},
		{[]string{"-c", "nowhere.yaml", ".", out}, 1, "there is no configuration nowhere.yaml"},
		{[]string{"-s", "", ".", out}, 2, "there is nothing to run"},
	} {
		if stdout, stderr, code := table1(t, nil, tc.args...); code != tc.code || stdout != "" || !strings.Contains(stderr, tc.want) {
			t.Errorf("%q: exit code %d, %q", tc.args, code, stderr)
		}
	}
}
