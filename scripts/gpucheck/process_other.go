//go:build !linux

package main

import "os/exec"

// separate is needed where there are GPUs alone, on Linux.
func separate(*exec.Cmd) {}

// wait waits for a command that has been started.
func wait(cmd *exec.Cmd) error { return cmd.Wait() }
