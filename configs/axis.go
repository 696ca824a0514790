package configs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cne"
	"cne/internal/option"
	"cne/internal/text"
	"cne/model/op"
	"cne/train"
)

// A SpectrumAxis is the quantity that varies along a spectrum, with its values.
type SpectrumAxis struct {
	Flag   string    // s, zbar or m
	Values []float64 // ascending; +Inf is all negatives of the batch
}

// DefaultS are the default values of s: a little beyond both ends.
const DefaultS = "-0.5,0,0.5,1,1.5"

// largestS bounds the magnitude of s, so no constant overflows.
const largestS = 100

// fullBatch is the word for all negatives of the batch.
const fullBatch = "full"

// ParseAxis reads the values of a flag, a list with commas between them.
func ParseAxis(flag, list string) (*SpectrumAxis, error) {
	a, whole := &SpectrumAxis{Flag: flag}, flag == "m"
	in := option.ParseRange(map[string]string{"s": fmt.Sprintf("[-%d,%d]", largestS, largestS), "zbar": "(0,inf)",
		"m": "[1,2147483647]"}[flag])
	want := in.Text(whole)
	if whole {
		want += ", or " + fullBatch
	}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		v, err := text.Decimal(item)
		v += 0 // so that -0 is 0
		if whole && item == fullBatch {
			v = math.Inf(1)
		} else if err != nil || !in.Contains(v) || whole && v != math.Trunc(v) {
			return nil, fmt.Errorf("--%s: got %s, want %s", flag, text.Quote(item), want)
		}
		if slices.Contains(a.Values, v) {
			return nil, fmt.Errorf("--%s: got %s twice, want each value once", flag, item)
		}
		a.Values = append(a.Values, v)
	}
	slices.Sort(a.Values)
	return a, nil
}

// Symbol returns the name of the values in figures.
func (a *SpectrumAxis) Symbol() string {
	if a.Flag == "zbar" {
		return "Z̄"
	}
	return a.Flag
}

// Text returns a value in the form that ParseAxis reads.
func (a *SpectrumAxis) Text(v float64) string {
	if math.IsInf(v, 1) {
		return fullBatch
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Title returns a value for people, such as "Z̄ = 8.13e6".
func (a *SpectrumAxis) Title(v float64) string {
	return a.Symbol() + " = " + strings.NewReplacer("e+0", "e", "e+", "e", "e-0", "e-").Replace(a.Text(v))
}

// Folder returns the name of the folder of a value.
func (a *SpectrumAxis) Folder(v float64) string { return a.Flag + "=" + a.Text(v) }

// Command returns the command that makes the spectrum.
func (a *SpectrumAxis) Command() string {
	texts := make([]string, len(a.Values))
	for i, v := range a.Values {
		texts[i] = a.Text(v)
	}
	return fmt.Sprintf("cne spectrum --%s %s", a.Flag, strings.Join(texts, ","))
}

// Check returns an *Error if the axis does not fit a configuration.
func (a *SpectrumAxis) Check(c *Config, origins Origins) error {
	fault := func(key, got, want string) error {
		return located(&option.Error{Key: key, Got: got, Want: want}, origins)
	}
	loss, epochs := c.Embed.Loss.Info(), c.Embed.Epochs
	shared := train.EarlyEpochs(epochs)
	whole := len(c.Embed.Phases) == 0
	switch {
	case a.Flag == "s" && !loss.HasSpectrum():
		return fault("loss.name", loss.Word+" with --s", "a loss with a spectrum: "+op.LossesWithSpectrum()+"; --m compares numbers of negatives")
	case a.Flag == "zbar" && loss.Constant != op.FixedZ:
		return fault("loss.name", loss.Word+" with --zbar", op.LossesWith(op.FixedZ)+"; --m compares numbers of negatives")
	case c.Data.Holdout != nil:
		return fault("data.holdout", "held-out points with cne spectrum", "null")
	case c.Data.Sample != nil:
		return fault("data.sample", "a sample with cne spectrum", "null")
	case whole && epochs < 2:
		return fault("train.epochs", "1", "2 or more")
	case whole && c.Embed.WarmUp >= shared:
		return fault("train.warm_up", fmt.Sprint(c.Embed.WarmUp), fmt.Sprintf("fewer than the first third of train.epochs (%d)", shared))
	}
	return nil
}

// At returns the configuration of the run that ends at a value, and the number of its
// epochs that it shares with the runs at other values.
func (a *SpectrumAxis) At(c *Config, v float64) (at *Config, shared int) {
	var last cne.Phase
	switch a.Flag {
	case "s":
		last.Spectrum = train.FromS(v)
	case "zbar":
		last.Spectrum = train.FromZBar(v)
	case "m":
		last.Negatives = train.Full
		if !math.IsInf(v, 1) {
			last.Negatives = int(v)
		}
	}
	each, phases := c.Embed.SpectrumOptions([]cne.Phase{last})
	x := *c
	x.Embed = each[0]
	for _, p := range x.Embed.Phases[:phases] {
		shared += p.Epochs
	}
	return &x, shared
}
