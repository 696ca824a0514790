//go:build cgo && linux

package main

func init() { withC = true }
