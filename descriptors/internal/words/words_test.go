package words_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/descriptors/internal/words"
)

func TestWordsAreThoseOfAShellWithoutExpansion(t *testing.T) {
	tests := map[string]struct {
		in   string
		want []string
	}{
		"blanks part words":                                {" a  b\tc\nd ", []string{"a", "b", "c", "d"}},
		"nothing is no word":                               {" \n", []string{}},
		"empty quotes are an empty word":                   {`a "" ''`, []string{"a", "", ""}},
		"quotes hold blanks":                               {`'a b' "c d"`, []string{"a b", "c d"}},
		"quotes join":                                      {`a'b'"c"d`, []string{"abcd"}},
		"a backslash takes one character":                  {`a\ b \'`, []string{"a b", "'"}},
		"in single quotes a backslash is one":              {`'a\nb'`, []string{`a\nb`}},
		"in double quotes a backslash takes some":          {`"\"\\\$\a"`, []string{`"\$\a`}},
		"a backslash at the end of a line joins the lines": {"a \\\n  b", []string{"a", "b"}},
		"so does it within a word":                         {"a\\\r\nb", []string{"ab"}},
		"variables stay":                                   {`$A ${B} $(C)`, []string{"$A", "${B}", "$(C)"}},
		"a hash begins no comment":                         {"a #b", []string{"a", "#b"}},
		"letters of any script":                            {"ä 'ö ü'", []string{"ä", "ö ü"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := words.Split(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAQuoteWithoutItsPartnerIsSaidWithItsPlace(t *testing.T) {
	tests := map[string]struct {
		in   string
		want words.UnbalancedError
	}{
		"single":                         {"a 'b", words.UnbalancedError{Offset: 2, Quote: '\''}},
		"double":                         {`a b"c d`, words.UnbalancedError{Offset: 3, Quote: '"'}},
		"double, a backslash at the end": {`a "b\`, words.UnbalancedError{Offset: 2, Quote: '"'}},
		"a backslash at the end":         {`ab\`, words.UnbalancedError{Offset: 2, Quote: '\\'}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := words.Split(tt.in)
			got, ok := errors.AsType[*words.UnbalancedError](err)
			if !ok {
				t.Fatalf("no such error: %v", err)
			}
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatNeedsAShellIsFound(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"a plain command":                   {"python train.py --lr 0.1", ""},
		"a variable of Kubernetes":          {"$(BAI_SCRIPTS_PATH)/run.sh", ""},
		"a variable":                        {"curl http://${HOST}/", "http://${HOST}/"},
		"a variable of the platform":        {"curl http://${GIVEN}:80/", ""},
		"one of the platform, bare":         {"curl http://$GIVEN/", "http://$GIVEN/"},
		"one of the platform, and another":  {"curl ${GIVEN}${HOST}", "${GIVEN}${HOST}"},
		"one of the platform, changed":      {"curl ${GIVEN:-x}", "${GIVEN:-x}"},
		"a variable in double quotes":       {`echo "$HOST"`, "$HOST"},
		"a variable in single quotes":       {`awk '{print $NF}'`, ""},
		"an escaped variable":               {`echo \$HOST`, ""},
		"an operator":                       {"make && ./run", "&&"},
		"an operator in quotes":             {"echo '&&'", ""},
		"a shell that is called":            {`bash -ec "make && echo $HOST"`, ""},
		"a price":                           {"echo $5", ""},
		"a redirection":                     {"run > log", ">"},
		"an operator that is an argument's": {"test a>b", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all, err := words.Read(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if got := words.NeedsShell(all, func(name string) bool { return name == "GIVEN" }); got != tt.want {
				t.Errorf("want %q, got %q", tt.want, got)
			}
		})
	}
}

func TestARealShellSplitsTheSame(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	quoted := rapid.StringMatching(`[a-z'" \\]{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		in := quoted.Draw(t, "command")
		got, err := words.Split(in)
		if err != nil {
			return
		}
		out, err := exec.Command(sh, "-c", `printf '[%s]' `+in).Output()
		if err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		want := "[" + strings.Join(got, "][") + "]"
		if len(got) == 0 {
			want = "[]"
		}
		if diff := cmp.Diff(want, string(out)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	})
}
