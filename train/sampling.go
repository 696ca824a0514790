package train

import (
	"slices"

	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/rng"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// Full, as a number of negatives, means every endpoint of the batch's other edges, once:
// op.AllNegatives.
const Full = -1

// A Sampling is a way to draw m negatives for each edge of a batch of b edges from the
// batch's 2b endpoints (in-batch negative sampling, as in the paper's runs). m = 2b−2
// takes all endpoints of the other edges, so nothing is drawn.
type Sampling int

const (
	// SampleAuto is SampleSharedRuns for 32 negatives or more, where it is faster, and
	// SamplePerHead for fewer.
	SampleAuto Sampling = iota
	// SamplePerHead draws the negatives of each edge separately, uniformly and with
	// replacement from all endpoints except the edge's head, so its tail may be among them.
	// The paper does so.
	SamplePerHead
	// SampleSharedRuns lets every 16 consecutive edges of the batch share a run of m
	// consecutive endpoints that begins with a random one. An edge's negatives are these
	// endpoints except its head: with probability m/2b the head is in the run, and the edge
	// has m−1 negatives. All other endpoints are equally likely, as with SamplePerHead, but
	// none is repeated. With m = 1 it is SamplePerHead.
	SampleSharedRuns
)

const (
	// runsFrom is the smallest number of negatives that SampleAuto draws in runs.
	runsFrom = 32
	// maxNegatives is the largest number of negatives of a batch that heads draw separately.
	// Their row numbers take 1 GiB.
	maxNegatives = 1 << 28
)

// inRuns reports whether m negatives for each head are drawn in runs, if the batch is
// large enough.
func (s Sampling) inRuns(m int) bool {
	return s == SampleSharedRuns && m > 1 || s == SampleAuto && m >= runsFrom
}

// count returns the number of negatives of each head in a batch of b edges for the option
// m, which may be Full or All. It is at most 2b−2, all other rows.
func (s Sampling) count(m, b int) int {
	all := 2*b - 2
	if m < 0 || m > all {
		return all
	}
	return m
}

// Listed returns how many of m negatives (or Full) each edge of a batch of b edges draws
// separately; it returns 0 if edges share negatives.
func (s Sampling) Listed(m, b int) int {
	if m = s.count(m, b); m == 2*b-2 || s.inRuns(m) {
		return 0
	}
	return m
}

// A negativeSampler draws the negatives of batches, one batch at a time.
type negativeSampler struct {
	seed   uint64
	how    Sampling
	rows   []int32           // the negatives of the last batch
	layout op.NegativeLayout // or how they lie
}

// draw sets a batch's Negatives or Layout: m negatives for each head, or all other rows
// if m is Full or at least their number. They are valid until the next call.
func (s *negativeSampler) draw(to *model.Batch, m, epoch, batch int) {
	b := to.Edges()
	m = s.how.count(m, b)
	to.Negatives, to.Layout = nil, nil
	stream := rng.New(s.seed, rng.Negatives, uint64(epoch), uint64(batch))
	switch {
	case m == 2*b-2:
		s.layout = append(s.layout[:0], op.AllNegatives)
		to.Layout = s.layout
	case s.how.inRuns(m):
		s.layout = append(s.layout[:0], int32(m))
		for range parallel.Pieces(b, op.GroupHeads) {
			s.layout = append(s.layout, int32(stream.IntN(2*b)))
		}
		to.Layout = s.layout
	default:
		s.rows = resize(s.rows, m*b)
		for j := range m {
			simd.DrawOthers(s.rows[j*b:(j+1)*b], stream.At(uint64(j*((b+1)/2))).State())
		}
		to.Negatives = s.rows
	}
}

var samplingNames = kind.Names[Sampling]{Package: "train", Type: "Sampling", What: "way to draw negatives", Err: ErrInput,
	Words: []string{"auto", "singly", "runs"}}

func (s Sampling) String() string { return samplingNames.String(s) }

// MarshalText implements encoding.TextMarshaler: "auto", "singly" or "runs".
func (s Sampling) MarshalText() ([]byte, error) { return samplingNames.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sampling) UnmarshalText(text []byte) error { return samplingNames.Parse(s, text) }

// Words returns the names of all ways to draw negatives.
func (Sampling) Words() []string { return slices.Clone(samplingNames.Words) }
