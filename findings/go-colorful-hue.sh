#!/usr/bin/env bash
# github.com/lucasb-eyer/go-colorful v1.4.1: a colour whose hue is 45°, 90°, 225° or 270° is said to have the hue
# 0°.
#
# One would guess: the hue of HCL is the angle of (a, b) in Lab, whatever the angle; Hcl(color.Hcl()) is the colour
# again.
# What happens: colours without a hue should get 0°, and are told by |b − a| or |a| being at most 1/10000. But a =
# 0 is pure yellow and pure blue, and a = b any orange at 45° or blue-green at 225°, however strong the colour.
# Yellow at 90° comes back as pink at 0°, and a blend of it with green by BlendHcl passes through pink. LuvLCh, and
# HSLuv and HPLuv with it, ask the same of u and v. Steps of 15° or 45° around the circle meet these hues always,
# and 3502 of all 8-bit colours that are not nearly grey have them, #fff7e7 for one, whose hue is 90°. OkLch does
# not ask, and is right; so are all angles beside. There is no error.
# Source: github.com/lucasb-eyer/go-colorful v1.4.1, colors.go (LabToHcl, LuvToLuvLCh).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"math"
	"os"

	"github.com/lucasb-eyer/go-colorful"
)

func main() {
	changed := false
	for _, hue := range []float64{30, 44, 45, 46, 90, 91, 225, 270} {
		color := colorful.Hcl(hue, 0.3, 0.6)
		_, a, b := color.Lab()
		h, c, l := color.Hcl()
		fmt.Printf("Hcl(%g°, 0.3, 0.6) is %s, Lab a = %.4f, b = %.4f: hue %.2f°, and back %s\n",
			hue, color.Clamped().Hex(), a, b, h, colorful.Hcl(h, c, l).Clamped().Hex())
		wrong := math.Mod(hue, 45) == 0
		changed = changed || (wrong && h != 0) || (!wrong && math.Abs(h-hue) > 1e-6)
	}
	yellow, green := colorful.Hcl(90, 0.3, 0.6), colorful.Hcl(120, 0.3, 0.6)
	h, _, _ := yellow.BlendHcl(green, 0.25).Hcl()
	fmt.Printf("a quarter of the way from 90° to 120°, BlendHcl has the hue %.1f° (right: 97.5°)\n", h)
	_, _, ok := yellow.OkLch()
	fmt.Printf("OkLch's hue of the yellow: %.1f°\n", ok)
	if changed || math.Abs(h-30) > 0.1 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/lucasb-eyer/go-colorful@v1.4.1
go mod tidy >/dev/null 2>&1
echo "github.com/lucasb-eyer/go-colorful $(go list -m -f '{{.Version}}' github.com/lucasb-eyer/go-colorful), $(go version)"
go run .
