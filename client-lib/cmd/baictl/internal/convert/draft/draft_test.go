package draft_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
)

func FuzzTextsAreReadBack(f *testing.F) {
	for _, s := range []string{"", "a", `"`, `'`, `\`, `"'\`, "'''", "a\nb\n", "\ttab\r", "\x7f\x01", "ü", "{{a}}", "#!/bin/sh\necho '\"'\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Skip("documents have no such texts")
		}
		var d draft.Draft
		d.Comment("%s", s)
		d.Table("").Set("text", s).Set(s+"-key", draft.Inline{{Key: s, Value: []string{s}}})
		d.Table("script").Set("code", draft.Script(s))
		var got struct {
			Text   string
			Script struct{ Code string }
		}
		all := map[string]any{}
		if err := toml.Unmarshal([]byte(d.String()), &got); err != nil {
			t.Fatalf("%v\n%s", err, d.String())
		}
		if err := toml.Unmarshal([]byte(d.String()), &all); err != nil || all[s+"-key"] == nil {
			t.Errorf("%v, %v", err, all)
		}
		if want := strings.TrimRight(s, "\n") + "\n"; got.Text != s || got.Script.Code != want {
			t.Errorf("%q became %q, and the script %q", s, got.Text, got.Script.Code)
		}
	})
}

func TestParametersAreInBracesAndOtherBracesAreDoubled(t *testing.T) {
	text := "run --a " + draft.Parameter("size") + " {{b}}"
	var single, swept draft.Draft
	single.Table("ml").Set("code", "run {{b}}")
	swept.Table("ml").Set("code", text)
	swept.Sweep()
	swept.Table("sweep.product").Set("size", []any{int64(1), "{{c}}"})
	for want, got := range map[string]string{
		"\n[ml]\ncode = \"run {{b}}\"\n": single.String(),
		"\n[ml]\ncode = \"run --a {{size}} {{{{b}}\"\n\n[sweep.product]\nsize = [1, \"{{c}}\"]\n": swept.String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWordsAreQuotedIfTheyNeedIt(t *testing.T) {
	for want, words := range map[string][]string{
		"a -b=c,d $(NAME) x/y:z":   {"a", "-b=c,d", "$(NAME)", "x/y:z"},
		`'' 'a b' 'it'\''s' 'x;y'`: {"", "a b", "it's", "x;y"},
	} {
		if got := draft.Words(words); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNamesAreThoseThatTheLanguageTakes(t *testing.T) {
	for text, want := range map[string][2]string{
		"iperf":                    {"iperf", "iperf"},
		"ResNet-50 on 2 machines!": {"ResNet-50-on-2-machines", "resnet-50-on-2-machi"},
		"__":                       {"", ""},
		strings.Repeat("ab-", 30):  {strings.TrimSuffix(strings.Repeat("ab-", 21), "-"), "ab-ab-ab-ab-ab-ab-ab"},
		"naïve":                    {"na-ve", "na-ve"},
	} {
		if got := [2]string{draft.Label(text), draft.ShortName(text)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
