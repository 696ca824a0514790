// Package start looks, before a program begins, whether it can: whoever imports it has the
// process end with a sentence where the address space is limited to less than Go's runtime
// takes for itself. Only programs do; Check is for what is left when their main begins.
package start

import (
	"fmt"

	"cne/internal/memory"
)

// leastAddressSpace is what any command needs of it in bytes, for threads and blocks of
// the heap.
const leastAddressSpace = 128 << 20

// Check says why the program cannot begin.
func Check() error {
	left, ok := memory.AddressSpace()
	if !ok || left.Bytes >= leastAddressSpace {
		return nil
	}
	return fmt.Errorf("%s leaves %s, too little to begin with; raise it, to 2000000 kB or more for the address space, or limit the memory by GOMEMLIMIT or a control group", left.Source, memory.Format(left.Bytes))
}
