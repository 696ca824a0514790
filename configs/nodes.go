package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/text"
)

// resolve returns the node that a YAML alias refers to; other nodes unchanged.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// itemsOf returns the items of a list, or a single item instead.
func itemsOf(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

func isScalar(n *yaml.Node, tag string) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == tag
}

func isNull(n *yaml.Node) bool { return isScalar(n, "!!null") }

// describe names the value of a node for an error message: text in quotes,
// other scalars as they stand.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case isNull(n):
		return "null"
	case isScalar(n, "!!str"):
		return text.Quote(n.Value)
	default:
		return text.Shorten(n.Value)
	}
}

// valueNode returns a value of a configuration as a YAML node.
func valueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case nil:
		return scalar("!!null", "null")
	case bool:
		return scalar("!!bool", strconv.FormatBool(v))
	case int:
		return scalar("!!int", strconv.Itoa(v))
	case float64:
		return scalar("!!float", formatFloat(v))
	case interface{ plain() any }:
		return valueNode(v.plain())
	}
	n := new(yaml.Node)
	if err := n.Encode(v); err != nil {
		panic(err) // YAML can write all types of values
	}
	if n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	quoteUnsafe(n)
	return n
}

// quoteUnsafe puts texts into double quotes if they have characters that must not reach a
// terminal, so the characters can be escaped when the YAML is printed.
func quoteUnsafe(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && text.Escape(n.Value) != n.Value {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, item := range n.Content {
		quoteUnsafe(item)
	}
}

// entryNodes returns a list with one entry per line; keys that are null, and lists
// without items, are left out.
func entryNodes(entries reflect.Value, keys []key) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if entries.Len() == 0 {
		list.Style = yaml.FlowStyle
	}
	for i := range entries.Len() {
		m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
		for _, k := range keys {
			v := k.value(entries.Index(i))
			if items, ok := v.([]string); v == nil || ok && len(items) == 0 {
				continue
			}
			m.Content = append(m.Content, scalar("!!str", k.Key), k.node(v))
		}
		list.Content = append(list.Content, m)
	}
	return list
}

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// formatFloat formats a number in the shortest form that reads back to the same value and
// that YAML 1.1 and 1.2 both take for a floating-point number: with a decimal point, also
// before an exponent.
func formatFloat(x float64) string {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if strings.Contains(s, ".") {
		return s
	}
	if mantissa, exponent, ok := strings.Cut(s, "e"); ok {
		return mantissa + ".0e" + exponent
	}
	return s + ".0"
}

// inline writes a value of a key as one line of YAML, a long one shortened.
func (k *key) inline(v any) string {
	line, err := flow(*k.node(v))
	if err != nil {
		line = fmt.Sprint(v)
	}
	return text.Shorten(strings.Join(strings.Fields(line), " "))
}

// flow writes a node as one line of YAML, or more if it is long.
func flow(n yaml.Node) (string, error) {
	n.Style |= yaml.FlowStyle
	line, err := yaml.Marshal(&n)
	return strings.TrimSpace(string(line)), err
}

// Header begins every file that Write writes, and distinguishes it from other files of
// the same name.
const Header = "# cne "

// takes follows the command in the first line.
const takes = " --config takes it"

// CommandLine returns the command in the first line of such a file with SpectrumAlong's
// words, such as "cne spectrum --s 0,1", or "".
func CommandLine(line string) string {
	_, command, _ := strings.Cut(line, "; ")
	command, ok := strings.CutSuffix(strings.TrimRight(command, "\r\n"), takes)
	if !ok {
		return ""
	}
	return command
}

// CommandOf returns the command in the first line of such a file; "" if this program does
// not have it.
func CommandOf(line string) string {
	for _, s := range keySets {
		if strings.Contains(line, "; "+s.command+" ") {
			return s.command
		}
	}
	return ""
}

// Write writes a configuration with every key, in the order and with the comments of the
// defaults. Loading it gives the same value. The first line has the program's version and
// the command.
func (s *Schema[C]) Write(w io.Writer, c *C) error {
	lines, err := linesOf(s.keys, reflect.ValueOf(c).Elem())
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	text := fmt.Sprintf("%s%s: the whole configuration of a run; %s%s\n\n", Header, Version(), s.command, takes)
	for i, k := range s.keys {
		text += k.above + lines[i]
	}
	_, err = io.WriteString(w, text)
	return err
}

// linesOf returns the line of each key in the file of defaults with its value in a
// configuration, or several lines for a list, without the line of the section. One encoder
// writes all: to make one takes as long as tens of keys.
func linesOf(keys []key, config reflect.Value) ([]string, error) {
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, k := range keys {
		n := k.node(k.value(config))
		section, name, dotted := strings.Cut(k.Key, ".")
		if dotted {
			n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{scalar("!!str", name), n}}
		}
		all.Content = append(all.Content, scalar("!!str", section), n)
	}
	var text bytes.Buffer
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(all), enc.Close()); err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(keys))
	for line := range strings.Lines(text.String()) {
		if isEntry := line[0] != ' ' && line[0] != '\n'; !isEntry {
			lines[len(lines)-1] += line
			continue
		}
		if strings.Contains(keys[len(lines)].Key, ".") {
			line = "" // the section
		}
		lines = append(lines, line)
	}
	return lines, nil
}
