#!/usr/bin/env bash
# gonum v0.17.0: Barnes-Hut forces are wrong, in size and direction, unless every mass is 1.
#
# One would guess: the smaller theta is, the closer ForceOn comes to the exact force, which
# theta = 0 gives by a loop over all particles.
# What happens: the centre of each group is divided by its mass after its children are added,
# and so is that of a single particle, which has no children: its position becomes position/mass.
# Two bodies of mass 2 push a third away at the smallest theta, though gravity attracts. With the
# mass 1 all is right; the stars of the package's own example have masses from 0 to 10. The same
# holds in three dimensions. Layouts of graphs and maps whose points have weights are affected.
# Source: gonum.org/v1/gonum v0.17.0, spatial/barneshut/barneshut2.go and barneshut3.go (summarize).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"gonum.org/v1/gonum/spatial/barneshut"
	"gonum.org/v1/gonum/spatial/r2"
)

type body struct {
	at   r2.Vec
	mass float64
}

func (b *body) Coord2() r2.Vec { return b.at }
func (b *body) Mass() float64  { return b.mass }

// forces returns the force on a body at (10, 10) by bodies at (13, 14) and (10, 40), all of
// the same mass, by the loop and by the tree.
func forces(mass float64) (exact, tree r2.Vec) {
	bodies := []barneshut.Particle2{&body{r2.Vec{X: 10, Y: 10}, mass}, &body{r2.Vec{X: 13, Y: 14}, mass}, &body{r2.Vec{X: 10, Y: 40}, mass}}
	plane, err := barneshut.NewPlane(bodies)
	if err != nil {
		panic(err)
	}
	return plane.ForceOn(bodies[0], 0, barneshut.Gravity2), plane.ForceOn(bodies[0], 1e-9, barneshut.Gravity2)
}

func main() {
	exact1, tree1 := forces(1)
	exact2, tree2 := forces(2)
	fmt.Printf("mass 1: theta 0 %.4f, theta 1e-9 %.4f\n", exact1, tree1)
	fmt.Printf("mass 2: theta 0 %.4f, theta 1e-9 %.4f\n", exact2, tree2)
	if r2.Norm(r2.Sub(exact1, tree1)) > 1e-12 || r2.Norm(r2.Sub(exact2, r2.Scale(4, exact1))) > 1e-12 || r2.Dot(exact2, tree2) > 0 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=gonum.org/v1/gonum@v0.17.0
go mod tidy >/dev/null 2>&1
echo "gonum.org/v1/gonum $(go list -m -f '{{.Version}}' gonum.org/v1/gonum), $(go version)"
go run .
