package npy_test

import (
	"slices"
	"strings"
	"testing"

	"cne/internal/npy"
)

func TestParseHeader(t *testing.T) {
	for _, tc := range []struct {
		text  string
		want  npy.Header
		fault string // "": none
	}{
		{text: "{'descr': '<f4', 'fortran_order': False, 'shape': (70000, 784), }  \n", want: npy.Header{Descr: "<f4", Shape: []int{70000, 784}}},
		{text: `{"shape":(3L,),"descr":"|u1","fortran_order":True}`, want: npy.Header{Descr: "|u1", Fortran: true, Shape: []int{3}}},
		{text: "{'descr': '<U3', 'fortran_order': False, 'shape': ()}", want: npy.Header{Descr: "<U3"}},
		{text: "{'descr': [('a', ['<f4']), ('b', '<i4')], 'fortran_order': False, 'shape': (2,)}", want: npy.Header{Descr: "[('a', ['<f4']), ('b', '<i4')]", Shape: []int{2}}},
		{text: "", fault: "no dictionary"},
		{text: "{'descr': '<f4', 'descr': '<f4'}", fault: "twice"},
		{text: "{'descr' '<f4'}", fault: "no colon"},
		{text: "{'descr': <f4}", fault: "string is missing"},
		{text: "{'descr': '<f4}", fault: "not closed"},
		{text: "{'descr': [('a', '<f4')}", fault: "list is not closed"},
		{text: "{'order': 'C'}", fault: "unknown"},
		{text: "{'fortran_order': 1}", fault: "neither True nor False"},
		{text: "{'shape': 3}", fault: "no tuple"},
		{text: "{'shape': (-3,)}", fault: "other than sizes"},
		{text: "{'shape': (3 4)}", fault: "shape is not closed"},
		{text: "{'shape': (3,)", fault: "no closing brace"},
		{text: "{'shape': (3,)}", fault: "missing"},
		{text: "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 2", fault: "follows"},
	} {
		got, err := npy.ParseHeader(tc.text)
		if tc.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%s: %v, want an error with %q", tc.text, err, tc.fault)
			}
			continue
		}
		if err != nil || got.Descr != tc.want.Descr || got.Fortran != tc.want.Fortran || !slices.Equal(got.Shape, tc.want.Shape) {
			t.Errorf("%s: %+v, %v", tc.text, got, err)
		}
	}
}
