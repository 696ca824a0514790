package device

// Pieces are pieces of a device's memory with one lifetime.
type Pieces []*Memory

// AllocPieces allocates a piece for each number of bytes: all of them, or none and
// Alloc's error.
func (d *Device) AllocPieces(bytes ...int) (Pieces, error) {
	var p Pieces
	for _, n := range bytes {
		m, err := d.Alloc(n)
		if err != nil {
			p.Free()
			return nil, err
		}
		p = append(p, m)
	}
	return p, nil
}

// At returns where the i-th piece begins.
func (p Pieces) At(i int) Pointer { return p[i].Pointer() }

// Free gives all of them back.
func (p Pieces) Free() {
	for _, m := range p {
		m.Free()
	}
}
