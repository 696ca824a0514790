#!/usr/bin/env bash
# github.com/nfnt/resize of 2018-02-21: NearestNeighbor, when it makes an image smaller, gives values that no pixel
# has.
#
# One would guess: nearest-neighbour interpolation, to which the documentation links, copies for each new pixel the
# nearest old one, so that an image of class numbers, a mask or a palette keeps its values.
# What happens: going down, all pixels within the new pixel's width are averaged: a box filter. Classes 0 and 9
# side by side become class 4; four grey values out of eight are means of two. Masks get soft edges, and labels
# name classes that are not there. Going up, the result is right.
# golang.org/x/image/draw and other packages copy. There is no error.
# Source: github.com/nfnt/resize v0.0.0-20180221191011-83c6a9932646, nearest.go (nearestGray and its like) and
# filters.go (createWeightsNearest).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"image"
	"os"
	"slices"

	"github.com/nfnt/resize"
	"golang.org/x/image/draw"
)

// row returns the pixels of an image's first row.
func row(img image.Image) []uint8 {
	gray := image.NewGray(img.Bounds())
	draw.Draw(gray, gray.Bounds(), img, img.Bounds().Min, draw.Src)
	return gray.Pix[:gray.Bounds().Dx()]
}

func main() {
	classes := image.NewGray(image.Rect(0, 0, 8, 1))
	copy(classes.Pix, []uint8{0, 9, 0, 9, 9, 9, 0, 2})
	fmt.Println("classes:", row(classes))
	var nearest [][]uint8
	for _, width := range []int{16, 6, 4} {
		small := resize.Resize(uint(width), 1, classes, resize.NearestNeighbor)
		other := image.NewGray(image.Rect(0, 0, width, 1))
		draw.NearestNeighbor.Scale(other, other.Bounds(), classes, classes.Bounds(), draw.Src, nil)
		nearest = append(nearest, row(small))
		var invented []uint8
		for _, v := range row(small) {
			if !slices.Contains(classes.Pix, v) {
				invented = append(invented, v)
			}
		}
		fmt.Println("width", width, "by resize.NearestNeighbor:", row(small), "invented:", invented, "by x/image/draw:", row(other))
	}
	up := []uint8{0, 0, 9, 9, 0, 0, 9, 9, 9, 9, 9, 9, 0, 0, 2, 2}
	if !slices.Equal(nearest[0], up) || !slices.Equal(nearest[2], []uint8{4, 4, 9, 1}) {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/nfnt/resize@v0.0.0-20180221191011-83c6a9932646 -require=golang.org/x/image@v0.25.0
go mod tidy >/dev/null 2>&1
echo "github.com/nfnt/resize $(go list -m -f '{{.Version}}' github.com/nfnt/resize), $(go version)"
go run .
