package main

import (
	"os/exec"
	"syscall"
)

// separate puts a command into a process group of its own, so that whoever interrupts
// the check's group does not interrupt the command as well: it gets one signal, from
// the check, since a second one would end it before it has saved its state. It gets
// that, too, if the check is killed.
func separate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	// A tool need not pass the signal on to what it runs.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}

// wait waits for a command that has been started, and ends what it has left running.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly there is nothing left
	return err
}
