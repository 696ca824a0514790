package configs

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/text"
)

// phaseKeys returns the keys of an entry of train.phases. Null means inherited,
// like a key that is left out.
func phaseKeys() []key { return keysOf(reflect.TypeFor[Phase]()) }

// phases allows a list of mappings with the keys of a Phase.
func phases() rule {
	return rule{read: func(n *yaml.Node) (any, *problem) {
		if n.Kind != yaml.SequenceNode {
			return nil, wrong(n, "a list of phases, such as [{epochs: 250, z_bar: uniform}, {epochs: 500, s: 0}]")
		}
		list := make([]Phase, len(n.Content))
		for i, item := range n.Content {
			p := readPhase(resolve(item), &list[i])
			if p != nil {
				p.part = strings.TrimPrefix(p.part+" of ", " of ") + fmt.Sprintf("phase %d", i+1)
				if p.at == nil {
					p.at = item
				}
				return nil, p
			}
		}
		return list, nil
	}}
}

// readPhase reads one entry of train.phases. The part that a problem names is
// a key of the phase.
func readPhase(n *yaml.Node, phase *Phase) *problem {
	if n.Kind != yaml.MappingNode {
		return wrong(n, "a mapping with the keys "+text.Enumerate(names(phaseKeys())))
	}
	values := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		name, node := n.Content[i], n.Content[i+1]
		k, ok := find(phaseKeys(), name.Value)
		if !ok {
			return &problem{at: name, text: fmt.Sprintf("has the unknown key %s; a phase has %s", text.Quote(name.Value), text.Enumerate(names(phaseKeys())))}
		}
		if _, twice := values[name.Value]; twice {
			return &problem{part: name.Value, at: name, text: "is given twice; keep one of them"}
		}
		v, p := k.rule.value(node)
		if p != nil {
			p.part, p.at = name.Value, node
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
	if values["s"] != nil && values["z_bar"] != nil {
		return &problem{text: "gives both s and z_bar, which exclude each other; keep one of them"}
	}
	if err := decode(values, phase); err != nil {
		return &problem{text: err.Error()}
	}
	return nil
}
