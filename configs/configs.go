// Package configs holds runs of cne as YAML files, ready to use with
// cne train --config. The file default.yaml lists every key with its default
// and is part of the program; the other files set only what differs from it.
// Reading and checking a configuration is the work of cmd/cne.
package configs

import _ "embed"

//go:embed default.yaml
var defaults string

// Default returns the text of default.yaml: every key, its default and a
// comment that says what it means.
func Default() string { return defaults }
