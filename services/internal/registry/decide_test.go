package registry

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestALoginOpensItsRegistryAndWhatLiesBelowItsPath(t *testing.T) {
	t.Parallel()
	for key, opened := range map[string]map[string]bool{
		"example.org":                 {"example.org/a": true, "example.org:5000/a": false, "x.example.org/a": false},
		"https://example.org/v2/":     {"example.org/a/b": true},
		"EXAMPLE.org:5000":            {"example.org:5000/a": true, "example.org/a": false},
		"*.example.org":               {"x.example.org/a": true, "x.y.example.org/a": false, "example.org/a": false, "x.example.com/a": false},
		"example.org/team":            {"example.org/team/a": true, "example.org/team": true, "example.org/teammate/a": false},
		"https://index.docker.io/v1/": {"index.docker.io/library/alpine": true},
		"docker.io":                   {"index.docker.io/library/alpine": true},
		"*":                           {"example.org/a": false, "localhost/a": true},
		"[":                           {"example.org/a": false},
		"":                            {"example.org/a": false},
	} {
		for place, want := range opened {
			host, repository, _ := strings.Cut(place, "/")
			if got := loginMatches(key, host, repository); got != want {
				t.Errorf("%q opens %s: %v", key, place, got)
			}
		}
	}
}

func TestTheLoginForTheLongestPathComesFirst(t *testing.T) {
	t.Parallel()
	secret := map[string][]byte{".dockercfg": []byte(`{
		"example.org": {"username": "all", "password": "p"}, "example.org/team": {"auth": "dGVhbTpw"}, "example.com": {"auth": "%"}
	}`)}
	logins, err := loginsOf(secret, "example.org", "team/bench")
	if err != nil || len(logins) != 2 {
		t.Fatalf("%d logins, %v", len(logins), err)
	}
	if diff := cmp.Diff([]string{"team", "all"}, []string{logins[0].Username, logins[1].Username}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{`{"auths": {"example.org": {"auth": "%"}}}`, `{"auths": {"example.org": "geheim"}}`, `geheim`, ``} {
		if _, err := loginsOf(map[string][]byte{".dockerconfigjson": []byte(text)}, "example.org", "a"); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := loginsOf(map[string][]byte{"password": nil}, "example.org", "a"); err == nil {
		t.Error("a secret of another kind has no login")
	}
}

func TestAConfigurationWithoutAProgramIsNoAnswer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"config": {"Entrypoint": ["/a", "b"], "Cmd": ["c"]}}`: "",
		`{"config": {"Cmd": ["c"]}}`:                            "",
		`{}`:                                                    "neither an entrypoint nor a command",
		`{"config": {"Entrypoint": [""]}}`:                      "neither an entrypoint nor a command",
		`{"config": {"Entrypoint": ["a\u0000b"]}}`:              "zero byte",
		`{"config": {"Entrypoint": "a"}}`:                       "cannot be read",
		`[`:                                                     "cannot be read",
		`{"config": {"Entrypoint": ["a", "` + strings.Repeat("x", maxEntrypointBytes) + `"]}}`: "more than 64 KiB",
	} {
		got, err := parseConfig([]byte(text))
		switch {
		case want == "" && (err != nil || len(got.Entrypoint)+len(got.Cmd) == 0):
			t.Errorf("%s: %+v, %v", text, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

func FuzzNoConfigurationRunsWhatCannotBeRun(f *testing.F) {
	f.Add([]byte(`{"config": {"Entrypoint": ["/a", "b"], "Cmd": ["c"]}}`))
	f.Add([]byte(`{"config": {"Cmd": ["\ud800"]}}`))
	f.Add([]byte(`{"config": null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseConfig(text)
		if err != nil {
			return
		}
		words := append(got.Entrypoint, got.Cmd...)
		if len(words) == 0 || words[0] == "" {
			t.Fatalf("%q", words)
		}
		for _, w := range words {
			if strings.ContainsRune(w, 0) || !utf8.ValidString(w) || len(w) > maxEntrypointBytes {
				t.Fatalf("%q", w)
			}
		}
	})
}

func FuzzNoPullSecretIsTold(f *testing.F) {
	f.Add([]byte(`{"auths": {"example.org": {"auth": "YW5uOmdlaGVpbQ=="}}}`), "example.org", "team/a")
	f.Add([]byte(`{"auths": {"*.org/team": {"username": "u", "password": "geheim"}}}`), "example.org", "team/a")
	f.Add([]byte(`{"auths": {"[": {"auth": 1}}}`), "[", "")
	f.Fuzz(func(t *testing.T, text []byte, host, repository string) {
		for _, key := range []string{".dockerconfigjson", ".dockercfg"} {
			_, err := loginsOf(map[string][]byte{key: text}, host, repository)
			if err != nil && len(text) > 8 && strings.Contains(err.Error(), string(text)) {
				t.Fatal(err)
			}
		}
	})
}
