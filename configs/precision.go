package configs

import "cne/model/op"

// The values of device.precision: the rounding of factors in matrix products and
// convolutions. Sums and weights are always float32.
const (
	// Float32 rounds nothing.
	Float32 = "float32"
	// TF32 rounds to 10 stored bits of mantissa on a GPU. A CPU rounds nothing.
	TF32 = "tf32"
	// BF16 rounds to 7 stored bits of mantissa in the convolutions of cne simclr, and as
	// TF32 does in all other products.
	BF16 = "bf16"
)

// RoundsToTF32 reports whether products may be rounded to TF32 on a GPU.
func (d *Device) RoundsToTF32() bool { return d.Precision == TF32 || d.Precision == BF16 }

// OfConvolutions returns the precision of the convolutions in training.
func (d *Device) OfConvolutions() op.Precision {
	if d.Precision == BF16 {
		return op.BFloat16
	}
	return op.Float32
}
