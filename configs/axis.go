package configs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cne/internal/finite"
	"cne/internal/text"
	"cne/model/op"
	"cne/train"
)

// An Axis is what the embeddings of a spectrum differ in.
type Axis struct {
	Flag   string    // s, zbar or m
	Values []float64 // ascending; +Inf is all negatives of the batch
}

// DefaultPlaces are the values of s where no others are asked for: a little
// beyond both ends.
const DefaultPlaces = "-0.5,0,0.5,1,1.5"

// FarthestPlace is how far out on the spectrum a value of s may be, so that no constant
// overflows.
const FarthestPlace = 100

// fullBatch is the word for all negatives of the batch.
const fullBatch = "full"

// ParseAxis reads the values of a flag, a list with commas between them.
func ParseAxis(flag, list string) (*Axis, error) {
	a := &Axis{Flag: flag}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		v, err := strconv.ParseFloat(item, 64)
		v += 0 // so that -0 is 0
		wrong, allowed := err != nil || !finite.Is(v), ""
		switch flag {
		case "s":
			wrong, allowed = wrong || math.Abs(v) > FarthestPlace, fmt.Sprintf("a number from -%d to %d", FarthestPlace, FarthestPlace)
		case "zbar":
			wrong, allowed = wrong || v <= 0, "a number above 0"
		case "m":
			if item == fullBatch {
				v, wrong = math.Inf(1), false
				break
			}
			wrong, allowed = wrong || v < 1 || v > math.MaxInt32 || v != math.Trunc(v), "a whole number from 1 up, or full"
		}
		if wrong {
			return nil, fmt.Errorf("--%s has %s in its list, but each value must be %s", flag, text.Quote(item), allowed)
		}
		if slices.Contains(a.Values, v) {
			return nil, fmt.Errorf("--%s has %s twice in its list; give each value once", flag, item)
		}
		a.Values = append(a.Values, v)
	}
	slices.Sort(a.Values)
	return a, nil
}

// Symbol returns what the values are called in figures.
func (a *Axis) Symbol() string {
	if a.Flag == "zbar" {
		return "Z̄"
	}
	return a.Flag
}

// Text returns a value as it may be given.
func (a *Axis) Text(v float64) string {
	if math.IsInf(v, 1) {
		return fullBatch
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Title returns a value for people, such as "Z̄ = 8.13e6".
func (a *Axis) Title(v float64) string {
	return a.Symbol() + " = " + strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-").Replace(a.Text(v))
}

// Folder returns the name of the folder of a value.
func (a *Axis) Folder(v float64) string { return a.Flag + "=" + a.Text(v) }

// Command returns the command that makes the spectrum.
func (a *Axis) Command() string {
	texts := make([]string, len(a.Values))
	for i, v := range a.Values {
		texts[i] = a.Text(v)
	}
	return fmt.Sprintf("cne spectrum --%s %s", a.Flag, strings.Join(texts, ","))
}

// Check says what is wrong with the axis for a configuration. Errors are of the type
// *Error.
func (a *Axis) Check(c *Config, origins Origins) error {
	fault := func(key, format string, args ...any) error {
		e := &Error{Key: key, Problem: fmt.Sprintf(format, args...)}
		if !origins.IsDefault(key) {
			e.Source = origins[key]
		}
		return e
	}
	shared := train.EarlyEpochs(c.Train.Epochs)
	switch {
	case a.Flag == "s" && !c.Loss.Name.Info().HasSpectrum():
		return fault("loss.name", "is %s, but --s moves along the spectrum of %s; choose one of them, or compare numbers of negatives with --m", c.Loss.Name, LossesWithSpectrum())
	case a.Flag == "zbar" && c.Loss.Name.Info().Constant != op.FixedZ:
		return fault("loss.name", "is %s, but --zbar sets the normalisation constant of %[2]s; choose %[2]s, or compare numbers of negatives with --m", c.Loss.Name, LossesWith(op.FixedZ))
	case c.Data.Holdout != nil:
		return fault("data.holdout", "keeps points from training, which cne spectrum does not; set it to null")
	case c.Data.TrainOn != nil:
		return fault("data.sample", "has the other points placed at the end, which cne spectrum does not; set it to null")
	case len(c.Train.Phases) == 0 && c.Train.Epochs < 2:
		return fault("train.epochs", "is 1, but a spectrum needs at least 2, one that all its embeddings share and one in which they differ; give more, or a single entry of train.phases, of which nothing is shared")
	case len(c.Train.Phases) == 0 && c.Train.WarmUp >= shared:
		return fault("train.warm_up", "is %d, but all embeddings share the first third of train.epochs, which is %d; warm up for fewer epochs, or run more", c.Train.WarmUp, shared)
	}
	return nil
}

// phases returns the phases that all embeddings share, of which there may be
// none, and the last one, in which they differ. Without train.phases, the first
// third of the epochs is shared; it is the paper's early exaggeration: at
// Z̄ = |X|/m, or at s = 1.
func (a *Axis) phases(c *Config) (shared []Phase, last Phase) {
	if n := len(c.Train.Phases); n > 0 {
		return slices.Clone(c.Train.Phases[:n-1]), c.Train.Phases[n-1]
	}
	early := Phase{Epochs: train.EarlyEpochs(c.Train.Epochs)}
	switch c.Loss.Name.Info().Constant {
	case op.FixedZ:
		uniform := Uniform
		early.ZBar = &uniform
	case op.Divisor:
		umap := 1.0
		early.S = &umap
	}
	return []Phase{early}, Phase{Epochs: c.Train.Epochs - early.Epochs}
}

// At returns the configuration of a run that ends at a value, and which of its
// epochs it shares with those at other values.
func (a *Axis) At(c *Config, v float64) (at *Config, shared int) {
	phases, last := a.phases(c)
	shared = TotalEpochs(phases)
	switch a.Flag {
	case "s":
		last.S, last.ZBar = &v, nil
	case "zbar":
		z := ZBar(v)
		last.S, last.ZBar = nil, &z
	case "m":
		m := Full
		if !math.IsInf(v, 1) {
			m = Negatives(v)
		}
		last.Negatives = &m
	}
	x := *c
	x.Train.Phases = append(phases, last)
	x.Train.Epochs = TotalEpochs(x.Train.Phases)
	x.Train.EarlyExaggeration = false
	return &x, shared
}
