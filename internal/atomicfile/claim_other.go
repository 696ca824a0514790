//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package atomicfile

import "errors"

func claim(string) (release func(), err error) { return func() {}, errors.ErrUnsupported }
