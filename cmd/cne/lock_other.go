//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

// lock does nothing here: there is no lock that ends with the process.
func (d *runDir) lock() (unlock func(), err error) { return func() {}, nil }
