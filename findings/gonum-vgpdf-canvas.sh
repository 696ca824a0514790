#!/usr/bin/env bash
# gonum.org/v1/plot v0.17.0: the canvas for PDF darkens translucent colours, breaks arcs off inside
# a path, and turns images upside down if PDF's own axis is as gonum's canvas sets it.
#
# One would guess: the same drawing gives the same picture on vgpdf, vgsvg and vgimg.
# What happens: SetColor passes on RGBA's channels, which are multiplied by the opacity, together with
# the opacity, so that both darken: (1, 0, 0) with opacity 1/2 is (.5, 0, 0) with opacity 1/2.
# An arc is written as a path of its own, with "q … cm" between "l" and the filling, where PDF allows
# only lines and curves: poppler draws stray dots. The axis is turned by "1 0 0 -1 … cm", but not
# for the image, whose transformation has a positive height.
# Source: gonum.org/v1/plot, vg/vgpdf/vgpdf.go (rgba, arc, DrawImage).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"os"
	"regexp"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgpdf"
)

func main() {
	c := vgpdf.New(100, 100)
	c.SetColor(color.NRGBA{R: 255, A: 128})
	var p vg.Path
	p.Move(vg.Point{X: 60, Y: 50})
	p.Arc(vg.Point{X: 50, Y: 50}, 10, 0, 2*math.Pi)
	p.Close()
	c.Fill(p)
	c.DrawImage(vg.Rectangle{Max: vg.Point{X: 40, Y: 30}}, image.NewGray(image.Rect(0, 0, 4, 3)))
	var file, page bytes.Buffer
	if _, err := c.WriteTo(&file); err != nil {
		panic(err)
	}
	_, rest, _ := bytes.Cut(file.Bytes(), []byte("stream\n"))
	r, err := zlib.NewReader(bytes.NewReader(rest))
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(&page, r)
	fmt.Print(page.String())
	for _, seen := range []string{`0\.50\d 0\.000 0\.000 rg`, ` l\nq [^\n]*cm\n`, `1\.0+ 0\.0+ 0\.0+ -1\.0+ [^\n]*cm(?s:.*)q [\d.]+ 0 0 [\d.]+ [^\n]*cm /I`} {
		if !regexp.MustCompile(seen).Match(page.Bytes()) {
			fmt.Println("the behaviour has changed:", seen)
			os.Exit(1)
		}
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=gonum.org/v1/plot@v0.17.0
go mod tidy >/dev/null 2>&1
echo "gonum.org/v1/plot $(go list -m -f '{{.Version}}' gonum.org/v1/plot), $(go version)"
go run .
