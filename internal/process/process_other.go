//go:build !linux

package process

import (
	"os"
	"os/exec"
)

// Separate has a command interrupted when its context ends. Whoever interrupts this
// program from a terminal interrupts the command, too.
func Separate(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
}

// Wait waits for a command that has been started.
func Wait(cmd *exec.Cmd) error { return cmd.Wait() }
