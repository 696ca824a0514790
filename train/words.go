package train

import (
	"slices"

	"cne/internal/enum"
)

var annealNames = enum.Names[Anneal]{Package: "train", Type: "Anneal", What: "schedule", Words: []string{"linear", "none", "cosine"}}

func (a Anneal) String() string { return annealNames.String(a) }

// MarshalText implements encoding.TextMarshaler: Constant is "none".
func (a Anneal) MarshalText() ([]byte, error) { return annealNames.Text(a) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Anneal) UnmarshalText(text []byte) error { return annealNames.Parse(a, text) }

// Words returns the names of all schedules, with that of none at the end.
func (Anneal) Words() []string { return []string{"linear", "cosine", "none"} }

var drawNames = enum.Names[Draw]{Package: "train", Type: "Draw", What: "way to draw negatives", Words: []string{"auto", "singly", "runs"}}

func (d Draw) String() string { return drawNames.String(d) }

// MarshalText implements encoding.TextMarshaler: "auto", "singly" or "runs".
func (d Draw) MarshalText() ([]byte, error) { return drawNames.Text(d) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Draw) UnmarshalText(text []byte) error { return drawNames.Parse(d, text) }

// Words returns the names of all ways to draw negatives.
func (Draw) Words() []string { return slices.Clone(drawNames.Words) }
