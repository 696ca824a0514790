package configs

import (
	"reflect"
	"strings"
	"testing"
)

// Old keys and words are refused with the new ones, and translated in the files of runs.
func TestRenamedKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tc := range []struct{ key, value, now, want string }{
		{"data.train_on", "0.5", "data.sample=0.5", "now data.sample"},
		{"device.tf32", "false", "device.precision=float32", "false is now device.precision: float32"},
		{"device.tf32", "true", "seed=0", "now device.precision"},
		{"graph.weights", "sample", "graph.weighted_sampling=true", "sample is now graph.weighted_sampling: true"},
		{"graph.weights", "ignore", "graph.weighted_sampling=false", "ignore is now graph.weighted_sampling: false"},
		{"loss.draw", "runs", "loss.sampling=runs", "now loss.sampling"},
		{"model.init", "coarse", "model.init=multilevel", "coarse is now model.init: multilevel"},
		{"output.html_color", "a.txt", "output.html_columns=a.txt", "now output.html_columns"},
		{"quality.points", "500", "quality.sample=500", "now quality.sample"},
		{"quality.spearman", "50", "quality.spearman_sample=50", "now quality.spearman_sample"},
		{"train.early_exaggeration", "third", "train.early_exaggeration=true", "third is now train.early_exaggeration: true"},
		{"train.early_exaggeration", "none", "seed=0", "none is now train.early_exaggeration: false"},
	} {
		section, name, _ := strings.Cut(tc.key, ".")
		text := section + ": {" + name + ": " + tc.value + "}\nloss: {s: 0}"
		if section == "loss" {
			text = "loss: {s: 0, " + name + ": " + tc.value + "}"
		}
		_, _, inFile := loadText(t, text)
		_, inSetting := loadSetting(t, tc.key, tc.value)
		_, _, inVariable := Train.Load(Sources{Environ: []string{variable(tc.key) + "=" + tc.value}})
		for _, err := range []error{inFile, inSetting, inVariable} {
			if want := tc.key + ": " + tc.want; err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
				t.Errorf("%s: %s: %v, want %s", tc.key, tc.value, err, want)
			}
		}
		got, _, err := loadText(t, Header+"0.1: of a run\n"+text)
		if err != nil {
			t.Errorf("%s: %s: %v", tc.key, tc.value, err)
			continue
		}
		want := mustLoad(t, "loss: {s: 0}", need(ParseSetting("--set", tc.now))(t))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is read as %+v, want %+v", tc.key, tc.value, got, want)
		}
	}
	// Other commands have other keys.
	if _, _, err := Pretrain.Load(Sources{Environ: []string{"CNE_DATA_TRAIN_ON=5"}}); err != nil {
		t.Errorf("a variable of cne train: %v", err)
	}
	for key := range renamed {
		if now := renamed[key].key; !Train.Has(now) || key != now && Train.Has(key) {
			t.Errorf("%s is translated into %s", key, now)
		}
	}
}
