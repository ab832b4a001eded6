package store_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/services/internal/store"
)

func tokensOf(t *store.Tokenizer, text string) (all []string) {
	t.Each(text, func(token []byte) { all = append(all, string(token)) })
	return all
}

func TestTheTokensOfALine(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		want []string
	}{
		"an empty line has none":                      {"", nil},
		"neither has one of signs":                    {" --- ... *** _._ \x00\t", nil},
		"words, in lower case":                        {"Epoch 3, LOSS=0", []string{"epoch", "3", "loss", "0"}},
		"a run that is joined, and its parts":         {"CUDA_error-7.", []string{"cuda_error-7", "cuda", "error"}},
		"a part of digits alone is none":              {"2026-01-02T10:00:01.5 v1.2", []string{"2026-01-02t10", "02t10", "00", "01.5", "v1.2", "v1"}},
		"what joins nothing is left out":              {"..a.. -b_ _c", []string{"a", "b", "c"}},
		"what joins twice joins once":                 {"a..b--c", []string{"a..b--c", "a", "b", "c"}},
		"other letters, digits and marks":             {"Größe ÄÖ, e\u0301, ３, Ω_x", []string{"größe", "äö", "e\u0301", "３", "ω_x", "ω", "x"}},
		"what is no UTF-8 separates":                  {"a\xffb\xc3", []string{"a", "b"}},
		"a path":                                      {"/usr/lib/libc.so.6", []string{"usr", "lib", "libc.so.6", "libc", "so"}},
		"a long word is cut":                          {strings.Repeat("ab", 100), []string{strings.Repeat("ab", 64)}},
		"a long word is cut between characters":       {strings.Repeat("ä", 64) + "x" + strings.Repeat("ä", 64), []string{strings.Repeat("ä", 64)}},
		"what joins nothing once it is cut is not in": {strings.Repeat("1", 126) + "--" + "11", []string{strings.Repeat("1", 126)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tokensOf(&store.Tokenizer{}, tt.line)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheFirstTokensOfALongLineAreKept(t *testing.T) {
	got := tokensOf(&store.Tokenizer{}, strings.Repeat("a b_c ", 1000))
	if len(got) != store.MaxTokens || !slices.Equal(got[:5], []string{"a", "b_c", "b", "c", "a"}) {
		t.Errorf("%d tokens, the first %q", len(got), got[:5])
	}
}

func TestTheWordsOfASearchAreTokensOfTheLinesThatHaveThem(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " -- ": nil, "Error error ERROR.": {"error"}, "out of cuda_Error-7": {"cuda_error-7", "of", "out"}, strings.Repeat("x", 999): {strings.Repeat("x", 128)},
	} {
		if diff := cmp.Diff(want, store.Words(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestALineIsFoundByAllOfSomeTokens(t *testing.T) {
	const line = "rank 3: CUDA_error-7 out of memory"
	for want, words := range map[bool][]string{true: {"", "rank", "Memory cuda", "cuda_error-7", "error 3"}, false: {"7", "cuda_error", "rank 4", "mem"}} {
		for _, text := range words {
			f := store.NewFinder(store.Words(text))
			for range 2 {
				if got := f.Matches(line); got != want {
					t.Errorf("%q: %t", text, got)
				}
			}
		}
	}
	if store.NewFinder([]string{"Rank"}).Matches(line) || store.NewFinder([]string{""}).Matches(line) {
		t.Error("found by what is no token")
	}
}

// referenceTokens makes the tokens of text in a slow and plain way.
func referenceTokens(text string) (runs, all []string) {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError {
			return ' '
		}
		return unicode.ToLower(r)
	}, strings.ToValidUTF8(text, " "))
	parts := regexp.MustCompile(`[\p{L}\p{M}\p{Nd}]+`)
	letter := regexp.MustCompile(`[\p{L}\p{M}]`)
	short := func(token string) string {
		for len(token) > store.MaxToken {
			_, n := utf8.DecodeLastRuneInString(token)
			token = token[:len(token)-n]
		}
		return strings.TrimRight(token, "_.-")
	}
	for _, run := range regexp.MustCompile(`[\p{L}\p{M}\p{Nd}_.-]+`).FindAllString(text, -1) {
		if run = strings.Trim(run, "_.-"); run == "" {
			continue
		}
		runs, all = append(runs, short(run)), append(all, short(run))
		some := parts.FindAllString(run, -1)
		for _, p := range some {
			if len(some) > 1 && letter.MatchString(p) {
				all = append(all, short(p))
			}
		}
	}
	slices.Sort(runs)
	return slices.Compact(runs), all[:min(len(all), store.MaxTokens)]
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"", "CUDA_error-7.", "Größe\xff ３_x İ K", strings.Repeat("ab-", 600), strings.Repeat("1", 126) + "--11"} {
		f.Add(text)
	}
	var t store.Tokenizer // used again and again
	f.Fuzz(func(tt *testing.T, text string) {
		words, tokens := referenceTokens(text)
		got := store.Words(text)
		want := [][]string{tokens, words, words}
		if diff := cmp.Diff(want, [][]string{tokensOf(&t, text), got, store.Words(strings.Join(got, " "))}, cmpopts.EquateEmpty()); diff != "" {
			tt.Errorf("tokens of %q, its words, and the words of these (-want +got):\n%s", text, diff)
		}
		if slices.ContainsFunc(tokens, func(token string) bool { return token == "" || len(token) > store.MaxToken || !utf8.ValidString(token) }) {
			tt.Errorf("%q has the tokens %q", text, tokens)
		}
		if len(tokens) < store.MaxTokens && !store.NewFinder(got).Matches(text) {
			tt.Errorf("%q is not found by its own words", text)
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	const line = "2026-01-02T10:00:01.123 INFO trainer: epoch 3 step 1200 loss=0.1234 lr=0.00100 on node-12"
	var t store.Tokenizer
	n := 0
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		t.Each(line, func([]byte) { n++ })
	}
}
