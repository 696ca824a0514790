package simclr

import (
	"strings"

	ledger "cne/internal/memory"
	"cne/model"
	"cne/train"
)

// A Memory is an estimate of what a pretraining takes: how much at least, how much where
// nothing limits it, and the parts of it with the fields of Pretraining that decide
// their sizes.
type Memory = ledger.Estimate

// A Workload is what Pretraining.Memory has to know besides its options.
type Workload struct {
	// Images is their number, and Bytes what each takes: three for a pixel.
	Images, Bytes int
	// Reading is what it takes to read the images, beside the images themselves, in
	// bytes.
	Reading int64
	// Monitored is how many images a Monitor looks at, Evaluated how many an Evaluation
	// does in the end, Placed how many are placed by a Projection, and Represented how many
	// Features represents for others to work with; 0 for none.
	Monitored, Evaluated, Placed, Represented int
	// Pixels is how many values the pixels of an image have, if these are evaluated in
	// place of a representation; 0 otherwise.
	Pixels int
	// Checkpoints tells that the state of the run is saved.
	Checkpoints bool
}

const weightsPart = "the network's weights with their gradients and copies"

// Memory estimates what a run takes on the CPU, the images included: its largest arrays
// in the order in which they come and go. It allocates nothing, and reads nothing. On an
// accelerator, the network is trained there, and takes nothing here but its weights.
func (p *Pretraining) Memory(w Workload) (Memory, error) {
	const number = 4 // bytes of a float32
	l := new(ledger.Ledger)
	pixels := float64(p.Augmentation.Size) * float64(p.Augmentation.Size) * 3
	batch := min(p.batchSize(), max(1, w.Images))
	views := 2 * float64(batch)
	m := p.Negatives
	if all := 2*batch - 2; m == train.Full || m > all {
		m = all
	}
	size := model.BatchSize{
		Edges: batch, Distinct: 2 * batch, Negatives: m,
		Shared: m == 2*batch-2 || p.Sampling == train.SampleSharedRuns || p.Sampling == train.SampleAuto && m >= 32,
	}
	network := p.Network
	network.Out = p.out()
	needs, err := model.ConvolutionalMemory[float32](network, p.Augmentation.Size, size, p.Loss, p.Precision)
	if err != nil {
		return Memory{}, err
	}

	l.Step("the images are read")
	buffers := l.Hold("buffers for reading", "", float64(w.Reading))
	l.Hold("images", "Images", float64(w.Images)*float64(w.Bytes))
	l.Free(buffers)

	l.Step("the network is trained")
	weights := number * float64(needs.Parameters)
	l.Hold(weightsPart, p.widest(), weights)
	if p.From != nil || len(p.Stages) > 1 {
		l.Hold(weightsPart, p.widest(), weights) // of the network that a stage begins with
	}
	var temporary []*ledger.Part
	hold := func(what, option string, bytes float64) { temporary = append(temporary, l.Hold(what, option, bytes)) }
	if p.Device.OnHost() {
		hold("views of the images", p.largest(), 3*number*views*pixels) // one block of them at work, one ready, one being drawn
		hold("a batch", p.heaviest(needs), float64(needs.Batch))
		hold("transforms of convolutions", "Network.Width", float64(needs.Scratch))
		hold("negatives", "Negatives", p.negatives(size))
		if p.Momentum != 0 || p.WeightDecay != 0 {
			hold(weightsPart, p.widest(), weights)
		}
	}
	if w.Monitored > 0 {
		if err := p.classify(l, w.Monitored, p.Device.OnHost()); err != nil {
			return Memory{}, err
		}
	}
	if w.Checkpoints {
		l.Pass(weightsPart, p.widest(), 2*weights)
	}
	l.Free(temporary...)
	l.Pass(weightsPart, p.widest(), weights)

	if err := p.finish(l, w); err != nil {
		return Memory{}, err
	}
	return l.Estimate(), nil
}

// Finished estimates what it takes to work with a network that is trained no more, on the
// CPU, beside the images themselves: of p, Network, Augmentation and Device matter, and of
// w what comes after a training. The parts name no option of Network, which is as it is.
func (p *Pretraining) Finished(w Workload) (Memory, error) {
	finished := &Pretraining{Network: p.Network, Device: p.Device, Augmentation: Augmentation{WholeSize: p.Augmentation.whole().Size}}
	l := new(ledger.Ledger)
	if err := finished.finish(l, w); err != nil {
		return Memory{}, err
	}
	e := l.Estimate()
	for i := range e.Parts {
		if strings.HasPrefix(e.Parts[i].Option, "Network.") {
			e.Parts[i].Option = ""
		}
	}
	return e, nil
}

// out returns the width of what the head gives, in the stage in which that is largest.
func (p *Pretraining) out() int {
	out := p.Network.Out
	for _, s := range p.stages() {
		out = max(out, s.Out)
	}
	return out
}

// finish is what is done with a network that is trained.
func (p *Pretraining) finish(l *ledger.Ledger, w Workload) error {
	const number = 4
	if w.Placed > 0 {
		l.Step("the images are placed")
		l.Hold("positions", "", number*float64(w.Placed)*float64(p.out()))
		if err := p.passes(l, w.Placed, p.Device.OnHost()); err != nil {
			return err
		}
	}
	if w.Represented > 0 {
		l.Step("the images are represented")
		if _, err := p.represent(l, w.Represented, p.Device.OnHost()); err != nil {
			return err
		}
	}
	if w.Evaluated > 0 {
		if w.Pixels > 0 {
			l.Step("the pixels are evaluated")
			classifiers(l, l.Hold("pixels as numbers", "", number*float64(w.Evaluated)*float64(w.Pixels)), w.Evaluated, float64(w.Pixels), "")
			return nil
		}
		l.Step("the network is evaluated")
		if err := p.classify(l, w.Evaluated, p.Device.OnHost()); err != nil {
			return err
		}
	}
	return nil
}

// features returns the width of a representation.
func (p *Pretraining) features() float64 { return 8 * float64(max(1, orElse(p.Network.Width, 64))) }

// represent is Features of so many images.
func (p *Pretraining) represent(l *ledger.Ledger, images int, onHost bool) (*ledger.Part, error) {
	const number = 4
	features := l.Hold("representations", "Network.Width", number*float64(images)*p.features())
	return features, p.passes(l, images, onHost)
}

// classify is Features of so many images, and what classifiers make of them.
func (p *Pretraining) classify(l *ledger.Ledger, images int, onHost bool) error {
	features, err := p.represent(l, images, onHost)
	if err != nil {
		return err
	}
	classifiers(l, features, images, p.features(), "Network.Width")
	return nil
}

// classifiers is what an Evaluation makes of the features of so many images, d numbers of
// each, whose width an option decides, or none. It frees them.
func classifiers(l *ledger.Ledger, features *ledger.Part, images int, d float64, option string) {
	const number = 4
	// KNNAccuracy searches among directions, in blocks; FitLogistic standardises a copy,
	// and preconditions it by the inverse of the covariance.
	directions := l.Hold("their directions", option, 2*number*float64(images)*(d+2))
	l.Free(directions)
	scaled := l.Hold("a standardised copy", option, number*float64(images)*d)
	if d <= maxPreconditioned {
		l.Pass("their covariance", option, 24*d*d)
	}
	l.Free(scaled, features)
}

// passes is so many whole images on their way through the network.
func (p *Pretraining) passes(l *ledger.Ledger, images int, onHost bool) error {
	side := p.Augmentation.whole().Size
	images = min(images, wholeAtOnce(side))
	needs, err := model.RepresentationMemory[float32](p.Network, side, images)
	if err != nil || !onHost {
		return err
	}
	option := p.largest()
	if side > p.Augmentation.Size {
		option = "Augmentation.WholeSize"
	}
	const number = 4
	l.Pass("the network at work", option, float64(needs.Batch+needs.Scratch)+number*float64(images)*3*float64(side)*float64(side))
	return nil
}

// orElse returns v, or the default that 0 stands for.
func orElse(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

// widest names the field that most of the weights come from.
func (p *Pretraining) widest() string {
	width := float64(orElse(p.Network.Width, 64))
	hidden := float64(orElse(p.Network.Hidden, 16*int(width)))
	out := float64(orElse(p.Network.Out, 2*int(width)))
	const convolutions = 2730 // times the square of the width: 11.2 million at 64
	switch first, second := 8*width*hidden, hidden*out; {
	case convolutions*width*width >= max(first, second):
		return "Network.Width"
	case second > first && out >= hidden:
		return "Network.Out"
	}
	return "Network.Hidden"
}

// heaviest names the field that the arrays of a batch come from, gradients of the
// weights included.
func (p *Pretraining) heaviest(needs model.Memory) string {
	if 4*float64(needs.Parameters) > float64(needs.Batch)/2 {
		return p.widest()
	}
	return p.largest()
}

// largest names the field that makes views large: their size, or their number.
func (p *Pretraining) largest() string {
	if p.Augmentation.Size > 64 {
		return "Augmentation.Size"
	}
	return "BatchSize"
}

// negatives returns the bytes of those that heads draw on their own.
func (p *Pretraining) negatives(size model.BatchSize) float64 {
	if size.Shared {
		return 0
	}
	return 4 * float64(size.Negatives) * float64(size.Edges)
}
