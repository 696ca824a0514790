package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// configHeader begins every config.yaml that the program writes. By it a run
// folder is told from a folder that happens to hold a file of that name.
const configHeader = "# cne "

// squash is the tag of a field whose keys are those of the struct around it.
const squash = ",squash"

// fields yields the keys of a configuration with their values, in the order of the
// struct; a pointer is followed, and nil stands for null. It also takes a
// Phase, whose keys have no section.
func fields(c any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		walk(reflect.ValueOf(c), "", yield)
	}
}

// walk yields the fields of a struct, and of the structs in it, under their
// mapstructure names. It returns false when yield has.
func walk(v reflect.Value, prefix string, yield func(string, any) bool) bool {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag.Get("mapstructure")
		name := prefix + tag
		if f := v.Field(i); f.Kind() == reflect.Struct {
			inner := name + "."
			if tag == squash {
				inner = prefix
			}
			if !walk(f, inner, yield) {
				return false
			}
		} else if !yield(name, deref(f.Interface())) {
			return false
		}
	}
	return true
}

// deref follows a pointer, and makes a nil pointer nil.
func deref(v any) any {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer {
		return v
	}
	if p.IsNil() {
		return nil
	}
	return p.Elem().Interface()
}

// write writes a configuration with every key, in the order and with the
// comments of the defaults. What it writes loads again to the same value. The
// first line holds the program's version and the command.
func (s *schema[C]) write(w io.Writer, c *C) error {
	values := map[string]any{}
	for k, v := range fields(*c) {
		values[k] = v
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(s.defaults()), &document); err != nil {
		return fmt.Errorf("the built-in defaults: %w", err)
	}
	document.HeadComment = ""
	root := document.Content[0]
	if err := fill(root, "", values); err != nil {
		return err
	}
	var body bytes.Buffer
	enc := yaml.NewEncoder(&body)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&document), enc.Close()); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	text := fmt.Sprintf("%s%s: the whole configuration of a run; %s --config takes it\n\n", configHeader, Version(), s.command)
	_, err := io.WriteString(w, text+separateSections(body.String()))
	return err
}

// fill puts values in the place of those of a mapping whose keys begin with
// prefix.
func fill(n *yaml.Node, prefix string, values map[string]any) error {
	for i := 0; i < len(n.Content); i += 2 {
		k, old := prefix+n.Content[i].Value, n.Content[i+1]
		if old.Kind == yaml.MappingNode {
			if err := fill(old, k+".", values); err != nil {
				return err
			}
			continue
		}
		v, err := valueNode(values[k])
		if err != nil {
			return err
		}
		n.Content[i+1] = v
	}
	return nil
}

// separateSections puts an empty line before each section, as in default.yaml;
// the YAML library drops them.
func separateSections(text string) string {
	var b strings.Builder
	afterComment := true // no empty line at the start
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") && !afterComment {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		afterComment = strings.HasPrefix(line, "#")
	}
	return b.String()
}
