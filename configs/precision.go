package configs

import (
	"errors"
	"slices"

	"cne/internal/kind"
	"cne/model/op"
)

// A Precision is the rounding of factors in matrix products and convolutions. Sums and
// weights are always float32.
type Precision int

const (
	// Float32 rounds nothing.
	Float32 Precision = iota
	// TF32 rounds to 10 stored bits of mantissa on a GPU. A CPU rounds nothing.
	TF32
	// BF16 rounds to 7 stored bits of mantissa in the convolutions of cne simclr, and as
	// TF32 does in all other products.
	BF16
)

var precisionNames = kind.Names[Precision]{
	Package: "configs", Type: "Precision", What: "precision", Err: errPrecision,
	Words: []string{"float32", "tf32", "bf16"},
}

// errPrecision is wrapped by errors about words that name no precision.
var errPrecision = errors.New("configs: no such precision")

func (p Precision) String() string { return precisionNames.String(p) }

// MarshalText implements encoding.TextMarshaler by the precision's name.
func (p Precision) MarshalText() ([]byte, error) { return precisionNames.Text(p) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Precision) UnmarshalText(text []byte) error { return precisionNames.Parse(p, text) }

// Words returns the names of all precisions.
func (Precision) Words() []string { return slices.Clone(precisionNames.Words) }

// RoundsToTF32 reports whether products may be rounded to TF32 on a GPU.
func (d *Device) RoundsToTF32() bool { return d.Precision != Float32 }

// OfConvolutions returns the precision of the convolutions in training.
func (d *Device) OfConvolutions() op.Precision {
	if d.Precision == BF16 {
		return op.BFloat16
	}
	return op.Float32
}
