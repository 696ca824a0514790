// Package npy understands the headers of NumPy's npy files.
package npy

import (
	"fmt"
	"strconv"
	"strings"
)

// Magic is what npy files begin with.
const Magic = "\x93NUMPY"

// A Header says what an array is.
type Header struct {
	// Descr is the type as NumPy writes it, such as <f4; that of a structured
	// array is a list in brackets.
	Descr   string
	Fortran bool // the array is stored column by column
	Shape   []int
}

// ParseHeader reads the Python dictionary in a header, for example
// {'descr': '<f4', 'fortran_order': False, 'shape': (70000, 784), }. An error says
// what is wrong with it, as a clause.
func ParseHeader(text string) (Header, error) {
	p := parser{rest: text}
	return p.dict()
}

// A parser reads the literals that occur in headers, from the front of rest.
type parser struct{ rest string }

// skip passes over white space and then over token, if that comes next.
func (p *parser) skip(token string) bool {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) dict() (h Header, err error) {
	if !p.skip("{") {
		return h, fmt.Errorf("it is no dictionary")
	}
	seen := make(map[string]bool)
	for !p.skip("}") {
		key, err := p.quoted()
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, fmt.Errorf("the key %q occurs twice", key)
		}
		seen[key] = true
		if !p.skip(":") {
			return h, fmt.Errorf("there is no colon after %q", key)
		}
		switch key {
		case "descr":
			h.Descr, err = p.descr()
		case "fortran_order":
			h.Fortran, err = p.boolean()
		case "shape":
			h.Shape, err = p.tuple()
		default:
			err = fmt.Errorf("the key %q is unknown", key)
		}
		if err != nil {
			return h, err
		}
		if !p.skip(",") {
			if !p.skip("}") {
				return h, fmt.Errorf("there is no closing brace")
			}
			break
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("the key %q is missing", key)
		}
	}
	if strings.TrimRight(p.rest, " \t\r\n\x00") != "" {
		return h, fmt.Errorf("something follows the dictionary")
	}
	return h, nil
}

// quoted reads a string in single or double quotes, without escapes.
func (p *parser) quoted() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if p.skip(quote) {
			text, rest, ok := strings.Cut(p.rest, quote)
			if !ok {
				return "", fmt.Errorf("a quotation mark is not closed")
			}
			p.rest = rest
			return text, nil
		}
	}
	return "", fmt.Errorf("a string is missing")
}

// descr reads the type. That of a structured array is a list, of which the
// beginning is enough to refuse it.
func (p *parser) descr() (string, error) {
	if !p.skip("[") {
		return p.quoted()
	}
	depth := 1
	for i, c := range p.rest {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			list := "[" + p.rest[:i+1]
			p.rest = p.rest[i+1:]
			return list, nil
		}
	}
	return "", fmt.Errorf("a list is not closed")
}

func (p *parser) boolean() (bool, error) {
	if p.skip("True") {
		return true, nil
	}
	if p.skip("False") {
		return false, nil
	}
	return false, fmt.Errorf("fortran_order is neither True nor False")
}

func (p *parser) tuple() ([]int, error) {
	if !p.skip("(") {
		return nil, fmt.Errorf("shape is no tuple")
	}
	shape := []int{}
	for !p.skip(")") {
		p.skip("") // white space
		digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		n, err := strconv.Atoi(p.rest[:digits])
		if err != nil {
			return nil, fmt.Errorf("shape holds something other than sizes")
		}
		p.rest = p.rest[digits:]
		p.skip("L") // Python 2 marked long integers so
		shape = append(shape, n)
		if !p.skip(",") {
			if !p.skip(")") {
				return nil, fmt.Errorf("shape is not closed")
			}
			break
		}
	}
	return shape, nil
}
