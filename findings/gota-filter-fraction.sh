#!/usr/bin/env bash
# github.com/go-gota/gota v0.12.0: a filter compares a column of whole numbers with 2 where it is asked to
# compare with 2.5.
#
# One would guess: of 1 2 3 4, those below 2.5 are 1 and 2, and none equals 2.5, as in pandas, R and SQL, whether
# the column holds integers or not.
# What happens: the number to compare with is converted to the column's type first, and its fraction is cut off.
# "Less than 2.5" leaves 1 alone, "at least 2.5" keeps 2, "equal to 2.5" finds 2; negative limits move the other
# way, so that "greater than -1.5" loses -1. ReadCSV makes a column integer when no cell has a decimal point,
# so that the same filter is right for one file and wrong for the next. A limit as text, "2.5", becomes NaN and
# leaves nothing. No error is set.
# Source: github.com/go-gota/gota v0.12.0, series/series.go (Series.Compare) and series/type-int.go
# (intElement.Set).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-gota/gota/dataframe"
	"github.com/go-gota/gota/series"
)

// filter returns the values of the column n of a table that a filter keeps.
func filter(csv string, c series.Comparator, limit any) string {
	kept := dataframe.ReadCSV(strings.NewReader(csv)).Filter(dataframe.F{Colname: "n", Comparator: c, Comparando: limit})
	if kept.Err != nil {
		panic(kept.Err)
	}
	return fmt.Sprint(kept.Col("n").Float())
}

func main() {
	changed := false
	for _, c := range []struct {
		comparator series.Comparator
		limit      any
		is, right  string
	}{
		{series.Less, 2.5, "[-1 1]", "[-1 1 2]"},
		{series.Less, "2.5", "[]", "[-1 1 2]"},
		{series.GreaterEq, 2.5, "[2 3]", "[3]"},
		{series.Greater, -1.5, "[1 2 3]", "[-1 1 2 3]"},
		{series.Eq, 2.5, "[2]", "[]"},
		{series.Neq, 2.5, "[-1 1 3]", "[-1 1 2 3]"},
	} {
		whole := filter("n\n-1\n1\n2\n3\n", c.comparator, c.limit)
		decimal := filter("n\n-1.0\n1.0\n2.0\n3.0\n", c.comparator, c.limit)
		fmt.Printf("%2s %4v of -1 1 2 3: %-10s of -1.0 1.0 2.0 3.0: %-12s (right: %s)\n", c.comparator, c.limit, whole, decimal, c.right)
		changed = changed || whole != c.is || decimal != c.right
	}
	if changed {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/go-gota/gota@v0.12.0
go mod tidy >/dev/null 2>&1
echo "github.com/go-gota/gota $(go list -m -f '{{.Version}}' github.com/go-gota/gota), $(go version)"
go run .
