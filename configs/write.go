package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cne/internal/version"
)

// Header begins every file that Write writes, and distinguishes it from other files of
// the same name. Footer is the last line: a file that is cut off may be valid YAML, but
// does not have it. The first line announces it.
const (
	Header     = "# cne "
	Footer     = "# the end\n"
	footerNote = "to the line \"# the end\""
)

// CutOff reports whether a text is the beginning of a file written by Write, possibly with
// the line ends that editors on Windows give it.
func CutOff(text []byte) bool {
	line, _, complete := bytes.Cut(text, []byte("\n"))
	return bytes.HasPrefix(line, []byte(Header)) &&
		(!complete || bytes.Contains(line, []byte(footerNote)) &&
			!bytes.HasSuffix(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte(Footer)))
}

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
// the command, and the last line is Footer.
func (s *Schema[C]) Write(w io.Writer, c *C) error {
	values := map[string]*yaml.Node{}
	for _, k := range s.keys {
		values[k.Key] = k.node(k.value(reflect.ValueOf(c).Elem()))
	}
	var body bytes.Buffer
	enc := yaml.NewEncoder(&body)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(filled(s.document, "", values)), enc.Close()); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	text := fmt.Sprintf("%s%s: the whole configuration of a run, %s; %s%s\n\n", Header, version.String(), footerNote, s.command, takes)
	_, err := io.WriteString(w, text+separateSections(body.String())+"\n"+Footer)
	return err
}

// filled returns a mapping whose keys begin with prefix, with other values.
func filled(n *yaml.Node, prefix string, values map[string]*yaml.Node) *yaml.Node {
	m := *n
	m.Content = slices.Clone(n.Content)
	for i := 0; i < len(m.Content); i += 2 {
		k, old := prefix+m.Content[i].Value, m.Content[i+1]
		if old.Kind == yaml.MappingNode {
			m.Content[i+1] = filled(old, k+".", values)
		} else {
			m.Content[i+1] = values[k]
		}
	}
	return &m
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
