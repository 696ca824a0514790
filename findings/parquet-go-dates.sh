#!/usr/bin/env bash
# github.com/parquet-go/parquet-go v0.32.0: a time.Time in a column of dates is written as another
# date, millions of years away, without an error.
#
# One would guess: the tag "date", which the documentation allows for time.Time, stores the days since
# 1970, as type DATE has it: 2020-01-02 is day 18263 and comes back as it went in.
# What happens: the rows of a struct are written as nanoseconds, whatever the column's type, unless it is
# a timestamp in other units. The column has 32 bits, so that the low half of the nanoseconds is stored as days:
# 2020-01-02 becomes day 1255735296, in the year 3440056. Only 1970-01-01 is right. parquet.Write and
# GenericWriter do so, for pointers and optional columns, too. An int32 with the same tag is right.
# Source: github.com/parquet-go/parquet-go v0.32.0, column_buffer_write.go (writeRowsFuncOfTime).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	Day time.Time `parquet:"day,date"`
}

type days struct {
	Day int32 `parquet:"day,date"`
}

func read[T any](file []byte) []T {
	rows, err := parquet.Read[T](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		panic(err)
	}
	return rows
}

func main() {
	in := []row{{time.Unix(0, 0).UTC()}, {time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)}}
	var file, right bytes.Buffer
	if err := parquet.Write(&file, in); err != nil {
		panic(err)
	}
	if err := parquet.Write(&right, []days{{0}, {18263}}); err != nil {
		panic(err)
	}
	fmt.Println("schema:", parquet.SchemaOf(row{}))
	for i := range in {
		fmt.Println("written", in[i].Day.Format(time.DateOnly), "read", read[row](file.Bytes())[i].Day.Format(time.DateOnly), "day", read[days](file.Bytes())[i].Day)
	}
	fmt.Println("day 18263, written as int32, is read as", read[row](right.Bytes())[1].Day.Format(time.DateOnly))
	if read[row](right.Bytes())[1] != in[1] || read[days](file.Bytes())[1].Day != 1255735296 {
		fmt.Println("the behaviour has changed")
		os.Exit(1)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/parquet-go/parquet-go@v0.32.0
go mod tidy >/dev/null 2>&1
echo "github.com/parquet-go/parquet-go $(go list -m -f '{{.Version}}' github.com/parquet-go/parquet-go), $(go version)"
go run .
