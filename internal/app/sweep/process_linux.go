package sweep

import "syscall"

// A run has its own process group. An interruption of this program's group therefore does
// not reach the run, where a second signal would end it before it has saved its state.
// The run gets a signal if this program is killed.
func init() { attributes = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} }
