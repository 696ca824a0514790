//go:build cu

package op

// SetIm2colBytes sets how many bytes of patches are laid out at a time on a device,
// until restore is called.
func SetIm2colBytes(n int) (restore func()) {
	before := im2colBytes
	im2colBytes = n
	return func() { im2colBytes = before }
}
