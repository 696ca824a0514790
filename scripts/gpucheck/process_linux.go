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
}
