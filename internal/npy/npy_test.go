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
		{text: "{'fortran_order': False,'shape': ( 1 , 2 ),'descr':'>i2'}\x00", want: npy.Header{Descr: ">i2", Shape: []int{1, 2}}},
		{text: "", fault: "want a dictionary"},
		{text: "{'descr': '<f4', 'descr': '<f4'}", fault: "twice"},
		{text: "{'descr' '<f4'}", fault: "want a key with its value or the end"},
		{text: "{'descr': <f4}", fault: "want a key with its value or the end"},
		{text: "{'descr': '<f4}", fault: "want a key with its value or the end"},
		{text: "{'descr': [('a', '<f4')}", fault: "want a key with its value or the end"},
		{text: "{'order': 'C'}", fault: "want a key with its value or the end"},
		{text: "{'descr': True}", fault: "descr: got True"},
		{text: "{'fortran_order': 1}", fault: "want a key with its value or the end"},
		{text: "{'shape': 3}", fault: "want a key with its value or the end"},
		{text: "{'shape': (-3,)}", fault: "want a size"},
		{text: "{'shape': (3,,4)}", fault: "want a size"},
		{text: "{'shape': (3 4)}", fault: "want a size"},
		{text: "{'shape': (9223372036854775808,)}", fault: "want a size"},
		{text: "{'shape': (3,)", fault: "want a key with its value or the end"},
		{text: "{'shape': (3,)}", fault: "descr: got none"},
		{text: "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", fault: "want a key with its value or the end"},
		{text: "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 2", fault: "want a key with its value or the end"},
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

func TestHead(t *testing.T) {
	for _, c := range []struct {
		align int
		shape []int
		want  string
	}{
		{64, nil, "()"},
		{64, []int{3}, "(3,)"},
		{64, []int{1_000_000_000, 123_456}, "(1000000000, 123456)"},
		{128, []int{7, 2}, "(7, 2)"},
	} {
		head := string(npy.Head(c.align, "<f4", c.shape...))
		text := strings.TrimRight(head[len(npy.Magic)+4:], " \n")
		if want := "{'descr': '<f4', 'fortran_order': False, 'shape': " + c.want + ", }"; text != want {
			t.Errorf("header %s, want %s", text, want)
		}
		size := int(head[8]) + 256*int(head[9])
		if len(head)%c.align != 0 || size != len(head)-10 || !strings.HasPrefix(head, npy.Magic+"\x01\x00") || !strings.HasSuffix(head, "\n") {
			t.Errorf("%q of %d bytes", head, len(head))
		}
		h, err := npy.ParseHeader(text)
		if err != nil || h.Descr != "<f4" || h.Fortran || !slices.Equal(h.Shape, c.shape) {
			t.Errorf("read as %+v, %v", h, err)
		}
	}
}
