package configs

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"cne/train"
)

func TestAxis(t *testing.T) {
	for _, tt := range []struct{ flag, list, pulls, title, folder, command string }{
		{"s", "0.50", "", "s = 0.5", "s=0.5", "cne spectrum --s 0.5"},
		{"s", "-0", "", "s = 0", "s=0", "cne spectrum --s 0"},
		{"zbar", "8130000", "", "Z̄ = 8.13e6", "zbar=8.13e+06", "cne spectrum --zbar 8.13e+06"},
		{"zbar", "1e-7", "", "Z̄ = 1e-7", "zbar=1e-07", "cne spectrum --zbar 1e-07"},
		{"zbar", "1e12", "", "Z̄ = 1e12", "zbar=1e+12", "cne spectrum --zbar 1e+12"},
		{"m", "full", "", "m = full", "m=full", "cne spectrum --m full"},
		{"m", "500", "", "m = 500", "m=500", "cne spectrum --m 500"},
		{"s", "1,0", "0.5,0", "s = 0, pull = 0", "s=0,pull=0", "cne spectrum --s 0,1 --pull 0,0.5"},
		{"m", "full", "1e5", "m = full, pull = 100000", "m=full,pull=100000", "cne spectrum --m full --pull 100000"},
	} {
		a := need(ParseAxis(tt.flag, tt.list))(t)
		if tt.pulls != "" && a.ParsePulls(tt.pulls) != nil {
			t.Errorf("--pull %s is refused", tt.pulls)
		}
		if got := a.Title(a.Places()[0]); got != tt.title {
			t.Errorf("--%s %s: title %q, want %q", tt.flag, tt.list, got, tt.title)
		}
		if got := a.Folder(a.Places()[0]); got != tt.folder {
			t.Errorf("--%s %s: folder %q, want %q", tt.flag, tt.list, got, tt.folder)
		}
		if got := a.Command(); got != tt.command {
			t.Errorf("--%s %s: command %q, want %q", tt.flag, tt.list, got, tt.command)
		}
	}
}

// The shared phases are all of the configuration's phases but the last, or the first
// third of the epochs.
func TestAxisPhases(t *testing.T) {
	c := func(settings ...Setting) *Config {
		t.Helper()
		c := loaded(Train.Load(&Sources{Settings: append(settings, Setting{"test", "preset", "paper"})}))(t)
		return c
	}
	set := func(k, v string) Setting { return Setting{Source: "--set " + k, Key: k, Value: v} }
	for name, tt := range map[string]struct {
		axis   *SpectrumAxis
		config *Config
		want   []train.Phase
	}{
		"Neg-t-SNE, as in the paper": {&SpectrumAxis{Flag: "s", Values: []float64{0.5}}, c(), []train.Phase{
			{Epochs: 250, LR: 1, Spectrum: train.FromZBar(0), Negatives: 5, Schedule: train.Linear},
			{Epochs: 500, LR: 1, Spectrum: train.FromS(0.5), Negatives: 5, Schedule: train.Linear}}},
		"InfoNC-t-SNE": {&SpectrumAxis{Flag: "s", Values: []float64{-1}}, c(set("loss.name", "infonce"), set("train.epochs", "7")), []train.Phase{
			{Epochs: 3, LR: 1, Spectrum: train.FromS(1.0), Negatives: 5, Schedule: train.Linear},
			{Epochs: 4, LR: 1, Spectrum: train.FromS(-1.0), Negatives: 5, Schedule: train.Linear}}},
		"all negatives": {&SpectrumAxis{Flag: "m", Values: []float64{math.Inf(1)}}, c(set("loss.name", "nc"), set("train.epochs", "3")), []train.Phase{
			{Epochs: 1, LR: 1, Negatives: 5, Schedule: train.Linear},
			{Epochs: 2, LR: 1, Negatives: train.Full, Schedule: train.Linear}}},
		"phases of one's own": {&SpectrumAxis{Flag: "zbar", Values: []float64{7}}, c(set("train.phases", "[{epochs: 3, s: 2}, {epochs: 4, lr: 0.5, s: 1, negatives: 9}]")), []train.Phase{
			{Epochs: 3, LR: 1, Spectrum: train.FromS(2.0), Negatives: 5, Schedule: train.Linear},
			{Epochs: 4, LR: 0.5, Spectrum: train.FromZBar(7), Negatives: 9, Schedule: train.Linear}}},
		"a pull": {&SpectrumAxis{Flag: "s", Values: []float64{0}, Pulls: []float64{0.5, 1}}, c(), []train.Phase{
			{Epochs: 250, LR: 1, Spectrum: train.FromZBar(0), Negatives: 5, Schedule: train.Linear},
			{Epochs: 500, LR: 1, Spectrum: train.FromS(0), Negatives: 5, Schedule: train.Linear, Pull: 0.5}}},
		"a phase alone": {&SpectrumAxis{Flag: "s", Values: []float64{1}}, c(set("train.phases", "[{epochs: 3}]")), []train.Phase{
			{Epochs: 3, LR: 1, Spectrum: train.FromS(1.0), Negatives: 5, Schedule: train.Linear}}},
	} {
		at, shared := tt.axis.At(tt.config, tt.axis.Places()[0])
		o := at.Options()
		got := o.FitOptions().Phases
		want := 0
		if len(got) > 1 {
			want = got[0].Epochs
		}
		if !reflect.DeepEqual(got, tt.want) || shared != want {
			t.Errorf("%s: %d shared epochs and stages %s, want %s", name, shared, inJSON(got), inJSON(tt.want))
		}
		if before := inJSON(tt.config.Embed.Phases); strings.Contains(before, `"ZBar":7`) {
			t.Errorf("%s: the configuration itself has changed: %s", name, before)
		}
	}
}

// inJSON writes a value for people to compare.
func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
