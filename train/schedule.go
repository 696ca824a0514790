package train

import (
	"math"

	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/model/op"
)

// Schedule says how the learning rate falls over a phase of T epochs, after W epochs
// of warm-up.
type Schedule int

const (
	// Linear lowers the learning rate once per epoch, to lr·(1 − (t−W)/(T−W)) in epoch t of
	// the phase, counted from 0, as in the paper. The last epoch has lr/(T−W).
	Linear Schedule = iota
	// Constant keeps the learning rate.
	Constant
	// Cosine lowers the learning rate to 0 along half a cosine, to lr·½(1 + cos
	// π(t−W)/(T−W)), with every batch: t is fractional. The paper's program uses whole
	// epochs.
	Cosine
)

// learningRateAt returns the learning rate for a batch of an epoch, given the phase's
// epochs and an epoch's batches. In the first warmUp epochs it rises linearly from 0 with
// every batch.
func learningRateAt(a Schedule, lr float64, epoch, batch, batches, warmUp, epochs int) float64 {
	now := float64(epoch) + float64(batch)/float64(batches)
	if epoch < warmUp {
		return lr * now / float64(warmUp)
	}
	rest := float64(epochs - warmUp)
	switch a {
	case Linear:
		return lr * (1 - float64(epoch-warmUp)/rest)
	case Cosine:
		return lr * (1 + elementary.CosPi((now-float64(warmUp))/rest)) / 2
	}
	return lr
}

// A Normalization gives the constant of a loss at a position s on the spectrum from t-SNE
// (s = 0) to UMAP (s = 1). s may be any real number. It is the slider of the authors'
// later program; the paper varies Z̄ (Sec. 5).
//
// For Neg-t-SNE, s gives the normalisation constant
//
//	Z̄ = Z_tsne^(1−s) · Z_umap^s  with  Z_tsne = 100·n and Z_umap = n²/5,
//
// and for InfoNC-t-SNE the divisor ρ = 4^s of the repulsive term. For n < 70 000, the size
// of MNIST, Z_tsne is 100·n·√(n/70 000). The reason is that t-SNE's own partition function
// per point decreases as n decreases, and that the paper's 100·n would exceed Z_umap for n
// < 500.
type Normalization struct {
	// N is the number of points.
	N int
}

// ZBar returns Neg-t-SNE's normalisation constant at s.
func (p Normalization) ZBar(s float64) float64 {
	n := float64(p.N)
	zTSNE := 100 * n * math.Sqrt(min(1, n/70000))
	return elementary.Exp(float64((1-s)*elementary.Log(zTSNE)) + float64(s*elementary.Log(n*n/5)))
}

// Z returns NC-t-SNE's estimate of the partition function of N points,
// exp(log Z)·N(N−1). It may be infinite.
func (p Normalization) Z(logZ float64) float64 {
	n := float64(p.N)
	return elementary.Exp(logZ) * n * (n - 1)
}

// LogConst returns the logarithm of the loss's constant, as op.Contrastive takes it:
//   - for Neg-t-SNE log c with c = Z̄·m/|X|, where |X| = n² and m is the number of
//     negatives of each edge;
//   - for InfoNC-t-SNE log ρ;
//   - for other losses 0.
func (p Normalization) LogConst(loss op.Loss, at SpectrumParam, m int) float64 {
	logC := func(zBar float64) float64 {
		return elementary.Log(zBar) + elementary.Log(float64(m)) - float64(2*elementary.Log(float64(p.N)))
	}
	switch constant := loss.Info().Constant; {
	case constant == op.FixedZ && at.ZBar != nil && *at.ZBar != 0:
		return logC(*at.ZBar)
	case constant == op.FixedZ && at.S != nil:
		return logC(p.ZBar(*at.S))
	case constant == op.Divisor && at.S != nil:
		return *at.S * elementary.Log(4)
	}
	return 0
}

// A SpectrumParam is the position of a loss on the spectrum from t-SNE to UMAP. At most
// one of S and ZBar may be set. The zero value means c = 1 for Neg-t-SNE, the paper's Z̄ =
// |X|/m, and ρ = 1 for InfoNC-t-SNE.
type SpectrumParam struct {
	// S is the position on the slider, for Neg-t-SNE and InfoNC-t-SNE.
	S *float64 `key:"s"`
	// ZBar is a fixed normalisation constant above 0, for Neg-t-SNE, or 0 for |X|/m.
	ZBar *float64 `key:"z_bar" in:"(0,inf)" words:"uniform=0"`
}

// FromS returns the position s on the slider.
func FromS(s float64) SpectrumParam { return SpectrumParam{S: &s} }

// FromZBar returns the position with the normalisation constant z.
func FromZBar(z float64) SpectrumParam { return SpectrumParam{ZBar: &z} }

// Given reports whether S or ZBar is given.
func (p SpectrumParam) Given() bool { return p.S != nil || p.ZBar != nil }

// Exaggerated returns the position during early exaggeration: at least s = 1. A position
// that is not given by S does not change.
func (p SpectrumParam) Exaggerated() SpectrumParam {
	if p.S == nil {
		return p
	}
	return FromS(max(*p.S, 1))
}

var scheduleNames = kind.Names[Schedule]{Package: "train", Type: "Schedule", What: "schedule", Err: ErrInput,
	Words: []string{"linear", "none", "cosine"}}

func (a Schedule) String() string { return scheduleNames.String(a) }

// MarshalText implements encoding.TextMarshaler: Constant is "none".
func (a Schedule) MarshalText() ([]byte, error) { return scheduleNames.Text(a) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Schedule) UnmarshalText(text []byte) error { return scheduleNames.Parse(a, text) }

// Words returns the names of all schedules; "none" comes last.
func (Schedule) Words() []string { return []string{"linear", "cosine", "none"} }
