package train

import (
	"cne/internal/errkind"
	"slices"
)

var scheduleNames = errkind.Names[Schedule]{Package: "train", Type: "Schedule", What: "schedule", Err: ErrInput, Words: []string{"linear", "none", "cosine"}}

func (a Schedule) String() string { return scheduleNames.String(a) }

// MarshalText implements encoding.TextMarshaler: Constant is "none".
func (a Schedule) MarshalText() ([]byte, error) { return scheduleNames.Text(a) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Schedule) UnmarshalText(text []byte) error { return scheduleNames.Parse(a, text) }

// Words returns the names of all schedules, with that of none at the end.
func (Schedule) Words() []string { return []string{"linear", "cosine", "none"} }

var samplingNames = errkind.Names[Sampling]{Package: "train", Type: "Sampling", What: "way to draw negatives", Err: ErrInput, Words: []string{"auto", "singly", "runs"}}

func (s Sampling) String() string { return samplingNames.String(s) }

// MarshalText implements encoding.TextMarshaler: "auto", "singly" or "runs".
func (s Sampling) MarshalText() ([]byte, error) { return samplingNames.Text(s) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sampling) UnmarshalText(text []byte) error { return samplingNames.Parse(s, text) }

// Words returns the names of all ways to draw negatives.
func (Sampling) Words() []string { return slices.Clone(samplingNames.Words) }
