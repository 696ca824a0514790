package configs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/text"
)

// items reads a list, or a single item in its place. A problem with an item of a
// list names it by its number.
func items[T any](n *yaml.Node, read func(item *yaml.Node, before []T) (T, *problem)) ([]T, *problem) {
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

// textList allows a list of texts that parse takes.
func textList(parse func(*yaml.Node) (string, bool), allowed string) rule {
	return rule{text: asList, read: func(n *yaml.Node) (any, *problem) {
		list, p := items(n, func(item *yaml.Node, _ []string) (string, *problem) {
			s, ok := parse(item)
			if !ok {
				p := wrong(item, allowed)
				p.hint = quoteHint(item)
				return "", p
			}
			return s, nil
		})
		if p != nil {
			return nil, p
		}
		return list, nil
	}}
}

func list() rule { return textList(parseNonEmpty, "a path or a list of paths") }

func nonEmptyList() rule {
	r := list()
	read := r.read
	r.read = func(n *yaml.Node) (any, *problem) {
		v, p := read(n)
		if items, ok := v.([]string); ok && len(items) == 0 {
			return nil, wrong(n, "a path or a list of at least one path")
		}
		return v, p
	}
	return r
}

func columns() rule {
	return textList(parseColumn, "the name or number of a column, or a list of them")
}

// parseColumn reads the name or the number of a column; either becomes text.
func parseColumn(n *yaml.Node) (string, bool) {
	if isScalar(n, "!!str") {
		return n.Value, n.Value != ""
	}
	v, ok := parseWhole(n)
	return strconv.FormatInt(v, 10), ok && v != 0
}

// holdout allows a share, or a path or a list of paths. From outside a file
// either comes as text.
func holdout() rule {
	paths := nonEmptyList()
	return rule{text: asList, read: func(n *yaml.Node) (any, *problem) {
		x, ok := parseNumber(n)
		if isScalar(n, "!!str") {
			var err error
			x, err = strconv.ParseFloat(n.Value, 64)
			ok = err == nil
		}
		if ok {
			if !(x > 0 && x < 1) {
				return nil, wrong(n, "a share between 0 and 1, a path or a list of paths")
			}
			return Holdout{Share: x}, nil
		}
		v, p := paths.read(n)
		if p != nil {
			return nil, p
		}
		return Holdout{Paths: v.([]string)}, nil
	}}
}

// trainOn allows a number or share of points, or the path of a file. From outside a file
// either comes as text.
func trainOn() rule {
	const allowed = "a share above 0 and at most 1, a whole number of points from 2 on, or the path of a file of rows"
	return rule{text: asText, read: func(n *yaml.Node) (any, *problem) {
		x, ok := parseNumber(n)
		if isScalar(n, "!!str") {
			if n.Value == "" {
				return nil, wrong(n, allowed)
			}
			var err error
			if x, err = strconv.ParseFloat(n.Value, 64); err != nil {
				return TrainOn{File: n.Value}, nil
			}
			ok = true
		}
		switch {
		case ok && x > 0 && x <= 1:
			return TrainOn{Share: x}, nil
		case ok && x >= 2 && x <= math.MaxInt32 && x == math.Trunc(x):
			return TrainOn{Number: int(x)}, nil
		}
		return nil, wrong(n, allowed)
	}}
}

// cache allows a truth value, or the path of a folder. From outside a file either comes
// as text.
func cache() rule {
	return rule{text: asText, words: []string{"true", "false"}, read: func(n *yaml.Node) (any, *problem) {
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
		case "yes", "no", "on", "off":
			p := wrong(n, "true, false or a folder")
			p.hint = "a folder of that name is ./" + folder
			return nil, p
		}
		return Cache{Keep: true, Folder: folder}, nil
	}}
}

// wholes allows a list of whole numbers of an interval, or one such number.
func wholes(in interval) rule {
	allowed := fmt.Sprintf("a list of whole numbers from %s to %s, such as [100, 100]", in.loText, in.hiText)
	return rule{read: func(n *yaml.Node) (any, *problem) {
		list, p := items(n, func(item *yaml.Node, _ []int) (int, *problem) {
			v, ok := parseWhole(item)
			if !ok || !in.contains(float64(v)) {
				return 0, wrong(item, allowed)
			}
			return int(v), nil
		})
		if p != nil {
			return nil, p
		}
		return list, nil
	}}
}

// seeds allows a list of different whole numbers of at least 0, or one such
// number.
func seeds() rule {
	const allowed = "a whole number of at least 0 or a list of them, such as [0, 1, 2]"
	return rule{read: func(n *yaml.Node) (any, *problem) {
		list, p := items(n, func(item *yaml.Node, before []uint64) (uint64, *problem) {
			v, ok := parseWhole(item)
			switch {
			case !ok || v < 0:
				return 0, wrong(item, allowed)
			case slices.Contains(before, uint64(v)):
				return 0, &problem{text: "is " + describe(item) + ", which the list has already; give each seed once"}
			}
			return uint64(v), nil
		})
		switch {
		case p != nil:
			return nil, p
		case len(list) == 0:
			return nil, wrong(n, allowed)
		}
		return list, nil
	}}
}

// colours allows a number for each of red, green and blue.
func colours(in interval) rule {
	return rule{read: func(n *yaml.Node) (any, *problem) {
		if n.Kind != yaml.SequenceNode || len(n.Content) != 3 {
			return nil, wrong(n, "a list of three numbers, for red, green and blue")
		}
		list, p := items(n, func(item *yaml.Node, _ []float64) (float64, *problem) {
			x, ok := parseNumber(item)
			if !ok || !in.contains(x) {
				return 0, wrong(item, in.String())
			}
			return x, nil
		})
		if p != nil {
			return nil, p
		}
		return [3]float64(list), nil
	}}
}

// phases allows a list of mappings with the keys of a Phase.
func phases() rule {
	return entries("phase", "[{epochs: 250, z_bar: uniform}, {epochs: 500, s: 0}]", func(p *Phase) *problem {
		if p.S != nil && p.ZBar != nil {
			return &problem{text: "gives both s and z_bar, which exclude each other; keep one of them"}
		}
		return nil
	})
}

// readEntry reads one entry of a list of mappings, which kind names and which has a
// number of epochs. The part that a problem names is a key of the entry.
func readEntry[T any](n *yaml.Node, kind string, entry *T) *problem {
	known := entryKeys[T]()
	if n.Kind != yaml.MappingNode {
		return wrong(n, "a mapping with the keys "+text.Enumerate(names(known)))
	}
	values := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		name, node := n.Content[i], n.Content[i+1]
		k, ok := find(known, name.Value)
		if !ok {
			return &problem{at: name, text: fmt.Sprintf("has the unknown key %s; a %s has %s", text.Quote(name.Value), kind, text.Enumerate(names(known)))}
		}
		if _, twice := values[name.Value]; twice {
			return &problem{part: name.Value, at: name, text: "is given twice; keep one of them"}
		}
		v, p := k.rule.value(node)
		if p != nil {
			if p.part != "" {
				p.part += " of "
			}
			p.part, p.at = p.part+name.Value, node
			return p
		}
		values[name.Value] = v
	}
	if values["epochs"] == nil {
		return &problem{text: "lacks its number of epochs"}
	}
	if w, ok := values["warm_up"].(int64); ok && w >= values["epochs"].(int64) {
		return &problem{text: fmt.Sprintf("warms up for %d of its %d epochs; take fewer", w, values["epochs"])}
	}
	if err := decode(values, entry); err != nil {
		return &problem{text: err.Error()}
	}
	return nil
}
