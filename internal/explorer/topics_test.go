package explorer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// labelsOf returns the automatic labels of the first view of a page.
func labelsOf(t *testing.T, p *Page) []aboutLabel {
	t.Helper()
	var a about
	must(t, json.Unmarshal([]byte(blockText(t, write(t, p), "about")), &a))
	return a.Views[0].Labels
}

func TestAutoLabels(t *testing.T) {
	p := topical()
	labels := labelsOf(t, p)
	want := map[string][2]float64{"Galaxy": {-0.7, -0.55}, "burger": {0.7, -0.55}, "Köln": {0, 0.6}}
	for _, l := range labels {
		if l.Level != 0 {
			t.Errorf("%+v: a finer label says nothing new", l)
		}
		for word, at := range want {
			if strings.Contains(l.Text, word) && math.Hypot(l.X-at[0], l.Y-at[1]) < 0.15 {
				delete(want, word)
			}
		}
		if strings.Contains(l.Text, "common") || strings.Contains(l.Text, "thing") || strings.Contains(l.Text, "galaxies, Galaxy") {
			t.Errorf("label %q", l.Text)
		}
	}
	if len(labels) != 3 || len(want) != 0 {
		t.Errorf("got the labels %+v, which lack %v", labels, want)
	}
	if again := labelsOf(t, p); !slices.Equal(labels, again) {
		t.Errorf("another time, the labels are %+v", again)
	}
	// A view has its own.
	p.Views = append(p.Views, View{Embedding: normal(300, 2, 1, 0)})
	if again := labelsOf(t, p); !slices.Equal(labels, again) {
		t.Errorf("with another view, the labels are %+v", again)
	}
}

func TestAutoLabelsOfLittle(t *testing.T) {
	same := data.NewMatrix(100, 2)
	for name, tc := range map[string]struct {
		points *data.Matrix
		text   string
	}{
		"one point":          {matrix(2, 3, 4), "a point"},
		"all at one place":   {same, "all the same"},
		"no texts":           {normal(500, 2, 1, 0), ""},
		"the same texts":     {normal(500, 2, 1, 0), "every text is so"},
		"no letters":         {normal(500, 2, 1, 0), "1 2 3 – !"},
		"one dimension":      {normal(500, 1, 1, 0), "words"},
		"invalid characters": {normal(500, 2, 1, 0), "\xff\xfe words \xc3"},
	} {
		p := &Page{Views: []View{{Embedding: tc.points}}, Names: slices.Repeat([]string{tc.text}, tc.points.N), AutoLabels: true}
		if labels := labelsOf(t, p); len(labels) != 0 {
			t.Errorf("%s: got the labels %+v, want none", name, labels)
		}
	}
	p := topical()
	p.Names = nil
	if err := p.Write(io.Discard); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "automatic labels: got no names") {
		t.Errorf("without names, the error is %v", err)
	}
}

// What occurs everywhere, or only by chance, is no label.
func TestAutoLabelsOfNoise(t *testing.T) {
	m := normal(20000, 2, 1, 0)
	names := make([]string, m.N)
	for i := range names {
		names[i] = fmt.Sprintf("w%d v%d u%d", i*7919%3, i*104729%50, i*1299709%997)
	}
	p := &Page{Views: []View{{Embedding: m}}, Names: names, AutoLabels: true}
	if labels := labelsOf(t, p); len(labels) != 0 {
		t.Errorf("got the labels %+v, want none", labels)
	}
}

// Regions within a region have finer labels of their own.
func TestAutoLabelsLevels(t *testing.T) {
	m := data.NewMatrix(4000, 2)
	noise := normal(m.N, 2, 0.25, 0)
	names := make([]string, m.N)
	for i := range names {
		far, near := float32(i%2), float32(i/2%3)
		m.Row(i)[0], m.Row(i)[1] = 40*far+2*near+noise.Row(i)[0], 30*far+noise.Row(i)[1]
		names[i] = []string{"animal ", "plant "}[i%2] + []string{"red", "green", "blue"}[i/2%3] + []string{"red", "green", "blue"}[i%2]
	}
	p := &Page{Views: []View{{Embedding: m}}, Names: names, AutoLabels: true}
	levels := map[int]int{}
	for _, l := range labelsOf(t, p) {
		levels[l.Level]++
	}
	if levels[0] < 2 || levels[1]+levels[2] < 4 {
		t.Errorf("got so many labels by level: %v", levels)
	}
}

// Regions within a region without a label have coarse labels.
func TestAutoLabelsWithin(t *testing.T) {
	m := data.NewMatrix(4000, 2)
	noise := normal(m.N, 2, 0.25, 0)
	names := make([]string, m.N)
	for i := range names {
		names[i] = []string{"red", "green", "blue"}[i%3]
		m.Row(i)[0], m.Row(i)[1] = 2*float32(i%3)+noise.Row(i)[0], noise.Row(i)[1]
		if i%10 == 0 {
			names[i] = "plant"
			m.Row(i)[0], m.Row(i)[1] = 40+noise.Row(i)[0], 30+noise.Row(i)[1]
		}
	}
	p := &Page{Views: []View{{Embedding: m}}, Names: names, AutoLabels: true}
	var coarse []string
	for _, l := range labelsOf(t, p) {
		if l.Level == 0 {
			coarse = append(coarse, l.Text)
		}
	}
	slices.Sort(coarse)
	if !slices.Equal(coarse, []string{"blue", "green", "plant", "red"}) {
		t.Errorf("got the coarse labels %q, want the four groups'", coarse)
	}
}

// Sparse groups that lie apart each have a coarse label, however wide they are, and no
// words twice.
func TestAutoLabelsOfGroups(t *testing.T) {
	topics := []string{
		"cat kitten purr whisker fur meow", "rocket orbit planet moon launch telescope", "recipe butter oven flour bake sugar",
		"court judge ruling appeal statute trial", "goal match team league coach penalty", "Straße Mädchen größer Fuß schön Käse",
		"天文 望远镜 火箭 月球 行星 卫星", "مرحبا بالعالم كتاب قلم مدرسة بيت",
	}
	for _, per := range []int{40, 110} {
		for _, wide := range []float64{0.2, 0.5, 0.7} {
			random := rand.New(rand.NewPCG(1, 2))
			m := data.NewMatrix(len(topics)*per, 2)
			names := make([]string, m.N)
			for i := range names {
				g := i % len(topics)
				m.Row(i)[0] = float32(float64(g%3) + wide*random.Float64())
				m.Row(i)[1] = float32(float64(g/3) + wide*random.Float64())
				words := strings.Fields(topics[g])
				for range 6 {
					names[i] += fmt.Sprintf("%s common%d ", words[random.IntN(len(words))], random.IntN(9))
				}
			}
			p := &Page{Views: []View{{Embedding: m}}, Names: names, AutoLabels: true}
			coarse, sets := map[string]bool{}, map[string]bool{}
			for _, l := range labelsOf(t, p) {
				words := strings.Split(l.Text, ", ")
				slices.Sort(words)
				topic := slices.IndexFunc(topics, func(of string) bool { return strings.Contains(of, words[0]) })
				if topic < 0 || sets[fmt.Sprint(words)] || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(topics[topic], w) }) {
					t.Errorf("%d texts each, groups %v wide: label %+v", per, wide, l)
					continue
				}
				sets[fmt.Sprint(words)] = true
				if l.Level == 0 {
					coarse[topics[topic]] = true
				}
			}
			if len(coarse) != len(topics) {
				t.Errorf("%d texts each, groups %v wide: %d of %d groups have a coarse label", per, wide, len(coarse), len(topics))
			}
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"The McDonald's, a x iPhone":  "The McDonald iPhone",
		"python3-foo 2024 3D":         "python3 foo 3D",
		"Größe STRASSE":               "Größe STRASSE",
		"Война и мир":                 "Война мир",
		"機械学習 model 猫":                "機械学習 model",
		"a<b>bold</b>&amp;\x00\xffok": "bold amp ok",
		strings.Repeat("x", 41) + " yes " + strings.Repeat("猫", 3): "yes 猫猫猫",
	} {
		if got := strings.Join(words(text), " "); got != want {
			t.Errorf("the words of %q are %q, want %q", text, got, want)
		}
	}
}

func FuzzAutoLabels(f *testing.F) {
	f.Add("some words\nof three\ntexts", []byte{0, 0, 255, 255, 128, 3})
	f.Add(strings.Repeat("same word\nother word\n", 30), bytes.Repeat([]byte{1, 2, 200, 200}, 30))
	f.Add("\xff\xfe\n機械学習\nЖ", []byte{7, 7, 7, 7, 7, 7})
	f.Fuzz(func(t *testing.T, text string, places []byte) {
		names := strings.Split(text, "\n")
		n := min(len(names), len(places)/2)
		if n == 0 {
			return
		}
		m := data.NewMatrix(n, 2)
		for i := range m.X {
			m.X[i] = float32(int8(places[i])) * float32(math.Exp(float64(places[0])/3))
		}
		p := &Page{Views: []View{{Embedding: m}}, Names: names[:n], AutoLabels: true}
		var out, again bytes.Buffer
		must(t, p.Write(&out))
		must(t, p.Write(&again))
		if !bytes.Equal(out.Bytes(), again.Bytes()) {
			t.Error("the same page has other bytes")
		}
	})
}
