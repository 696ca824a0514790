package text

import "strings"

// Nearest returns the known name that is most likely meant by an unknown one,
// or "" if none is near. Names are dotted keys, words or environment
// variables. A key that only lacks or mistakes its section counts as near.
func Nearest(unknown string, known []string) string {
	if len(unknown) > 100 {
		return ""
	}
	want := strings.ToLower(unknown)
	best, bestScore := "", 2+len(leaf(want))/4
	for _, k := range known {
		score := min(editDistance(want, strings.ToLower(k)), editDistance(leaf(want), leaf(strings.ToLower(k)))+1)
		if score < bestScore {
			best, bestScore = k, score
		}
	}
	return best
}

// leaf returns the part of a dotted key after its last dot.
func leaf(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbouring characters that turn a into b (optimal string alignment).
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	row := make([]int, len(t)+1) // distances of s[:i] to every t[:j]
	for j := range row {
		row[j] = j
	}
	var previous, beforeThat []int
	for i := 1; i <= len(s); i++ {
		beforeThat, previous = previous, row
		row = make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			replace := previous[j-1]
			if s[i-1] != t[j-1] {
				replace++
			}
			row[j] = min(previous[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], beforeThat[j-2]+1)
			}
		}
	}
	return row[len(t)]
}
