package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cne/configs"
)

// What is wrong on the command line of a script is said in one sentence, before
// anything is built or written.
func TestScripts(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
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
		{"fig1", "", []string{empty, "-o", ""}, 2, usage},
		{"fig1", "", []string{"-o", out, ""}, 1, "there is no folder without a name; give the one with MNIST's four files"},
		{"fig1", "", []string{"-o", out, "nowhere"}, 1, "there is no folder nowhere; give the one with MNIST's four files"},
		{"fig1", "", []string{"-o", out, empty}, 1, "there is no train-images-idx3-ubyte in " + empty},
		{"figS9", "EPOCHS=0", []string{"-o", out, empty}, 2, "EPOCHS is 0, but must be a whole number of at least 1"},
		{"fig3", "EPOCHS=many", []string{"-o", out, empty}, 2, "EPOCHS is many, but must be a whole number of at least 1"},
		{"figS5", "", []string{"-o", "", "--", "-help"}, 2, usage},
	} {
		cmd := exec.Command("bash", append([]string{tc.script}, tc.args...)...)
		cmd.Env = append(os.Environ(), tc.environ)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		code, said := cmd.ProcessState.ExitCode(), stderr.String()
		if code != tc.code || stdout.Len() > 0 || !strings.Contains(said, tc.want) || tc.want != usage && strings.Count(said, "\n") != 1 {
			t.Errorf("%s %s %q: exit code %d, %q", tc.environ, tc.script, tc.args, code, said)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a folder for the runs is there")
	}
}

func TestTable1(t *testing.T) {
	s, err := configs.ReadSweep(t.Context(), "table1.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if first := s.Values(0); len(s.Runs) != 15 || first["loss.negatives"] != "2" || first["seed"] != "0" {
		t.Errorf("got %d runs, the first with %v, want 15, the first with 2 negatives and seed 0", len(s.Runs), first)
	}
}
