package op

import (
	"slices"

	"cne/internal/blas"
	"cne/internal/errkind"
)

// A Precision says to what the factors of a convolution's products are rounded before
// they are multiplied. Sums are float32 in any case, and so is all that the CPU stores; an
// accelerator stores the results of convolutions in bfloat16 that it computes so, and what
// is computed of these (see ResultDtype).
type Precision int

const (
	// Float32 rounds nothing.
	Float32 Precision = iota
	// BFloat16 rounds to 8 bits of mantissa, with the exponents of float32.
	BFloat16
)

var precisionNames = errkind.Names[Precision]{
	Package: "op", Type: "Precision", What: "precision", Err: ErrInput,
	Words: []string{"float32", "bf16"},
}

func (p Precision) String() string { return precisionNames.String(p) }

// MarshalText implements encoding.TextMarshaler by the precision's name.
func (p Precision) MarshalText() ([]byte, error) { return precisionNames.Text(p) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Precision) UnmarshalText(text []byte) error { return precisionNames.Parse(p, text) }

// Words returns the names of all precisions.
func (Precision) Words() []string { return slices.Clone(precisionNames.Words) }

// Native reports whether the processor has instructions for such products. Where it has none,
// they are the same but take far longer.
func (p Precision) Native() bool { return p == Float32 || blas.BFloat16() }

// suffix is what the names of operations of other precisions than float32 end with.
func (p Precision) suffix() string {
	if p == Float32 {
		return ""
	}
	return "_" + p.String()
}
