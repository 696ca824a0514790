package configs

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/option"
	"cne/internal/text"
)

// items returns a function that reads a list, or a single item instead. A problem with an
// item of a list has the item's number.
func items[T any](read func(item *yaml.Node, before []T) (T, *invalid)) func(n *yaml.Node) (any, *invalid) {
	return func(n *yaml.Node) (any, *invalid) {
		nodes := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			nodes = n.Content
		}
		list := make([]T, 0, len(nodes))
		for i, node := range nodes {
			v, p := read(resolve(node), list)
			if p != nil {
				if n.Kind == yaml.SequenceNode {
					p.part, p.at = fmt.Sprintf("item %d", i+1), node
				}
				return nil, p
			}
			list = append(list, v)
		}
		return list, nil
	}
}

// nonEmpty allows what r allows, except an empty list.
func nonEmpty(r rule, allowed string) rule {
	read := r.read
	r.read = func(n *yaml.Node) (any, *invalid) {
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			return nil, wrong(n, allowed)
		}
		return read(n)
	}
	return r
}

// textList allows a list of texts that parse takes.
func textList(parse func(*yaml.Node) (string, bool), allowed string) rule {
	return rule{text: asList, read: items(func(item *yaml.Node, _ []string) (string, *invalid) {
		if s, ok := parse(item); ok {
			return s, nil
		}
		p := wrong(item, allowed)
		p.hint = quoteHint(item)
		return "", p
	})}
}

func list() rule { return textList(parseNonEmpty, "a path or a list of paths") }

func nonEmptyList() rule { return nonEmpty(list(), "a path or a list of at least one path") }

// holdout allows a share, or a path or a list of paths.
func holdout() rule {
	paths := nonEmptyList()
	return rule{text: asList, read: func(n *yaml.Node) (any, *invalid) {
		x, err := text.Decimal(n.Value) // outside a file it is text
		switch {
		case x > 0 && x < 1:
			return Holdout{Share: x}, nil
		case err == nil:
			return nil, wrong(n, "a share between 0 and 1, a path or a list of paths")
		}
		v, p := paths.read(n)
		if p != nil {
			return nil, p
		}
		return Holdout{Paths: v.([]string)}, nil
	}}
}

// trainOn allows a number or share of points, or the path of a file.
func trainOn() rule {
	return rule{text: asText, read: func(n *yaml.Node) (any, *invalid) {
		x, err := text.Decimal(n.Value) // outside a file it is text
		path, isPath := parseNonEmpty(n)
		switch {
		case x > 0 && x <= 1:
			return TrainOn{Share: x}, nil
		case x >= 2 && x <= math.MaxInt32 && x == math.Trunc(x):
			return TrainOn{Number: int(x)}, nil
		case isPath && err != nil:
			return TrainOn{File: path}, nil
		}
		return nil, wrong(n, "a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows")
	}}
}

// cache allows a truth value, or the path of a folder. Outside a file both are text.
func cache() rule {
	return rule{text: asText, words: []string{"true", "false"}, read: func(n *yaml.Node) (any, *invalid) {
		var keep bool
		if isScalar(n, "!!bool") && n.Decode(&keep) == nil {
			return Cache{Keep: keep}, nil
		}
		folder, ok := parseNonEmpty(n)
		if !ok {
			p := wrong(n, "true, false or a folder")
			p.hint = quoteHint(n)
			return nil, p
		}
		switch word := strings.ToLower(folder); word {
		case "true", "false":
			return Cache{Keep: word == "true"}, nil
		case "yes", "no", "on", "off", "0", "1":
			p := wrong(n, "true, false or a folder")
			p.hint = "a folder of that name is ./" + folder
			return nil, p
		}
		return Cache{Keep: true, Folder: folder}, nil
	}}
}

// wholes allows a list of whole numbers of an interval, or one such number.
func wholes(in option.Range) rule {
	allowed := fmt.Sprintf("a list of whole numbers from %v to %v, such as [100, 100]", in.Low, in.High)
	return rule{text: asNumbers, read: items(func(item *yaml.Node, _ []int) (int, *invalid) {
		v, ok := parseWhole(item)
		if !ok || !in.Contains(float64(v)) {
			return 0, wrong(item, allowed)
		}
		return int(v), nil
	})}
}

// seeds allows a list of different whole numbers of at least 0, or one such
// number.
func seeds() rule {
	const allowed = "a whole number of at least 0 or a list of them, such as [0, 1, 2]"
	return nonEmpty(rule{text: asNumbers, read: items(func(item *yaml.Node, before []uint64) (uint64, *invalid) {
		v, ok := parseWhole(item)
		switch {
		case !ok || v < 0:
			return 0, wrong(item, allowed)
		case slices.Contains(before, uint64(v)):
			return 0, &invalid{text: "got " + describe(item) + " twice, want each seed once"}
		}
		return uint64(v), nil
	})}, allowed)
}

// colours allows a number for each of red, green and blue.
func colours(in option.Range) rule {
	read := items(func(item *yaml.Node, _ []float32) (float32, *invalid) {
		x, ok := parseNumber(item)
		if !ok || !in.Contains(x) {
			return 0, wrong(item, in.Text(false))
		}
		return float32(x), nil
	})
	return rule{text: asNumbers, read: func(n *yaml.Node) (any, *invalid) {
		if n.Kind != yaml.SequenceNode || len(n.Content) != 3 {
			return nil, wrong(n, "a list of three numbers, for red, green and blue")
		}
		list, p := read(n)
		if p != nil {
			return nil, p
		}
		return [3]float32(list.([]float32)), nil
	}}
}

// entries allows a list of mappings with the keys of the structs of a slice type. item is
// what messages call a mapping.
func entries(t reflect.Type, item string) rule {
	keys := keysOf(t.Elem())
	return rule{read: func(n *yaml.Node) (any, *invalid) {
		if n.Kind != yaml.SequenceNode {
			return nil, wrong(n, fmt.Sprintf("a list of %ss, such as [{%s: 5}]", item, keys[0].Key))
		}
		list := reflect.MakeSlice(t, len(n.Content), len(n.Content))
		for i, node := range n.Content {
			if p := readEntry(resolve(node), keys, list.Index(i)); p != nil {
				of := fmt.Sprintf("%s %d", item, i+1)
				if p.part != "" {
					of = p.part + " of " + of
				}
				p.part, p.at = of, cmp.Or(p.at, node)
				return nil, p
			}
		}
		return list.Interface(), nil
	}, write: func(v any) any { return entryNodes(reflect.ValueOf(v), keys) }}
}

// readEntry reads one entry of a list of mappings. The part that a fault names is a key of
// the entry.
func readEntry(n *yaml.Node, keys []key, entry reflect.Value) *invalid {
	if n.Kind != yaml.MappingNode {
		return wrong(n, "a mapping with the keys "+text.Enumerate(names(keys)))
	}
	given := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		name, node := n.Content[i], n.Content[i+1]
		k, ok := find(keys, name.Value)
		switch {
		case !ok:
			return &invalid{at: name, text: fmt.Sprintf("got the unknown key %s, want %s", text.Quote(name.Value), text.Enumerate(names(keys)))}
		case given[k.Key]:
			return &invalid{part: k.Key, at: name, text: "given twice"}
		}
		given[k.Key] = true
		v, p := k.rule.value(node)
		if p != nil {
			if p.part != "" {
				p.part += " of "
			}
			p.part, p.at = p.part+k.Key, node
			return p
		}
		assign(entry.FieldByIndex(k.Index), v)
	}
	return nil
}
