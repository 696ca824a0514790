package train

import (
	"slices"

	"cne/internal/enum"
)

var annealNames = enum.Names[Anneal]{Package: "train", Type: "Anneal", What: "schedule", Err: ErrInput, Words: []string{"linear", "none", "cosine"}}

func (a Anneal) String() string { return annealNames.String(a) }

// MarshalText implements encoding.TextMarshaler: Constant is "none".
func (a Anneal) MarshalText() ([]byte, error) { return annealNames.Text(a) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Anneal) UnmarshalText(text []byte) error { return annealNames.Parse(a, text) }

// Words returns the names of all schedules, with that of none at the end.
func (Anneal) Words() []string { return []string{"linear", "cosine", "none"} }

var samplingNames = enum.Names[Sampling]{Package: "train", Type: "Sampling", What: "way to draw negatives", Err: ErrInput, Words: []string{"auto", "singly", "runs"}}

func (s Sampling) String() string { return samplingNames.String(s) }

// MarshalText implements encoding.TextMarshaler: "auto", "singly" or "runs".
func (s Sampling) MarshalText() ([]byte, error) { return samplingNames.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sampling) UnmarshalText(text []byte) error { return samplingNames.Parse(s, text) }

// Words returns the names of all ways to draw negatives.
func (Sampling) Words() []string { return slices.Clone(samplingNames.Words) }
