package configs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/text"
)

// resolve follows a YAML alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
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

// valueNode returns the node that stands for a value of a configuration in YAML.
func valueNode(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case nil:
		return scalar("!!null", "null"), nil
	case float64:
		return scalar("!!float", formatFloat(v)), nil
	case Negatives:
		if v == Full {
			return scalar("!!str", "full"), nil
		}
	case ZBar:
		if v == Uniform {
			return scalar("!!str", "uniform"), nil
		}
		return valueNode(float64(v))
	case Holdout:
		if len(v.Paths) == 0 {
			return valueNode(v.Share)
		}
		return valueNode(v.Paths)
	case TrainOn:
		switch {
		case v.File != "":
			return valueNode(v.File)
		case v.Number > 0:
			return valueNode(v.Number)
		}
		return valueNode(v.Share)
	case Cache:
		if v.Folder == "" {
			return valueNode(v.Keep)
		}
		return valueNode(v.Folder)
	case []Phase:
		return entryNodes(v)
	case []NetworkStage:
		return entryNodes(v)
	}
	n := new(yaml.Node)
	if err := n.Encode(v); err != nil {
		return nil, fmt.Errorf("writing a value as YAML: %w", err)
	}
	if n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	quoteUnsafe(n)
	return n, nil
}

// quoteUnsafe puts texts into double quotes that hold characters which must not reach
// a terminal, so that whoever prints the YAML may escape them.
func quoteUnsafe(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && text.Escape(n.Value) != n.Value {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, item := range n.Content {
		quoteUnsafe(item)
	}
}

// entryNodes returns a list with one entry per line; keys that are inherited, and lists
// without items, are left out.
func entryNodes[T any](entries []T) (*yaml.Node, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if len(entries) == 0 {
		list.Style = yaml.FlowStyle
	}
	for _, entry := range entries {
		m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
		for _, k := range entryKeys[T]() {
			v := value(entry, k)
			if items, ok := v.([]string); v == nil || ok && len(items) == 0 {
				continue
			}
			n, err := valueNode(v)
			if err != nil {
				return nil, err
			}
			m.Content = append(m.Content, scalar("!!str", k.name), n)
		}
		list.Content = append(list.Content, m)
	}
	return list, nil
}

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// formatFloat writes a number in the shortest form that reads back to the same
// value and that YAML 1.1 and 1.2 both take for a floating-point number: with
// a decimal point, also before an exponent.
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

// inline writes a value as one line of YAML, a long one shortened.
func inline(v any) string { return text.Shorten(line(v)) }

// line writes a value as one line of YAML.
func line(v any) string {
	n, err := valueNode(deref(v))
	if err != nil {
		return fmt.Sprint(v)
	}
	line, err := flow(*n)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.Join(slices.Collect(strings.FieldsSeq(line)), " ")
}

// flow writes a node as one line of YAML, or more if it is long.
func flow(n yaml.Node) (string, error) {
	n.Style |= yaml.FlowStyle
	line, err := yaml.Marshal(&n)
	return strings.TrimSpace(string(line)), err
}
