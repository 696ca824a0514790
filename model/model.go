package model

import (
	"cne/model/op"
)

// A Batch is a batch of b edges of the symmetric kNN graph, which joins two points if
// either is among the k nearest neighbours of the other. It is given by its distinct
// points or, without Local, by the endpoints of its edges.
type Batch struct {
	// Rows are the distinct points of the edges, each once; without Local, the 2b endpoints:
	// first the b heads, then the b tails.
	Rows []int32
	// Local [2b] has the position in Rows of each endpoint: first the b heads, then the b
	// tails. Only an Embedding on the CPU takes batches without Local. They are faster if
	// hardly any point occurs twice.
	Local []int32
	// If Local is nil, Repeats lists the endpoints whose point occurred before, in order.
	Repeats []Repeat
	// Negatives [m, b] has the negatives of each edge, as numbers of endpoints (0 … 2b−1).
	// Negative j of edge i is Negatives[j·b+i].
	Negatives []int32
	// Layout describes the negatives of the edges; nil means Negatives.
	Layout op.NegativeLayout
	// Images [len(Rows), 3, H, W] are the input of a model of images for Rows; other
	// models do not read them.
	Images []float32
	// Next are the Rows of the following batch, or nil if they are not known yet. No result
	// depends on them. A large Embedding prefetches these rows while it computes.
	Next []int32
}

// A Repeat pairs two endpoints: Again has the same point as First, its first occurrence.
// The gradient of the point is in First's row, and Again's row is 0.
type Repeat struct{ First, Again int32 }

// Edges returns b, the number of edges of the batch.
func (b *Batch) Edges() int {
	if len(b.Local) == 0 {
		return len(b.Rows) / 2
	}
	return len(b.Local) / 2
}

// A Parameter is an array that a model learns, with its gradient.
type Parameter struct {
	// Name identifies the parameter in files and messages.
	Name string
	// Value holds all of the parameter.
	Value *op.Array
	// Grad is the gradient of the last Step. It has the shape of Value or, if Sparse, a row
	// for each of the last batch's Rows, in their order.
	Grad   *op.Array
	Sparse bool
}

// A Model is a model that can be trained.
type Model interface {
	// Objective returns the loss that Step computes.
	Objective() op.ContrastiveOptions
	// Step computes the loss of a batch and its gradients. theta is the
	// logarithm of the loss's constant: see op.Contrastive.
	Step(b *Batch, theta float64) (loss float64, err error)
	// DTheta returns the derivative of the last Step's loss with respect to
	// theta.
	DTheta() float64
	// Parameters returns the parameters. The arrays stay the same as long as the model
	// exists.
	Parameters() []Parameter
	// Diagnose runs the last Step again and returns an error that names the
	// first operation whose result is not finite, or nil.
	Diagnose() error
	// EmbedTo writes the embedding of all n training points to dst [n, d].
	EmbedTo(dst []float32) error
	// Points returns n, the number of training points, and d, the width of
	// the embedding.
	Points() (n, d int)
}
