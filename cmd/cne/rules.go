package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/device"
	"cne/internal/finite"
)

// A rule says which values a key may have and turns the YAML node of one into
// the Go value that Config holds.
type rule struct {
	// read returns the value, or a problem.
	read func(n *yaml.Node) (any, *problem)
	// text says how to read a value that comes from the environment or a
	// flag, where nobody expects to have to quote a title or a path.
	text textForm
	// null allows null, for which read is not called.
	null bool
	// words are the values that shell completion offers.
	words []string
}

// textForm is the form of a value given outside a file.
type textForm int

const (
	asYAML textForm = iota // the value is YAML
	asText                 // the value is taken as it stands, unless it begins with a quote
	asList                 // YAML if it begins with a bracket, else a list of the one text
)

// A problem is the part of an error that a rule knows: the predicate of its
// sentence, and for a part of the value which part and where.
type problem struct {
	part string     // such as "lr of phase 2"; "" for the whole value
	at   *yaml.Node // where in the file; nil for the whole value
	text string     // such as "is -1, but must be a number above 0"
}

// A key is a leaf of the configuration with its rule.
type key struct {
	name string // as in "train.epochs"
	rule rule
}

// trainKeys lists the keys of cne train in the order of default.yaml.
var trainKeys = slices.Concat([]key{
	{"seed", wholeUpTo(0, math.MaxInt64)},
}, deviceKeys, []key{
	{"output.dir", nonEmptyText()},
	{"output.csv", boolean()},
	{"output.plot", boolean()},
	{"output.html", boolean()},
	{"output.html_images", boolean()},
	{"output.snapshots", whole(0)},
	{"output.metrics_every", whole(0)},
	{"output.tensorboard", boolean()},

	{"data.path", nonEmptyList()},
	{"data.labels", list()},
	{"data.label_column", orNull(column())},
	{"data.drop", columns()},
	{"data.header", oneOf("auto", "yes", "no")},
	{"data.genes", whole(1)},
	{"data.imbalance", orNull(oneOf("linear"))},
	{"data.holdout", orNull(holdout())},
	{"data.holdout_labels", list()},
	{"data.scale", oneOf("none", "unit", "standard")},

	{"graph.k", whole(1)},
	{"graph.pca", whole(0)},
	{"graph.file", orNull(nonEmptyText())},
	{"graph.cache", boolean()},

	{"model.kind", oneOf("table", "mlp")},
	{"model.hidden", widths()},
	{"model.input", oneOf("points", "pca")},
	{"model.dim", whole(1)},
	{"model.dtype", oneOf("float32", "float64")},
	{"model.init", oneOf("pca", "random")},
	{"model.init_std", number(above0)},
	{"model.keep_data", boolean()},
}, lossKeys, []key{
	{"train.epochs", orNull(whole(1))},
	{"train.batch_size", whole(2)},
	{"train.optimizer", orNull(oneOf("sgd", "adam"))},
	{"train.lr", orNull(number(above0))},
	{"train.momentum", number(below1)},
	{"train.weight_decay", number(from0)},
	{"train.lr_z", number(from0)},
	{"train.anneal", oneOf("linear", "cosine", "none")},
	{"train.warm_up", whole(0)},
	{"train.clip", number(from0)},
	{"train.early_exaggeration", oneOf("none", "third")},
	{"train.phases", phases()},
	{"train.log_every", whole(1)},

	{"checkpoint.minutes", number(from0)},
	{"checkpoint.epochs", whole(0)},

	{"quality.k", whole(1)},
	{"quality.recall", boolean()},
	{"quality.spearman", zeroOr(3, 20000)},
	{"quality.partition", boolean()},
	{"quality.kl", boolean()},
	{"quality.accuracy", boolean()},

	{"plot.point_size", number(upTo100)},
	{"plot.title", text()},
	{"plot.width_cm", number(upTo100)},
	{"plot.height_cm", number(upTo100)},

	{"log.format", oneOf("text", "json")},
})

// deviceKeys are the keys of Device.
var deviceKeys = []key{
	{"device.name", deviceName()},
	{"device.tf32", boolean()},
}

// lossKeys are the keys of Loss.
var lossKeys = []key{
	{"loss.name", lossName()},
	{"loss.metric", oneOf("euclidean", "cosine")},
	{"loss.temperature", number(above0)},
	{"loss.negatives", negatives()},
	{"loss.draw", oneOf("auto", "singly", "runs")},
	{"loss.s", orNull(number(anyReal))},
	{"loss.z_bar", orNull(zBar())},
	{"loss.scale", orNull(number(above0))},
	{"loss.clamp", number(below1)},
	{"loss.reduction", oneOf("sum", "mean")},
	{"loss.positive_in_denominator", boolean()},
	{"loss.learn_z", boolean()},
	{"loss.log_z", number(anyReal)},
}

// phaseKeys lists the keys of an entry of train.phases. Null means inherited,
// like a key that is left out.
var phaseKeys = []key{
	{"epochs", whole(1)},
	{"lr", orNull(number(above0))},
	{"s", orNull(number(anyReal))},
	{"z_bar", orNull(zBar())},
	{"negatives", orNull(negatives())},
	{"anneal", orNull(oneOf("linear", "cosine", "none"))},
	{"warm_up", orNull(whole(0))},
}

// findRule returns the rule of a key.
func findRule(keys []key, name string) (rule, bool) {
	i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return rule{}, false
	}
	return keys[i].rule, true
}

// names returns the names of keys, in their order.
func names(keys []key) []string {
	s := make([]string, len(keys))
	for i, k := range keys {
		s[i] = k.name
	}
	return s
}

// sections returns the names of the sections of keys, in their order.
func sections(keys []key) []string {
	var s []string
	for _, k := range keys {
		if section, _, ok := strings.Cut(k.name, "."); ok {
			s = append(s, section)
		}
	}
	return slices.Compact(s)
}

// value applies the rule to a node, null included.
func (r rule) value(n *yaml.Node) (any, *problem) {
	n = resolve(n)
	if r.null && isNull(n) {
		return nil, nil
	}
	return r.read(n)
}

// orNull allows null besides what r allows.
func orNull(r rule) rule {
	read := r.read
	r.null = true
	r.read = func(n *yaml.Node) (any, *problem) {
		v, p := read(n)
		if p != nil && p.part == "" {
			p.text += ", or null"
		}
		return v, p
	}
	return r
}

// wrong is the problem of a value that is not what a key allows.
func wrong(n *yaml.Node, allowed string) *problem {
	return &problem{text: "is " + describe(n) + ", but must be " + allowed}
}

func deviceName() rule {
	return rule{words: []string{"auto", "cpu", "cuda"}, text: asText, read: func(n *yaml.Node) (any, *problem) {
		if !isScalar(n, "!!str") || device.CheckName(n.Value) != nil {
			return nil, wrong(n, "auto, cpu, cuda, or cuda:1 for the second GPU")
		}
		return n.Value, nil
	}}
}

func boolean() rule {
	return rule{words: []string{"true", "false"}, read: func(n *yaml.Node) (any, *problem) {
		var b bool
		if !isScalar(n, "!!bool") || n.Decode(&b) != nil {
			return nil, wrong(n, "true or false")
		}
		return b, nil
	}}
}

// whole allows whole numbers from lo up to what every int can hold.
func whole(lo int64) rule { return wholeUpTo(lo, math.MaxInt32) }

// wholeUpTo allows whole numbers from lo to hi, also in the form of a decimal
// fraction or a power (1e3).
func wholeUpTo(lo, hi int64) rule {
	return rule{read: func(n *yaml.Node) (any, *problem) {
		v, ok := parseWhole(n)
		if x, isNumber := parseNumber(n); ok && v > hi || !ok && isNumber && x >= 1<<63 {
			return nil, wrong(n, fmt.Sprintf("at most %d", hi))
		}
		if !ok || v < lo {
			return nil, wrong(n, fmt.Sprintf("a whole number of at least %d", lo))
		}
		return v, nil
	}}
}

// zeroOr allows 0 and whole numbers from lo to hi.
func zeroOr(lo, hi int64) rule {
	return rule{read: func(n *yaml.Node) (any, *problem) {
		if v, ok := parseWhole(n); ok && (v == 0 || v >= lo && v <= hi) {
			return v, nil
		}
		return nil, wrong(n, fmt.Sprintf("0 or a whole number from %d to %d", lo, hi))
	}}
}

func parseWhole(n *yaml.Node) (int64, bool) {
	var v int64
	if isScalar(n, "!!int") && n.Decode(&v) == nil {
		return v, true
	}
	if x, ok := parseNumber(n); ok && x == math.Trunc(x) && math.Abs(x) < 1<<63 {
		return int64(x), true
	}
	return 0, false
}

// An interval is a set of real numbers with its description.
type interval struct {
	allowed  string
	contains func(x float64) bool
}

var (
	anyReal = interval{"a number", func(float64) bool { return true }}
	above0  = interval{"a number above 0", func(x float64) bool { return x > 0 }}
	from0   = interval{"a number of at least 0", func(x float64) bool { return x >= 0 }}
	share   = interval{"a number from 0 to 1", func(x float64) bool { return x >= 0 && x <= 1 }}
	below1  = interval{"a number of at least 0 and below 1", func(x float64) bool { return x >= 0 && x < 1 }}
	upTo100 = interval{"a number from 0 to 100", func(x float64) bool { return x >= 0 && x <= 100 }}
)

func number(in interval) rule {
	return rule{read: func(n *yaml.Node) (any, *problem) {
		x, ok := parseNumber(n)
		if !ok || !in.contains(x) {
			return nil, wrong(n, in.allowed)
		}
		return x, nil
	}}
}

// parseNumber reads a finite number.
func parseNumber(n *yaml.Node) (float64, bool) {
	var x float64
	if !isScalar(n, "!!float") && !isScalar(n, "!!int") || n.Decode(&x) != nil {
		return 0, false
	}
	return x, finite.Is(x)
}

// oneOf allows some words.
func oneOf(words ...string) rule { return oneOfOrAlias(nil, words...) }

// lossName allows the names of the losses and the paper's names for them.
func lossName() rule {
	return oneOfOrAlias(map[string]string{
		"neg-tsne":    "neg",
		"nc-tsne":     "nc",
		"infonc-tsne": "infonce",
	}, "neg", "nc", "infonce", "umap")
}

func oneOfOrAlias(aliases map[string]string, words ...string) rule {
	return rule{words: words, read: func(n *yaml.Node) (any, *problem) {
		if isScalar(n, "!!str") {
			word := cmp.Or(aliases[n.Value], n.Value)
			if slices.Contains(words, word) {
				return word, nil
			}
			if near := suggest(n.Value, words); near != "" {
				return nil, wrong(n, enumerate(words)+"; did you mean "+near+"?")
			}
		}
		return nil, wrong(n, enumerate(words))
	}}
}

// enumerate joins words as in "a, b or c".
func enumerate(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func negatives() rule {
	return rule{words: []string{"full"}, read: func(n *yaml.Node) (any, *problem) {
		if isScalar(n, "!!str") && n.Value == "full" {
			return Full, nil
		}
		v, ok := parseWhole(n)
		if !ok || v < 1 || v > math.MaxInt32 {
			return nil, wrong(n, fmt.Sprintf("a whole number from 1 to %d, or full", math.MaxInt32))
		}
		return Negatives(v), nil
	}}
}

func zBar() rule {
	return rule{words: []string{"uniform"}, read: func(n *yaml.Node) (any, *problem) {
		if isScalar(n, "!!str") && n.Value == "uniform" {
			return Uniform, nil
		}
		x, ok := parseNumber(n)
		if !ok || x <= 0 {
			return nil, wrong(n, "a number above 0, or uniform")
		}
		return ZBar(x), nil
	}}
}

func text() rule {
	return rule{text: asText, read: func(n *yaml.Node) (any, *problem) {
		if isScalar(n, "!!str") {
			return n.Value, nil
		}
		return nil, wrong(n, "text"+quoteHint(n))
	}}
}

func nonEmptyText() rule {
	return rule{text: asText, read: func(n *yaml.Node) (any, *problem) {
		if isScalar(n, "!!str") && n.Value != "" {
			return n.Value, nil
		}
		return nil, wrong(n, "text that is not empty"+quoteHint(n))
	}}
}

// quoteHint says how to make text of a number, a date or a truth value.
func quoteHint(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && !isNull(n) && n.ShortTag() != "!!str" {
		return fmt.Sprintf("; quote it: %q", n.Value)
	}
	return ""
}

// column allows the name or the number of a column; either becomes text.
func column() rule {
	return rule{text: asText, read: func(n *yaml.Node) (any, *problem) {
		if c, ok := parseColumn(n); ok {
			return c, nil
		}
		return nil, wrong(n, "the name of a column, or its number (1 is the first, -1 the last)")
	}}
}

func parseColumn(n *yaml.Node) (string, bool) {
	if isScalar(n, "!!str") {
		return n.Value, n.Value != ""
	}
	v, ok := parseWhole(n)
	return strconv.FormatInt(v, 10), ok && v != 0
}

func columns() rule {
	return listOf(parseColumn, "the name or number of a column, or a list of them")
}

func list() rule { return listOf(parseItem, "a path or a list of paths") }

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

// widths allows a list of whole numbers of at least 1, or one such number.
func widths() rule {
	return rule{read: func(n *yaml.Node) (any, *problem) {
		nodes := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			nodes = n.Content
		}
		list := make([]int, 0, len(nodes))
		for i, item := range nodes {
			v, ok := parseWhole(resolve(item))
			if !ok || v < 1 || v > maxWidth {
				p := wrong(item, fmt.Sprintf("a list of whole numbers from 1 to %d, such as [100, 100]", maxWidth))
				if n.Kind == yaml.SequenceNode {
					p.part, p.at = fmt.Sprintf("item %d", i+1), item
				}
				return nil, p
			}
			list = append(list, int(v))
		}
		return list, nil
	}}
}

// seedList allows a list of whole numbers of at least 0, or one such number.
func seedList() rule {
	const allowed = "a whole number of at least 0 or a list of them, such as [0, 1, 2]"
	return rule{read: func(n *yaml.Node) (any, *problem) {
		nodes := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			nodes = n.Content
		}
		if len(nodes) == 0 {
			return nil, wrong(n, allowed)
		}
		list := make([]uint64, 0, len(nodes))
		for i, item := range nodes {
			v, ok := parseWhole(resolve(item))
			if !ok || v < 0 || slices.Contains(list, uint64(v)) {
				p := wrong(item, allowed)
				if ok && v >= 0 {
					p.text = "is " + describe(item) + ", which the list has already; give each seed once"
				}
				if n.Kind == yaml.SequenceNode {
					p.part, p.at = fmt.Sprintf("item %d", i+1), item
				}
				return nil, p
			}
			list = append(list, uint64(v))
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
		var list [3]float64
		for i, item := range n.Content {
			x, ok := parseNumber(resolve(item))
			if !ok || !in.contains(x) {
				p := wrong(resolve(item), in.allowed)
				p.part, p.at = fmt.Sprintf("item %d", i+1), item
				return nil, p
			}
			list[i] = x
		}
		return list, nil
	}}
}

// maxWidth bounds the width of a layer.
const maxWidth = 1 << 16

func parseItem(n *yaml.Node) (string, bool) { return n.Value, isScalar(n, "!!str") && n.Value != "" }

// listOf allows an item or a list of items, and makes a list of either.
func listOf(parse func(*yaml.Node) (string, bool), allowed string) rule {
	return rule{text: asList, read: func(n *yaml.Node) (any, *problem) {
		nodes := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			nodes = n.Content
		}
		items := make([]string, 0, len(nodes))
		for i, item := range nodes {
			item = resolve(item)
			s, ok := parse(item)
			if !ok {
				p := wrong(item, allowed+quoteHint(item))
				if n.Kind == yaml.SequenceNode {
					p.part, p.at = fmt.Sprintf("item %d", i+1), item
				}
				return nil, p
			}
			items = append(items, s)
		}
		return items, nil
	}}
}

// phases allows a list of mappings with the keys of phaseKeys.
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
		return wrong(n, "a mapping with the keys "+enumerate(names(phaseKeys)))
	}
	values := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		name, node := n.Content[i], n.Content[i+1]
		r, ok := findRule(phaseKeys, name.Value)
		if !ok {
			return &problem{at: name, text: fmt.Sprintf("has the unknown key %s; a phase has %s", quote(name.Value), enumerate(names(phaseKeys)))}
		}
		if _, twice := values[name.Value]; twice {
			return &problem{part: name.Value, at: name, text: "is given twice; keep one of them"}
		}
		v, p := r.value(node)
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
