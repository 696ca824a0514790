package vm

import "cne/model/op"

// Elements returns the number of elements of the program's own arrays, after a run.
func (p *Program) Elements() int {
	seen, n := map[*op.Array]bool{}, 0
	for _, s := range p.steps {
		if !seen[s.out] {
			seen[s.out] = true
			n += s.out.Cap()
		}
	}
	return n
}
