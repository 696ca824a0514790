package plot

import (
	"image/color"
	"math"
	"testing"
)

// On a dark ground, colours keep their hue and can still be told apart, the
// first ten by every kind of eye.
func TestOnDark(t *testing.T) {
	ground := color.NRGBA{0x12, 0x14, 0x18, 0xff}
	for name, eye := range eyes {
		for c := range maxLegend {
			colour := OnDark(ClassColour(c))
			for other := range c {
				least := 0.08
				switch {
				case name == "normal" && c >= 10:
					least = 0.045
				case c >= 10:
					least = 0.01
				}
				if d := apart(colour, OnDark(ClassColour(other)), eye); d < least {
					t.Errorf("%s: classes %d and %d are %.3f apart, want at least %.3f", name, c, other, d, least)
				}
			}
			if d := apart(colour, ground, eye); d < 0.28 {
				t.Errorf("%s: class %d is %.3f from the ground", name, c, d)
			}
		}
	}
	for c := range maxLegend {
		light, dark := oklab(ClassColour(c), eyes["normal"]), oklab(OnDark(ClassColour(c)), eyes["normal"])
		turn := math.Atan2(light[2], light[1]) - math.Atan2(dark[2], dark[1])
		if turn = math.Abs(math.Remainder(turn, 2*math.Pi)); turn > 0.12 {
			t.Errorf("class %d turns by %.2f rad in hue", c, turn)
		}
	}
	if c := (color.NRGBA{0x12, 0x34, 0x56, 0x78}); OnDark(c).A != c.A {
		t.Errorf("the opacity of %v becomes %v", c, OnDark(c).A)
	}
}
