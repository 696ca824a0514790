#!/usr/bin/env bash
# gonum v0.17.0: the log density of a logistic distribution ignores its location and its scale.
#
# One would guess: LogProb is the logarithm of Prob, as its comment says, for every Mu and S; far out it falls as
# −|x − Mu|/S.
# What happens: it is that of the standard distribution, x − 2·log(1 + e^x), whatever Mu and S are. For Mu = 1 and
# S = 2, Prob(10) is 0.00543, whose logarithm is −5.22, and LogProb(10) is −10.0. With Mu = 100 the most probable
# value has LogProb = −100 instead of −1.39, and from 710 on all have −Inf, since e^x overflows. The likelihood of
# a sample, summed up from it, is the same for all parameters, so that there is nothing to maximise. Prob, CDF and
# Quantile are right.
# Source: gonum.org/v1/gonum v0.17.0, stat/distuv/logistic.go (Logistic.LogProb).
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

	"gonum.org/v1/gonum/stat/distuv"
)

func main() {
	changed := false
	for _, test := range []struct{ mu, s, x float64 }{{0, 1, 2}, {1, 2, 0.5}, {1, 2, 10}, {100, 1, 100}, {1000, 100, 1000}} {
		d := distuv.Logistic{Mu: test.mu, S: test.s}
		got := d.LogProb(test.x)
		h := 1e-3 * test.s // the density is the slope of CDF
		slope := (d.CDF(test.x+h) - d.CDF(test.x-h)) / (2 * h)
		fmt.Printf("Mu = %g, S = %g, x = %g: LogProb %.4f, logarithm of Prob %.4f, of the slope of CDF %.4f\n",
			test.mu, test.s, test.x, got, math.Log(d.Prob(test.x)), math.Log(slope))
		changed = changed || got != distuv.Logistic{Mu: 0, S: 1}.LogProb(test.x) || math.Abs(math.Log(d.Prob(test.x)/slope)) > 1e-5
	}
	sample := []float64{3, 5, 4, 6, 2}
	for _, mu := range []float64{-50, 4, 50} {
		var likelihood float64
		for _, x := range sample {
			likelihood += distuv.Logistic{Mu: mu, S: 1}.LogProb(x)
		}
		fmt.Printf("log likelihood of 3 5 4 6 2 for Mu = %g: %.4f\n", mu, likelihood)
	}
	if changed {
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
