package data

import "slices"

// A Coding says how the fields of a column of a table become numbers, if they are not
// plain numbers. A model keeps those of its points, to read new points in the same way.
type Coding struct {
	// Column is the name of the column, or its number, counted from 1, without names.
	Column string     `json:"column"`
	Kind   CodingKind `json:"kind"`
	// Values are the values of CodingCategory, each of which has a column of 0 and 1.
	Values []string `json:"values,omitempty"`
	// First is the first column of Values in the points.
	First int `json:"first,omitempty"`
}

// A CodingKind is a way of writing numbers as text.
type CodingKind string

// Kinds of codings.
const (
	CodingTruth    CodingKind = "truth"     // true and false, in any case: 1 and 0
	CodingPoint    CodingKind = "point"     // 1,234.5, and with spaces or apostrophes
	CodingComma    CodingKind = "comma"     // 1.234,5, and with spaces or apostrophes
	CodingVector   CodingKind = "vector"    // [1, 2, 3]: several numbers
	CodingDate     CodingKind = "date"      // days since 1970: 2024-12-31, with a time, or 31.12.2024
	CodingMonthDay CodingKind = "month/day" // days since 1970: 12/31/2024
	CodingDayMonth CodingKind = "day/month" // days since 1970: 31/12/2024
	CodingCategory CodingKind = "category"  // one of Values
	CodingText     CodingKind = "text"      // no number: the column is left out
)

// CheckCodings returns an error wrapping ErrShape for codings that points of d values do
// not have.
func CheckCodings(codings []Coding, d int) error {
	for _, c := range codings {
		if c.First < 0 || c.First > d || len(c.Values) > d-c.First {
			return errorf(ErrShape, "coding of column %q: got %d values from %d on, want them within %d", c.Column, len(c.Values), c.First, d)
		}
	}
	return nil
}

// oneHot reports which columns of points are 1 for a category and 0 for others.
func oneHot(codings []Coding, d int) []bool {
	is := make([]bool, d)
	for _, c := range codings {
		for k := range c.Values {
			is[c.First+k] = true
		}
	}
	return is
}

// CodingOf returns the coding of a column, or one of no kind.
func CodingOf(codings []Coding, column string) Coding {
	if i := slices.IndexFunc(codings, func(c Coding) bool { return c.Column == column }); i >= 0 {
		return codings[i]
	}
	return Coding{Column: column}
}
