package process

import (
	"os/exec"
	"syscall"
)

// Separate puts a command into a process group of its own, so that whoever interrupts
// this program's group does not interrupt the command as well: a second signal would end
// it before it has saved its state. It gets one when its context ends, and if this
// program is killed: SIGTERM, which unlike SIGINT nobody ignores for what runs in the
// background.
func Separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	// A tool need not pass the signal on to what it runs.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// Wait waits for a command that has been started, and ends what it has left running.
func Wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly there is nothing left
	return err
}
