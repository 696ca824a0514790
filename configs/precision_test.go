package configs

import (
	"strings"
	"testing"

	"cne/model/op"
)

// What the precisions allow, and that they are written as they were read.
func TestPrecision(t *testing.T) {
	for _, c := range []struct {
		settings string // of the section device
		want     string
		tf32     bool // whether products may be rounded to TF32
		of       op.Precision
	}{
		{"", TF32, true, op.Float32},
		{"precision: float32", Float32, false, op.Float32},
		{"precision: tf32", TF32, true, op.Float32},
		{"precision: bf16", BF16, true, op.BFloat16},
		{"precision: bf16, name: cuda", BF16, true, op.BFloat16},
	} {
		t.Run(c.settings, func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeTestFile(t, "run.yaml", "device: {"+c.settings+"}\n")
			got := loaded(Pretrain.Load(&Sources{File: "run.yaml"}))(t)
			d := &got.Device
			if d.Precision != c.want || d.RoundsToTF32() != c.tf32 || d.OfConvolutions() != c.of {
				t.Errorf("%v, TF32 %t, convolutions of %v", d.Precision, d.RoundsToTF32(), d.OfConvolutions())
			}
			var text strings.Builder
			must(t, Pretrain.Write(&text, got))
			writeTestFile(t, "written.yaml", text.String())
			again, _, err := Pretrain.Load(&Sources{File: "written.yaml"})
			if err != nil || again.Device != got.Device {
				t.Errorf("written, it is %+v, not %+v (%v)", again.Device, got.Device, err)
			}
		})
	}
}

// A run may be resumed with tf32 or float32 interchangeably, and with bf16 only if it was
// begun so.
func TestPrecisionOfResumedRuns(t *testing.T) {
	for _, begun := range []string{Float32, TF32, BF16} {
		for _, now := range []string{Float32, TF32, BF16} {
			a := loaded(Pretrain.Load(&Sources{Settings: []Setting{{"--set", "device.precision", begun}}}))(t)
			b, origins, err := Pretrain.Load(&Sources{Settings: []Setting{{"--set", "device.precision", now}}})
			must(t, err)
			violations := Pretrain.LockedChanges(a, b, origins)
			if refused := (begun == BF16) != (now == BF16); refused != (len(violations) == 1) || refused && !strings.HasPrefix(violations[0], "device.precision "+begun+", not "+now) {
				t.Errorf("from %v to %v: %q", begun, now, violations)
			}
		}
	}
}
