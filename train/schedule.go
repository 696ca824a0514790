package train

import "math"

// Schedule says how the step size falls over a phase of T epochs, after W epochs
// of warm-up.
type Schedule int

const (
	// Linear lets it fall to 0 by epoch, lr·(1 − (t−W)/(T−W)) in epoch t: the
	// paper's protocol.
	Linear Schedule = iota
	// Constant keeps it.
	Constant
	// Cosine lets it fall to 0 along half a cosine, lr·½(1 + cos π(t−W)/(T−W)),
	// with every batch: t counts parts of epochs. The paper's program takes whole ones.
	Cosine
)

// scheduled returns the step size for a batch of an epoch of a phase, which has so many
// epochs of so many batches. In the first warmUp epochs it rises linearly from 0 with
// every batch.
func scheduled(a Schedule, lr float64, epoch, batch, batches, warmUp, epochs int) float64 {
	now := float64(epoch) + float64(batch)/float64(batches)
	if epoch < warmUp {
		return lr * now / float64(warmUp)
	}
	rest := float64(epochs - warmUp)
	switch a {
	case Linear:
		return lr * (1 - float64(epoch-warmUp)/rest)
	case Cosine:
		return lr * (1 + math.Cos(math.Pi*(now-float64(warmUp))/rest)) / 2
	}
	return lr
}
