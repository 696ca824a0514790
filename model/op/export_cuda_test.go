//go:build cu

package op

// SetIm2colBytes bounds the matrix of patches on a device to n bytes, until restore is
// called.
func SetIm2colBytes(n int) (restore func()) {
	before := im2colBytes
	im2colBytes = n
	return func() { im2colBytes = before }
}
