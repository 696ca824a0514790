package model

import (
	"cne/model/op"
)

// A Batch is a batch of b edges of the sKNN graph, by its distinct points or, with no
// Local, by the endpoints of its edges.
type Batch struct {
	// Rows are the distinct points that the edges touch, each once; with no Local, the
	// 2b endpoints: first the b heads, then the b tails.
	Rows []int32
	// Local [2b] numbers the endpoints by their place in Rows: first the b heads,
	// then the b tails. Only an Embedding on the CPU takes batches without it: where
	// hardly any point comes twice, they save it a detour.
	Local []int32
	// Repeats are, without Local, the endpoints with the point of an earlier endpoint, in
	// order.
	Repeats []Repeat
	// Negatives [m, b] names for each head the endpoints (0 … 2b−1) that it
	// is contrasted with: negative j of head i is Negatives[j·b+i].
	Negatives []int32
	// Layout says which rows the heads are contrasted with; nil means the rows in
	// Negatives.
	Layout op.NegativeLayout
	// Images [len(Rows), 3, H, W] are the input of a model of images for Rows; other
	// models do not read them.
	Images []float32
	// Next are the Rows of the batch that comes after this one, if they are known
	// already. No result depends on them: a large table asks the memory for these rows
	// while it computes.
	Next []int32
}

// A Repeat is an endpoint, Again, whose point comes first as the endpoint First. The
// gradient of the point is in First's row, and Again's is 0.
type Repeat struct{ First, Again int32 }

// Edges returns b, the number of edges of the batch.
func (b *Batch) Edges() int {
	if len(b.Local) == 0 {
		return len(b.Rows) / 2
	}
	return len(b.Local) / 2
}

// A Parameter is something a model learns, with its gradient.
type Parameter struct {
	// Name identifies the parameter in files and messages.
	Name string
	// Value holds all of the parameter.
	Value *op.Array
	// Grad is the gradient that the last Step left: of the shape of Value or, if
	// Sparse, only for the rows that the last batch's Rows name, in their order.
	Grad   *op.Array
	Sparse bool
}

// A Model can be trained.
type Model interface {
	// Objective returns the loss that Step computes.
	Objective() op.ContrastiveOptions
	// Step computes the loss of a batch and its gradients. theta is the
	// logarithm of the loss's constant: see op.Contrastive.
	Step(b *Batch, theta float64) (loss float64, err error)
	// DTheta returns the derivative of the last Step's loss with respect to
	// theta.
	DTheta() float64
	// Parameters returns the parameters. The arrays are the same for the life of the
	// model.
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
