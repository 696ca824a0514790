#!/usr/bin/env bash
# github.com/apache/arrow-go v18.8.0: adding 1500 milliseconds to a time in seconds adds 1500 seconds, takes the
# result to 1970, and does the same to the column that was only read.
#
# One would guess: a function whose arguments have different units converts them to the finer one, as the result's
# type says and as Arrow's C++ does it: 2020-01-01 plus 1500 ms is 2020-01-01 00:00:01.5. Arguments stay as they
# are.
# What happens: the finer unit is written into the arguments' own types, which are shared pointers, so that types
# and values do not fit any more, and no conversion takes place, as the types are equal by then. The column of
# times, in seconds until the call, is one of milliseconds after it, in 1970, with all columns and schemas that
# share its type. For the library's ready-made types that is everything: after one call
# arrow.FixedWidthTypes.Timestamp_s means milliseconds in the whole program, and a duration of 2 s is 2 ms. The
# same with subtract. There is no error.
# Source: github.com/apache/arrow-go v18.8.0, arrow/compute/utils.go (replaceTemporalTypes), called by
# arrow/compute/arithmetic.go (arithmeticFunction.DispatchBest).
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

func column(kind arrow.DataType, value string) arrow.Array {
	values, _, err := array.FromJSON(memory.DefaultAllocator, kind, strings.NewReader("["+value+"]"))
	if err != nil {
		panic(err)
	}
	return values
}

func add(a, b arrow.Array) arrow.Array {
	out, err := compute.CallFunction(context.Background(), "add", nil, compute.NewDatum(a), compute.NewDatum(b))
	if err != nil {
		panic(err)
	}
	return out.(*compute.ArrayDatum).MakeArray()
}

func show(name string, a arrow.Array) string {
	fmt.Printf("%s: %s, of type %s\n", name, a.ValueStr(0), a.DataType())
	return a.ValueStr(0)
}

func main() {
	times := column(&arrow.TimestampType{Unit: arrow.Second}, `"2020-01-01 00:00:00"`)
	same := column(&arrow.DurationType{Unit: arrow.Second}, "2")
	millis := column(&arrow.DurationType{Unit: arrow.Millisecond}, "1500")
	before := show("the time", times)
	right := show("the time + 2 s", add(times, same))
	wrong := show("the time + 1500 ms (right: 2020-01-01T00:00:01.5)", add(times, millis))
	after := show("the time after the addition", times)

	fmt.Println("arrow.FixedWidthTypes.Timestamp_s:", arrow.FixedWidthTypes.Timestamp_s)
	add(column(arrow.FixedWidthTypes.Timestamp_s, `"2020-01-01 00:00:00Z"`), millis)
	unit := arrow.FixedWidthTypes.Timestamp_s.(*arrow.TimestampType).Unit
	fmt.Println("arrow.FixedWidthTypes.Timestamp_s after an addition:", arrow.FixedWidthTypes.Timestamp_s)
	if !strings.HasPrefix(before, "2020") || !strings.HasPrefix(right, "2020-01-01T00:00:02") || !strings.HasPrefix(wrong, "1970") ||
		!strings.HasPrefix(after, "1970") || unit != arrow.Millisecond {
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
