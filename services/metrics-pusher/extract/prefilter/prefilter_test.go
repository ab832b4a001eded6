package prefilter_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/metrics-pusher/extract/prefilter"
)

func mayMatch(f prefilter.Filter, text string) bool {
	t := prefilter.Text{Original: text}
	return f.MayMatch(&t)
}

func TestTextsThatDoNotMatchAreFilteredOut(t *testing.T) {
	t.Parallel()
	for pattern, texts := range map[string][]string{
		`loss=(\d+)`:                        {"", "loss 5", "los=5"},
		`(?i)loss=(\d+)`:                    {"LOSS 5"},
		`(?:foo|bar)=(\d+)`:                 {"foo 5", "bar=x", "baz=5"},
		`(?:loss=(\d+)|@@@)`:                {"loss=x", "@@", "2026-01-02 INFO step 5"},
		`([\d.]+)\s*(?:ms|us)`:              {"5 s", "ms", "12.5 m"},
		`^\s*(\d+)\s+([\d.]+)$`:             {"a 1 2", "1 2 b", "1", "1 2\n"},
		`^(\d+)%|(\d+) percent$`:            {"x 5%", "5 percents"},
		`(\d{4})-(\d{2})`:                   {"999-12", "2026-1"},
		`ä(\d)`:                             {"a5", "ä"},
		`[^\x00-\x7f](\d)`:                  {"a5", "ä x"},
		`(?s)^epoch.*loss=(\S+)`:            {"loss=5"},
		`(?:a|b)(?:c|d)(?:e|f)[0-9a-f]{3}g`: {"ace12g", "bdf123h"},
	} {
		f := prefilter.New(pattern)
		for _, text := range texts {
			if mayMatch(f, text) {
				t.Errorf("%s may match %q", pattern, text)
			}
		}
	}
}

func TestAPatternWhoseAutomatonWouldBeTooLargeMayMatchEveryText(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{`[ab]*[ac][ab]{14}[cd]`, `[ab]{1000}`, `(?:[a-z]{30}|[b-y]{30}|[0-9a-e]{30}.*[xyz]{20}){10}`, `a*`, `(`, `\b\B`} {
		if f := prefilter.New(pattern); !mayMatch(f, "-") {
			t.Errorf("%s has a filter", pattern)
		}
	}
}

// FuzzMayMatch compares filters with regular expressions.
func FuzzMayMatch(f *testing.F) {
	for _, pattern := range []string{
		`loss=(\d+)`, `(?i)loss=(\d+)`, `(?:foo|bar)=(\d+)`, `^\s*(\d+)\s+([\d.]+)$`, `(?m)^(\d+)$`, `\bk\B(?:s|S)\b`, `(?i)[k]s?\d`, `(?i:\x{17f}|\x{212a})=`,
		`a\z|\Ab`, `\x{fffd}+\d`, `[^a]\d`, `.*(x|y){2,3}?`, `(?s).\d`, `[[:^ascii:]]b`, `^$`, `a*`, `$^`, `(|a)b`, `(?U)a+?b$`,
	} {
		for _, text := range []string{"loss=5", "LO\u017fS=5", "\u212as 1", "foo=1\nbar=2", "\xff\x805", "ab xx yy 12.5", "", "\n1\n2"} {
			f.Add(pattern, text)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := regexp.Compile(pattern)
		if err != nil || len(pattern) > 200 {
			return
		}
		automaton, _ := prefilter.Automaton(pattern)
		for name, filter := range map[string]prefilter.Filter{"the filter": prefilter.New(pattern), "the automaton": automaton} {
			if re.MatchString(text) && !mayMatch(filter, text) {
				t.Errorf("%s of %q does not match %q", name, pattern, text)
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	for name, pattern := range map[string]string{
		"alternatives": `(?:train_loss=([-+]?[\d.]+(?:e[-+]?\d+)?)|@@@)`, "columns": `^\s*(\d+)\s+([\d.]+)$`, "too large": `[ab]*[ac][ab]{14}[cd]`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				prefilter.New(pattern)
			}
		})
	}
}

func BenchmarkMayMatch(b *testing.B) {
	f := prefilter.New(`(?:train_loss=([-+]?[\d.]+(?:e[-+]?\d+)?)|@@@)`)
	text := strings.Repeat("2026-01-02 03:04:05,678 INFO worker-3 step 1200 of 90000 ", 2)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if mayMatch(f, text) {
			b.Fatal("it matches")
		}
	}
}
