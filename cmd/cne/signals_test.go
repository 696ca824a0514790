//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// The first signal asks the program to end, which may take time; the second ends it at
// once.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	folderOf(t, 40, 3)
	self, err := os.Executable()
	must(t, err)
	messages, stderr, err := os.Pipe()
	must(t, err)
	defer messages.Close()
	cmd := exec.Command(self, short("--log-format", "json", "--epochs", "1000000")...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	cmd.Stderr = stderr
	must(t, cmd.Start())
	must(t, stderr.Close())
	waitForRecords(t, 1)
	// Once the pipe is full, no epoch ends.
	for before := -1; ; time.Sleep(200 * time.Millisecond) {
		text := readText(t, "run/metrics.jsonl")
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
