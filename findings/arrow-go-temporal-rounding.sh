#!/usr/bin/env bash
# github.com/apache/arrow-go v18.8.0: floor_temporal takes a day in 2500 to 1915, and a day in 1960 to one three
# weeks later.
#
# One would guess: rounding down to a year, month or week gives the beginning of the period in which the time lies,
# at or before it, for every time that the column's unit can hold: seconds reach far beyond any calendar.
# What happens: for years, quarters, months and weeks a time is turned into nanoseconds first, in 64 bits, which
# end in 1677 and 2262; beyond, the product overflows in silence: 2500-06-15 is floored to 1915-01-01, 1600-06-15
# to 2185-01-01. Days and shorter units stay in seconds and are right. For a multiple of weeks before 1970 the
# number of the period is rounded towards 1970 instead of down: five weeks from 1960-02-29 are floored to
# 1960-03-21, after the day itself. Dates of history, far ends such as 9999-12-31 for "valid until", and long
# simulations are affected. There is no error.
# Source: github.com/apache/arrow-go v18.8.0, arrow/compute/internal/kernels/rounding.go (convertToNanos,
# roundTimestamp, roundTimestampCalendar).
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
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// floor returns the beginning of the period in which a day lies, in a column of seconds.
func floor(day string, multiple int64, unit compute.RoundTemporalUnit) string {
	values, _, err := array.FromJSON(memory.DefaultAllocator, &arrow.TimestampType{Unit: arrow.Second}, strings.NewReader(`["`+day+` 00:00:00"]`))
	if err != nil {
		panic(err)
	}
	options := &compute.RoundTemporalOptions{Multiple: multiple, Unit: unit, WeekStartsMonday: true}
	out, err := compute.CallFunction(context.Background(), "floor_temporal", options, compute.NewDatum(values))
	if err != nil {
		panic(err)
	}
	return out.(*compute.ArrayDatum).MakeArray().(*array.Timestamp).Value(0).ToTime(arrow.Second).Format(time.DateOnly)
}

func main() {
	changed := false
	for _, test := range []struct {
		day      string
		multiple int64
		name     string
		unit     compute.RoundTemporalUnit
		is       string
	}{
		{"2020-06-15", 1, "year", compute.RoundTemporalYear, "2020-01-01"},
		{"2500-06-15", 1, "day", compute.RoundTemporalDay, "2500-06-15"},
		{"2500-06-15", 1, "year", compute.RoundTemporalYear, "1915-01-01"},
		{"2500-06-15", 1, "month", compute.RoundTemporalMonth, "1915-11-01"},
		{"1600-06-15", 1, "year", compute.RoundTemporalYear, "2185-01-01"},
		{"2020-02-29", 5, "weeks", compute.RoundTemporalWeek, "2020-02-10"},
		{"1960-02-29", 1, "week", compute.RoundTemporalWeek, "1960-02-29"},
		{"1960-02-29", 5, "weeks", compute.RoundTemporalWeek, "1960-03-21"},
	} {
		got := floor(test.day, test.multiple, test.unit)
		note := ""
		if got[:4] != test.day[:4] {
			note = "another year"
		} else if got > test.day {
			note = "after the day"
		}
		fmt.Printf("%s, floor to %d %s: %s %s\n", test.day, test.multiple, test.name, got, note)
		changed = changed || got != test.is
	}
	if changed {
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
