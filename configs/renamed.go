package configs

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// renamed has the keys and words of earlier versions with the present ones. words maps
// the old values of a key to new ones; "" stands for the default.
var renamed = map[string]struct {
	key   string
	words map[string]string
}{
	"data.train_on":            {"data.sample", nil},
	"device.tf32":              {"device.precision", map[string]string{"true": "", "false": "float32"}},
	"graph.weights":            {"graph.weighted_sampling", map[string]string{"ignore": "false", "sample": "true"}},
	"loss.draw":                {"loss.sampling", nil},
	"model.init":               {"model.init", map[string]string{"coarse": "multilevel"}},
	"output.html_color":        {"output.html_columns", nil},
	"quality.points":           {"quality.sample", nil},
	"quality.spearman":         {"quality.spearman_sample", nil},
	"train.early_exaggeration": {"train.early_exaggeration", map[string]string{"none": "false", "third": "true"}},
}

// translate returns the current key and value for a key in a file of an earlier version;
// nil if there is nothing to set.
func (s *keySet) translate(l *layer, key string, value *yaml.Node) (string, *yaml.Node) {
	old, ok := renamed[key]
	if !ok || !s.Has(old.key) {
		return key, value
	}
	word, ok := old.words[value.Value]
	if _, given := l.value[old.key]; given || ok && word == "" {
		return "", nil
	}
	if ok {
		value = &yaml.Node{Kind: yaml.ScalarNode, Value: word, Line: value.Line}
	}
	return old.key, value
}

// refuseOld returns an error for a key or a word of earlier versions.
func (s *keySet) refuseOld(source, key, value string) error {
	old, ok := renamed[key]
	if !ok || !s.Has(old.key) {
		return nil
	}
	word, isOld := old.words[value]
	switch {
	case isOld && word != "":
		return &Error{source, key, fmt.Sprintf("%s is now %s: %s", value, old.key, word)}
	case key != old.key:
		return &Error{source, key, "now " + old.key}
	}
	return nil
}
