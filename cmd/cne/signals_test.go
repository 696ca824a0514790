//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// underShell is program with a shell command that sets up the process before.
func underShell(t *testing.T, before string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", before + `; exec "$0" "$@"`, self}, args...)...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &stderr
}

// waitWithin waits for a process, which it kills after some seconds.
func waitWithin(t *testing.T, cmd *exec.Cmd, seconds int) error {
	t.Helper()
	killer := time.AfterFunc(time.Duration(seconds)*time.Second, func() {
		t.Errorf("the program did not end within %d s", seconds)
		_ = cmd.Process.Kill()
	})
	defer killer.Stop()
	return cmd.Wait()
}

// What nohup, or a shell's &, has told the program to ignore does not end it.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 120, 6)
	cmd, stderr := underShell(t, "trap '' INT HUP", append(longRun("table"), "--epochs", "400")...)
	waitForRecords(t, 2)
	must(t, cmd.Process.Signal(os.Interrupt))
	must(t, cmd.Process.Signal(syscall.SIGHUP))
	if err := waitWithin(t, cmd, 60); err != nil || len(readRecords(t, "run/metrics.jsonl")) != 400 {
		t.Fatalf("%v: %s", err, stderr)
	}
	// SIGTERM is another thing.
	cmd, stderr = underShell(t, "trap '' INT HUP", append(longRun("table"), "--force", "--epochs", "1000000")...)
	time.Sleep(100 * time.Millisecond) // the folder has the records of the first run
	waitForRecords(t, 2)
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := waitWithin(t, cmd, 60); err == nil || cmd.ProcessState.ExitCode() != exitFailure {
		t.Fatalf("%v: %s", err, stderr)
	}
}

// programWithPipes starts the program with a pipe as its stderr, and as its stdout if
// that is asked for, and returns their other end.
func programWithPipes(t *testing.T, both bool, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	cmd.Stderr = w
	if both {
		cmd.Stdout = w
	}
	must(t, cmd.Start())
	must(t, w.Close())
	return cmd, r
}

// A run goes on when nobody reads its messages any longer, and leaves all its files.
func TestReaderOfStderrGoesAway(t *testing.T) {
	for name, both := range map[string]bool{"stderr": false, "stderr and stdout": true} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writePoints(t, "points.csv", 120, 6)
			cmd, messages := programWithPipes(t, both, "train", "--log-format", "json", "--set", "data.path=points.csv", "--set", "data.label_column=kind",
				"--set", "graph.k=5", "--epochs", "50", "-o", "run")
			if _, err := bufio.NewReaderSize(messages, 16).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			must(t, messages.Close())
			_ = waitWithin(t, cmd, 60)
			want := exitOK
			if both {
				want = exitPipe
			}
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("%v, want exit code %d", cmd.ProcessState, want)
			}
			for _, name := range []string{"checkpoint.safetensors", "metrics.json", "embedding.png"} {
				if _, err := os.Stat("run/" + name); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// That nobody reads the results is no failure to be told.
func TestReaderOfStdoutGoesAway(t *testing.T) {
	for _, args := range [][]string{
		{"train", "--quiet", "--set", "data.path=points.csv", "--set", "data.label_column=kind", "--set", "graph.k=5", "--epochs", "5", "-o", "run"},
		{"evaluate", "run", "--json"},
		{"config"},
	} {
		if args[0] == "train" {
			t.Chdir(t.TempDir())
			writePoints(t, "points.csv", 120, 6)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		must(t, r.Close())
		cmd := exec.Command(self, args...)
		cmd.Env = append(os.Environ(), mainVariable+"=1")
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = w, &stderr
		must(t, cmd.Start())
		must(t, w.Close())
		_ = waitWithin(t, cmd, 60)
		if code := cmd.ProcessState.ExitCode(); code != exitPipe || strings.Contains(stderr.String(), "cne:") {
			t.Errorf("%s: %v, stderr %q", args[0], cmd.ProcessState, stderr.String())
		}
		for _, name := range []string{"checkpoint.safetensors", "metrics.json"} {
			if _, err := os.Stat("run/" + name); err != nil {
				t.Error(err)
			}
		}
	}
}

// The first signal asks for an end, which what the program waits for may put off; the
// second is the end.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	writePoints(t, "points.csv", 40, 3)
	cmd, messages := programWithPipes(t, false, "train", "--log-format", "json", "--set", "data.path=points.csv", "--set", "data.label_column=kind",
		"--set", "graph.k=5", "--epochs", "1000000", "-o", "run")
	defer messages.Close()
	waitForRecords(t, 1)
	// Once nobody reads what fills the pipe, no epoch ends.
	for before := -1; ; time.Sleep(200 * time.Millisecond) {
		text, err := os.ReadFile("run/metrics.jsonl")
		must(t, err)
		if len(text) == before {
			break
		}
		before = len(text)
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	must(t, cmd.Process.Signal(os.Interrupt)) // the same, sent to a process and to its group
	time.Sleep(time.Second)
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatalf("the first signal has ended the program: %v", err)
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	_ = waitWithin(t, cmd, 10)
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("%v", cmd.ProcessState)
	}
}
