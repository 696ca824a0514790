//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// nobody is the user who owns nothing, by custom.
const nobody = 65534

// An account is a user by number.
type account = syscall.Credential

// otherUser returns the user to run commands as: nobody if this is root, for whom
// nothing is forbidden, and else nil, this user.
func otherUser() *account {
	if os.Getuid() != 0 {
		return nil
	}
	return &account{Uid: nobody, Gid: nobody}
}

// ownGroup has a command run in a process group of its own, as a user.
func ownGroup(cmd *exec.Cmd, user *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: user}
	cmd.Cancel = func() error { return endGroup(cmd) }
}

// endGroup kills what is left of the group of a command.
func endGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
