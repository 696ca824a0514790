package train

import (
	"cne/internal/rng"
	"cne/internal/simd"
	"cne/model"
	"cne/model/op"
)

// Full, as a number of negatives, stands for every row of the batch but the
// head and its tail, once.
const Full = -1

// A Sampling is a way to draw m negatives for the heads of a batch of b edges, out
// of its 2b rows. (In-batch negative sampling: Section 3 of the paper.) With m =
// 2b−2, all other rows, there is nothing to draw.
type Sampling int

const (
	// SampleAuto is SampleSharedRuns from 32 negatives on, where it becomes the faster
	// one, and SamplePerHead below.
	SampleAuto Sampling = iota
	// SamplePerHead draws for each head on its own, uniformly and with
	// replacement from the 2b−1 other rows (the head's own tail may come up):
	// the paper's way.
	SamplePerHead
	// SampleSharedRuns lets every 16 consecutive heads of the batch, whose order is
	// random, share m negatives: of the rows without the ends of these 16
	// edges a run that begins at a random one. Each of a head's negatives is
	// uniform, as the edges of a batch are in random order, and none comes up
	// twice; but the negatives of the 16 heads are the same. Where there are
	// fewer than m such rows, all other rows are taken.
	SampleSharedRuns
)

const (
	// runsFrom is the number of negatives from which on SampleAuto draws runs.
	runsFrom = 32
	// maxNegatives bounds the negatives of a batch that are drawn singly: their
	// rows are 1 GiB.
	maxNegatives = 1 << 28
)

// inRuns tells whether m negatives for each head are drawn in runs, as long as
// the batch is large enough.
func (s Sampling) inRuns(m int) bool {
	return s == SampleSharedRuns || s == SampleAuto && m >= runsFrom
}

// count returns how many negatives each head of a batch of b edges gets when m
// (or Full) are asked for: m, or all other rows, 2b−2.
func (s Sampling) count(m, b int) int {
	all := 2*b - 2
	if m == Full || m > all || s.inRuns(m) && m > 2*b-2*op.GroupHeads {
		return all
	}
	return m
}

// A negativeSampler draws the negatives of batches, one batch at a time.
type negativeSampler struct {
	seed uint64
	how  Sampling
	rows []int32 // the negatives of the last batch
	runs []int32 // or its runs
}

// draw sets what a batch's heads are contrasted with: m negatives, or all other
// rows if m is Full or at least their number. It is valid until the next call.
func (s *negativeSampler) draw(to *model.Batch, m, epoch, batch int) {
	b := to.Edges()
	m = s.how.count(m, b)
	to.Negatives, to.Runs = nil, nil
	stream := rng.New(s.seed, rng.Negatives, uint64(epoch), uint64(batch))
	switch {
	case m == 2*b-2:
		s.runs = append(s.runs[:0], -1)
		to.Runs = s.runs
	case s.how.inRuns(m):
		s.runs = append(s.runs[:0], int32(m))
		for head := 0; head < b; head += op.GroupHeads {
			s.runs = append(s.runs, int32(stream.IntN(2*(b-min(op.GroupHeads, b-head)))))
		}
		to.Runs = s.runs
	default:
		s.rows = resize(s.rows, m*b)
		for j := range m {
			stream = simd.DrawOthers(s.rows[j*b:(j+1)*b], stream)
		}
		to.Negatives = s.rows
	}
}
