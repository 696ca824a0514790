// Package process runs other programs that save their state when they are interrupted.
package process
