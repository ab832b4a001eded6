// Package suggest finds the known word nearest to a misspelt one.
package suggest

import "strings"

// longest is the length from which on a word is not compared: no typo of a known word is
// so long.
const longest = 64

// Find is the candidate that word is most likely meant to be, and "" where none
// is near. Words that differ in case, hyphens and underscores only are nearest;
// of equally near ones the first is found.
func Find(word string, candidates []string) string {
	if len(word) > longest {
		return ""
	}
	plain := fold(word)
	best, least := "", 1+max(1, min(3, len(plain)/3))
	for _, c := range candidates {
		if d := distance(plain, fold(c), least); d < least {
			best, least = c, d
		}
	}
	return best
}

func fold(s string) []rune {
	return []rune(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(s)))
}

// distance is the number of letters to put in, leave out, change or swap with
// their neighbour until a is b, and bound where it is not less than that.
func distance(a, b []rune, bound int) int {
	if diff := len(a) - len(b); diff >= bound || -diff >= bound {
		return bound
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], bound)
}
