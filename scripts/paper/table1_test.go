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
	return script(t, "table1", environ, args...)
}

// script runs one of the scripts beside this file.
func script(t *testing.T, name string, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	script, err := filepath.Abs(name)
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
		{[]string{"-s", "0 x", ".", out}, 2, `-s has "x", but must be whole numbers of at least 0`},
		{[]string{"-s", "01", ".", out}, 2, `-s has "01"`},
		{[]string{"-m", "2 0", "--array", ".", out}, 2, `-m has "0", but must be whole numbers of at least 1, or full`},
		{[]string{"-m", "*", ".", out}, 2, `-m has "*"`},
		{[]string{"-m", "2 16 2", "-s", "1", "--array", ".", out}, 2, "-m 2 with -s 1 is there twice"},
		{[]string{"-m", "2 full", "-s", "1 1", ".", out}, 2, "-m 2 with -s 1 is there twice"},
		{[]string{"--task", "15", ".", out}, 1, "there is no run 15; they are numbered from 0 to 14"},
		{[]string{"--task", "all", ".", out}, 1, "there is no run all; they are numbered from 0 to 14"},
	} {
		if stdout, stderr, code := table1(t, nil, tc.args...); code != tc.code || stdout != "" || !strings.Contains(stderr, tc.want) {
			t.Errorf("%q: exit code %d, %q", tc.args, code, stderr)
		}
	}
}

// What is wrong on the command line is said in one sentence, before anything is built or
// written; every script for MNIST has the same.
func TestBadInput(t *testing.T) {
	needBash(t)
	folder := t.TempDir()
	out, empty := filepath.Join(folder, "runs"), filepath.Join(folder, "empty")
	if err := os.Mkdir(empty, 0o777); err != nil {
		t.Fatal(err)
	}
	const usage = "usage: "
	for _, tc := range []struct {
		script, environ string
		args            []string
		code            int
		want            string
	}{
		{"fig1", "", nil, 2, usage},
		{"fig1", "needs_mnist=no", []string{"-o", out}, 2, usage},
		{"fig1", "", []string{empty, "-o"}, 2, usage},
		{"fig1", "", []string{empty, "-o", ""}, 2, usage},
		{"fig1", "", []string{"-o", out, ""}, 1, "there is no folder without a name; give the one with MNIST's four files"},
		{"fig1", "", []string{"-o", out, "nowhere"}, 1, "there is no folder nowhere; give the one with MNIST's four files"},
		{"fig1", "", []string{"-o", out, empty}, 1, "there is no train-images-idx3-ubyte in " + empty},
		{"figS9", "EPOCHS=0", []string{"-o", out, empty}, 2, "EPOCHS is 0, but must be a whole number of at least 1"},
		{"fig3", "EPOCHS=many", []string{"-o", out, empty}, 2, "EPOCHS is many, but must be a whole number of at least 1"},
		{"figS5", "", []string{"-o", "", "--", "-help"}, 2, usage},
	} {
		stdout, stderr, code := script(t, tc.script, []string{tc.environ}, tc.args...)
		if code != tc.code || stdout != "" || !strings.Contains(stderr, tc.want) || tc.want != usage && strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s %s %q: exit code %d, %q", tc.environ, tc.script, tc.args, code, stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a folder for the runs is there")
	}
}
