#!/usr/bin/env bash
# github.com/scigolib/hdf5 v0.14.0: an unsigned number is right in a dataset and negative in an
# attribute of the same type, without an error. The file is written by h5wasm 0.10.3 (HDF5 2.0.0).
#
# One would guess: Dataset.Read and Attribute.ReadValue of the type H5T_STD_U32LE give the same
# number, since both know the type.
# What happens: 4294967295 is 4.294967295e+09 as a dataset and −1 as an attribute: the attribute's
# value is decoded as a signed integer of its size, whatever its sign bit says. Counts, offsets and
# identifiers from 2³¹ on (2⁶³ for 8 bytes) are affected.
# Source: github.com/scigolib/hdf5 v0.14.0, internal/core/attribute.go (Attribute.ReadValue).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true, "dependencies": {"h5wasm": "0.10.3"}}' >package.json
npm install --silent >/dev/null 2>&1
cat >write.mjs <<'JS'
import h5wasm from "h5wasm/node";
await h5wasm.ready;
const file = new h5wasm.File("unsigned.h5", "w");
file.create_dataset({name: "counts", data: new Uint32Array([1, 4294967295]), dtype: "<I"});
file.get("counts").create_attribute("largest", new Uint32Array([4294967295]), [1], "<I");
console.log("h5wasm reads the dataset", [...file.get("counts").value], "and the attribute", [...file.get("counts").attrs.largest.value]);
file.close();
JS
node write.mjs
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/scigolib/hdf5"
)

func main() {
	file, err := hdf5.Open("unsigned.h5")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	file.Walk(func(path string, object hdf5.Object) {
		set, ok := object.(*hdf5.Dataset)
		if !ok {
			return
		}
		values, err := set.Read()
		if err != nil {
			panic(err)
		}
		attributes, err := set.Attributes()
		if err != nil || len(attributes) != 1 {
			panic(fmt.Sprint(attributes, err))
		}
		attribute, err := attributes[0].ReadValue()
		if err != nil {
			panic(err)
		}
		fmt.Println("scigolib/hdf5 v0.14.0 reads the dataset", values, "and the attribute", attribute)
		if values[1] != 4294967295 || fmt.Sprint(attribute) != "-1" {
			fmt.Println("the behaviour has changed")
			os.Exit(1)
		}
	})
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require=github.com/scigolib/hdf5@v0.14.0
go mod tidy >/dev/null 2>&1
go run .
