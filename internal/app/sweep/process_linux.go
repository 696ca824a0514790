package sweep

import "syscall"

// A run has a process group of its own, so whoever interrupts this program's group
// does not interrupt the run as well: a second signal would end it before it has saved its
// state. It gets one if this program is killed.
func init() { attributes = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} }
