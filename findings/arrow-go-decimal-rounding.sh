#!/usr/bin/env bash
# github.com/apache/arrow-go v18.8.0: floor of the decimal −0.5 is 0, and ceil of 0.5 is 0.
#
# One would guess: floor gives the largest whole number that is not above the value, for decimals as for floats: −1
# for −0.5; ceil gives 1 for 0.5, and both agree with Arrow's C++ and with SQL.
# What happens: the fraction is taken off first, and then the sign of what is left decides whether one is to be
# added or subtracted. Between −1 and 1 nothing is left, which has no sign, so that all of these become 0:
# floor(−0.999) = 0, ceil(0.999) = 0. −1.001 is right with −2. It is the same for round with RoundDown or RoundUp
# and a number of digits: −50.1 to hundreds is 0 instead of −100, and for 256 bits. Amounts below one unit, fees,
# rates and shares, are rounded to nothing. HalfUp makes 0 of 0.5, HalfDown 0 of −0.5. Floats, and the other modes,
# are right. No error is returned.
# Source: github.com/apache/arrow-go v18.8.0, arrow/compute/internal/kernels/rounding.go (getDecRounding).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// call returns what a function makes of one value of a type.
func call(function string, options compute.FunctionOptions, kind arrow.DataType, value string) string {
	values, _, err := array.FromJSON(memory.DefaultAllocator, kind, strings.NewReader("["+value+"]"))
	if err != nil {
		panic(err)
	}
	out, err := compute.CallFunction(context.Background(), function, options, compute.NewDatum(values))
	if err != nil {
		panic(err)
	}
	return out.(*compute.ArrayDatum).MakeArray().ValueStr(0)
}

func main() {
	changed := false
	decimal := &arrow.Decimal128Type{Precision: 10, Scale: 3}
	for _, value := range []string{"-1.001", "-0.999", "-0.500", "0.000", "0.500", "0.999", "1.001"} {
		var floor, ceil [2]string
		for i, kind := range []arrow.DataType{decimal, arrow.PrimitiveTypes.Float64} {
			text := value
			if i == 0 {
				text = `"` + value + `"`
			}
			floor[i], ceil[i] = call("floor", nil, kind, text), call("ceil", nil, kind, text)
		}
		fmt.Printf("%s: floor as a decimal %s, as a float %s; ceil as a decimal %s, as a float %s\n", value, floor[0], floor[1], ceil[0], ceil[1])
		small := value[len(value)-5] == '0' // between -1 and 1
		changed = changed || small && (floor[0] != "0" || ceil[0] != "0") || !small && (floor[0] != floor[1] || ceil[0] != ceil[1])
	}
	hundreds := call("round", &compute.RoundOptions{NDigits: -2, Mode: compute.RoundDown}, decimal, `"-50.100"`)
	half := call("round", &compute.RoundOptions{Mode: compute.RoundHalfUp}, decimal, `"0.500"`)
	fmt.Println("-50.100 rounded down to hundreds:", hundreds, "(right: -100); 0.500 with halves up:", half, "(right: 1)")
	if changed || hundreds != "0" || half != "0" {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/apache/arrow-go/v18@v18.8.0
go mod tidy >/dev/null 2>&1
echo "github.com/apache/arrow-go $(go list -m -f '{{.Version}}' github.com/apache/arrow-go/v18), $(go version)"
go run .
