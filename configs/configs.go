// Package configs holds runs of cne as YAML files, ready to use with
// cne train --config, or those named simclr-… with cne simclr pretrain. The files
// default.yaml and simclr-default.yaml list every key of either with its default
// and are part of the program; the other files set only what differs from them.
// Reading and checking a configuration is the work of cmd/cne.
package configs

import _ "embed"

//go:embed default.yaml
var defaults string

//go:embed simclr-default.yaml
var simclrDefaults string

// Default returns the text of default.yaml: every key, its default and a
// comment that says what it means.
func Default() string { return defaults }

// SimCLRDefault returns the text of simclr-default.yaml, in the same form.
func SimCLRDefault() string { return simclrDefaults }
