package op

import (
	"math"
	"slices"

	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/simd"
	"cne/internal/text"
)

// A Loss is a contrastive loss. Sections and equations refer to Damrich et al. (ICLR
// 2023).
type Loss int

// The losses. q is the similarity of a pair, m the number of negatives of a head.
const (
	// Neg is Neg-t-SNE's negative-sampling loss (Eq. 9):
	// −log(q/(q+c)) for the positive and −log(1 − q/(q+c)) for each negative
	// pair, with c = Z̄·m/|X|.
	Neg Loss = iota
	// NC is NC-t-SNE's noise-contrastive estimation (Eq. 6): Neg with
	// c = m·Z, where Z is learnt.
	NC
	// InfoNC is InfoNC-t-SNE's (Eq. 4): −log q + (1/ρ)·log Σ q over the
	// positive and the negatives of a head.
	InfoNC
	// UMAP is UMAP's: −log q for the positive and −log(1−q) for each negative
	// pair. It is Neg with c = 1 and the similarity 1/‖a−b‖² (Sec. 6).
	UMAP
)

// losses has everything that differs between losses, except the vector kernels and the
// accelerator's kernels. A loss without these kernels works: the CPU computes it pair by
// pair.
var losses = [...]LossInfo{
	Neg: {
		Word: "neg", Aliases: []string{"neg-tsne"}, Title: "Neg-t-SNE", Constant: FixedZ, Scale: 1,
		Positive: negPositive, Negative: negNegative,
		onDevice: true, single: negKernels[float32](), double: negKernels[float64](),
	},
	NC: {
		Word: "nc", Aliases: []string{"nc-tsne"}, Title: "NC-t-SNE", Constant: LearntZ, Scale: 1,
		Positive: negPositive, Negative: negNegative,
		onDevice: true, single: negKernels[float32](), double: negKernels[float64](),
	},
	InfoNC: {
		Word: "infonc", Aliases: []string{"infonce", "infonc-tsne"}, Title: "InfoNC-t-SNE", Constant: Divisor, Scale: 0.5,
		PerHead: true, onDevice: true,
	},
	UMAP: {
		Word: "umap", Title: "UMAP", Scale: 1, EuclideanOnly: true,
		Positive: func(q, _, _ float64) PairLoss { return PairLoss{Loss: -elementary.Log(q), LogQ: -1} },
		Negative: func(q, rest, _ float64) PairLoss { return PairLoss{Loss: elementary.Log1p(q / rest), LogQ: q / rest} },
		onDevice: true, single: umapKernels[float32](), double: umapKernels[float64](),
	},
}

// A LossInfo describes a loss.
type LossInfo struct {
	// Word is the loss's name in configurations and files. Aliases are further names that are
	// accepted. Title is the name for readers.
	Word    string
	Aliases []string
	Title   string
	// Constant is the kind of constant that the loss has.
	Constant Constant
	// Scale is the default factor of the loss, from the paper's runs.
	Scale float64
	// EuclideanOnly reports whether the loss needs similarities below 1. The cosine metric
	// does not guarantee them.
	EuclideanOnly bool
	// PerHead reports whether the loss is a function of a head and all its pairs, as InfoNC
	// is. Otherwise it is a sum over pairs.
	PerHead bool
	// Positive and Negative give the loss of a pair from its similarity q, rest = 1−q without
	// cancellation, and the constant c; q is never 0, and rest may be. Both are −log p for
	// some p, and ContrastiveOptions.Clamp bounds this p. PerHead losses have neither.
	Positive, Negative func(q, rest, c float64) PairLoss

	onDevice bool // there are kernels for accelerators
	single   kernelSet[float32]
	double   kernelSet[float64]
}

// A PairLoss is the loss of a pair, and its derivatives with respect to log q and to the
// logarithm of the constant.
type PairLoss struct{ Loss, LogQ, LogC float64 }

// A Constant is the kind of a loss's constant. The constant determines its position on
// the spectrum from t-SNE to UMAP.
type Constant int

const (
	NoConstant Constant = iota
	// FixedZ is c = Z̄·m/|X| with the fixed normalisation constant Z̄.
	FixedZ
	// LearntZ is c = m·Z, where Z is learnt.
	LearntZ
	// Divisor is ρ.
	Divisor
)

// Info describes a loss. It returns the zero value for an invalid loss.
func (l Loss) Info() LossInfo {
	if !lossNames.Valid(l) {
		return LossInfo{}
	}
	return losses[l]
}

// lossesWith returns the words of the losses that holds selects, joined.
func lossesWith(holds func(LossInfo) bool) string {
	var words []string
	for _, l := range Losses() {
		if info := l.Info(); holds(info) {
			words = append(words, info.Word)
		}
	}
	return text.Join(words, "and")
}

// LossesWithSpectrum returns the words of the losses that have a position s on the
// spectrum, joined.
func LossesWithSpectrum() string { return lossesWith(LossInfo.HasSpectrum) }

// LossesWith returns the words of the losses with a kind of constant, joined.
func LossesWith(c Constant) string {
	return lossesWith(func(l LossInfo) bool { return l.Constant == c })
}

// Losses returns all losses.
func Losses() []Loss {
	all := make([]Loss, len(losses))
	for i := range all {
		all[i] = Loss(i)
	}
	return all
}

// HasSpectrum reports whether the loss has a position s on the spectrum.
func (l LossInfo) HasSpectrum() bool { return l.Constant == FixedZ || l.Constant == Divisor }

var lossNames = namesOfLosses()

func namesOfLosses() kind.Names[Loss] {
	n := kind.Names[Loss]{Package: "op", Type: "Loss", What: "loss", Err: ErrInput, Aliases: map[string]Loss{}}
	for i, l := range losses {
		n.Words = append(n.Words, l.Word)
		for _, alias := range l.Aliases {
			n.Aliases[alias] = Loss(i)
		}
	}
	return n
}

func (l Loss) String() string { return lossNames.String(l) }

// MarshalText implements encoding.TextMarshaler by the loss's name.
func (l Loss) MarshalText() ([]byte, error) { return lossNames.Text(l) }

// UnmarshalText implements encoding.TextUnmarshaler. It takes the paper's names
// too: neg-tsne, nc-tsne and infonc-tsne, and infonce.
func (l *Loss) UnmarshalText(text []byte) error { return lossNames.Parse(l, text) }

// Words returns the names of all losses.
func (Loss) Words() []string { return slices.Clone(lossNames.Words) }

func negPositive(q, _, c float64) PairLoss {
	return PairLoss{Loss: elementary.Log1p(c / q), LogQ: -c / (q + c), LogC: c / (q + c)}
}

func negNegative(q, _, c float64) PairLoss {
	return PairLoss{Loss: elementary.Log1p(q / c), LogQ: q / (q + c), LogC: -q / (q + c)}
}

// CheckOnDevice returns an error if an accelerator cannot compute the loss.
func (o ContrastiveOptions) CheckOnDevice() error {
	if !o.Loss.Info().onDevice {
		return kind.Errorf(ErrInput, "op: loss: got %v, which only the CPU computes, want another loss or the CPU", o.Loss)
	}
	return nil
}

// A kernel replaces the squared distances of pairs by the derivatives of a loss with
// respect to them, and returns the losses. c is the constant. With the cosine metric,
// cosines over τ stand for squared distances, and log c for c.
type kernel[T Float] func(x []T, c T, bound simd.Bound[T]) simd.Sum

// pairKernels compute a loss that is a sum over pairs.
type pairKernels[T Float] struct {
	positive, negative kernel[T]
	// row is negative for the pairs of one head with many rows. Excluded pairs have an
	// infinite distance.
	row kernel[T]
	// dense, if not nil, is negative for a head block, and writes its loss there.
	dense func(q *simd.HeadBlock[T], c T, bound simd.Bound[T])
	// joined reports whether negative takes the pairs of many columns at once.
	joined bool
	// slack is 1 if the loss is a smooth function of 1 + the squared distance, and 0 if it
	// is not at distance 0: see simd.RowDistances.
	slack T
}

// A kernelSet has the kernels for each metric. If nil, the loss is computed pair by pair.
type kernelSet[T Float] struct{ euclidean, cosine *pairKernels[T] }

func negKernels[T Float]() kernelSet[T] {
	return kernelSet[T]{
		euclidean: &pairKernels[T]{positive: simd.NegPositive[T], negative: simd.NegNegative[T], row: simd.RowNeg[T],
			dense: simd.DenseNeg[T], joined: true, slack: 1},
		cosine: &pairKernels[T]{
			positive: func(x []T, c T, _ simd.Bound[T]) simd.Sum { return simd.LogisticPositive(x, c) },
			negative: func(x []T, c T, _ simd.Bound[T]) simd.Sum { return simd.LogisticNegative(x, c) },
			row:      func(x []T, c T, _ simd.Bound[T]) simd.Sum { return simd.RowLogistic(x, c) },
		},
	}
}

func umapKernels[T Float]() kernelSet[T] {
	of := func(f func(x []T, bound simd.Bound[T]) float64) kernel[T] {
		return func(x []T, _ T, bound simd.Bound[T]) simd.Sum { return simd.Sum{Loss: f(x, bound)} }
	}
	return kernelSet[T]{euclidean: &pairKernels[T]{
		positive: of(simd.UMAPPositive[T]), negative: of(simd.UMAPNegative[T]), row: of(simd.RowUMAP[T]),
		dense: func(q *simd.HeadBlock[T], _ T, bound simd.Bound[T]) { simd.DenseUMAP(q, bound) },
	}}
}

// kernelsFor returns the kernels for a loss with options: the fast ones, or the functions
// of its LossInfo pair by pair.
func kernelsFor[T Float](o ContrastiveOptions) pairKernels[T] {
	info := o.Loss.Info()
	set, single := any(info.single).(kernelSet[T])
	if !single {
		set = any(info.double).(kernelSet[T])
	}
	fast, generic := set.euclidean, euclideanPairs[T]
	if o.Metric == Cosine {
		fast, generic = set.cosine, cosinePairs[T]
	}
	if fast != nil {
		return *fast
	}
	negative := generic(info.Negative, 0)
	return pairKernels[T]{positive: generic(info.Positive, math.Inf(1)), negative: negative, row: negative}
}

// euclideanPairs returns a kernel that computes a loss pair by pair; far is the loss of
// an infinitely distant pair.
func euclideanPairs[T Float](loss func(q, rest, c float64) PairLoss, far float64) kernel[T] {
	return func(x []T, c T, bound simd.Bound[T]) (sum simd.Sum) {
		most := -elementary.Log(float64(bound.Clamp()))
		for i, d2 := range x {
			u, p := 1+float64(d2), PairLoss{Loss: far}
			if !math.IsInf(u, 1) {
				p = loss(1/u, float64(d2)/u, float64(c))
			}
			if p.Loss > most {
				x[i] = 0
				sum.Loss += most
				continue
			}
			x[i] = T(-p.LogQ / u)
			sum.Add(simd.Sum{Loss: p.Loss, DTheta: p.LogC})
		}
		return sum
	}
}

// cosinePairs is euclideanPairs for the cosine metric, without a clamp.
func cosinePairs[T Float](loss func(q, rest, c float64) PairLoss, far float64) kernel[T] {
	return func(x []T, logC T, _ simd.Bound[T]) (sum simd.Sum) {
		c := elementary.Exp(float64(logC))
		for i, v := range x {
			p := PairLoss{Loss: far}
			if !math.IsInf(float64(v), -1) {
				p = loss(elementary.Exp(float64(v)), -elementary.Expm1(float64(v)), c)
			}
			x[i] = T(p.LogQ)
			sum.Add(simd.Sum{Loss: p.Loss, DTheta: p.LogC})
		}
		return sum
	}
}

// Slopes computes the forces on a new point among fixed points: the derivatives of the
// loss of its edges with respect to squared distances. With the cosine metric rows must
// have unit length. Each goroutine needs its own Slopes.
type Slopes struct {
	pairLoss[float32]
	m     float32
	slope float32 // of the cosine over τ, with the cosine metric
}

// NewSlopes returns Slopes for the loss with the given options, m negatives of each edge,
// and the logarithm theta of the loss's constant. It ignores Scale and Mean.
func NewSlopes(options ContrastiveOptions, m int, theta float64) (*Slopes, error) {
	o, err := newContrastive(options)
	if err != nil {
		return nil, err
	}
	s := &Slopes{pairLoss: newPairLoss[float32](o.options), m: float32(m), slope: float32(-0.5 / o.options.Temperature)}
	s.setTheta(theta, m)
	return s, nil
}

// Of replaces squared distances of a point by the derivatives of the loss of its k edges.
// The first k elements of tails are the distances from the tails; the rest fills whole
// vectors and becomes 0. The distances from some negatives represent the m negatives of
// each edge.
func (s *Slopes) Of(tails []float32, k int, negatives []float32) {
	for j := k; j < len(tails); j++ {
		tails[j] = tails[0]
	}
	cosine := s.options.Metric == Cosine
	if cosine {
		s.cosines(tails)
		s.cosines(negatives)
	}
	share := s.m / float32(len(negatives))
	switch {
	case !s.perHead:
		s.kernels.positive(tails, s.c, s.bound)
		s.kernels.row(negatives, s.c, s.bound)
		simd.Scale(negatives, share*float32(k))
	case cosine:
		top := simd.RowMax(tails, simd.RowMax(negatives, negatives[0]))
		simd.RowExp(tails, top)
		shares := s.perEdge(tails[:k], float32(share*float32(simd.RowExp(negatives, top))),
			func(q, share float32) float32 { return float32(q*share) - 1 })
		simd.Scale(negatives, share*shares)
	default:
		simd.RowSimilarities(tails, s.clamp)
		shares := s.perEdge(tails[:k], float32(share*float32(simd.RowSimilarities(negatives, s.clamp))), func(q, share float32) float32 {
			if q <= s.clamp {
				return 0
			}
			return q - float32(q*(q*share))
		})
		simd.RowInfoNC(negatives, share*shares, s.clamp)
	}
	if cosine {
		simd.Scale(tails, s.slope)
		simd.Scale(negatives, s.slope)
	}
	clear(tails[k:])
}

// cosines replaces squared distances of rows of unit length by cosines over τ.
func (s *Slopes) cosines(x []float32) {
	for j, d2 := range x {
		x[j] = float32(s.slope*d2) - float32(2*s.slope)
	}
}

// perEdge replaces the similarities q of tails by InfoNC's derivatives, which slope
// returns. total is the sum of the negatives' similarities. perEdge returns the sum of
// the edges' shares 1/(ρ·total).
func (s *Slopes) perEdge(q []float32, total float32, slope func(q, share float32) float32) (shares float32) {
	for j, own := range q {
		share := s.weight / max(total+own, math.SmallestNonzeroFloat32)
		shares += share
		q[j] = slope(own, share)
	}
	return shares
}
