package contexts_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/contexts"
)

func TestWhatIsSavedIsReadBackAndIsTheUsersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "bai", "config.toml")
	want := contexts.Contexts{Current: "home", All: map[string]contexts.Context{
		"home":   {Server: "127.0.0.1:7070", Owner: "Ann \"A\" \\ Müller\n\x7f"},
		"a.b-_c": {Server: "h:1", Owner: "o", Namespace: "team"},
	}}
	for range 2 { // the second time over the first
		if err := want.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := contexts.Load(path)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info, err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("%v, %v: files were left", all, err)
	}
}

func TestNoFileIsNoContexts(t *testing.T) {
	for _, path := range []string{"", filepath.Join(t.TempDir(), "none")} {
		if got, err := contexts.Load(path); err != nil || len(got.All) != 0 {
			t.Errorf("%v, %v", got, err)
		}
	}
	if err := (contexts.Contexts{}).Save(""); err == nil {
		t.Error("saved nowhere")
	}
}

func TestWhatIsWrongWithTheFileIsSaidWithItsPlace(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"an unknown key":           {"[contexts.a]\nserver = \"h:1\"\nsever = \"x\"\n", "f:3:1: contexts.a.sever: unknown key (known: current, contexts.NAME.server, .owner, .namespace, .kibana, .kibana_prefix)"},
		"not TOML":                 {"current = \n", "f:1:"},
		"another type":             {"current = 7\n", "f:1:11: "},
		"a context that is absent": {"current = \"b\"\n[contexts.a]\n", "f: current = \"b\": there is no context of that name, only [\"a\"]"},
		"a name that is none":      {"[contexts.\"a b\"]\n", "f: \"a b\" is no name of a context"},
		"a name that is empty":     {"[contexts.\"\"]\n", "f: the name of a context has 1 to 63 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := contexts.Parse("f", []byte(tt.text))
			if _, ok := errors.AsType[*contexts.FileError](err); !ok || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := contexts.Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "cannot be read: is a directory") {
		t.Errorf("a folder: %v", err)
	}
}

func TestWhereTheFileLies(t *testing.T) {
	for name, tt := range map[string]struct{ xdg, home, want string }{
		"XDG_CONFIG_HOME":        {"/x", "/home/a", "/x/bai/config.toml"},
		"no XDG_CONFIG_HOME":     {"", "/home/a", "/home/a/.config/bai/config.toml"},
		"a relative one is none": {"x", "/home/a", "/home/a/.config/bai/config.toml"},
		"no home":                {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"XDG_CONFIG_HOME": tt.xdg, "HOME": tt.home}
			if got := contexts.Path(func(k string) string { return env[k] }); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhatIsTypedWinsOverTheEnvironmentThatOverTheContextThatOverTheDefault(t *testing.T) {
	all := contexts.Contexts{Current: "home", All: map[string]contexts.Context{
		"home": {Server: "home:1", Owner: "hans", Namespace: "family"},
		"work": {Server: "work:1", Owner: "ann"},
		"bare": {},
	}}
	base := contexts.ResolveInput{DefaultServer: "default:1", DefaultOwner: "me"}
	for name, tt := range map[string]struct {
		given func(*contexts.ResolveInput)
		want  contexts.Context
	}{
		"nothing: the current context":        {func(*contexts.ResolveInput) {}, contexts.Context{Server: "home:1", Owner: "hans", Namespace: "family"}},
		"BAI_SERVER and BAI_OWNER":            {func(c *contexts.ResolveInput) { c.EnvServer, c.EnvOwner = "env:1", "eve" }, contexts.Context{Server: "env:1", Owner: "eve", Namespace: "family"}},
		"flags":                               {func(c *contexts.ResolveInput) { c.Server, c.EnvServer = "flag:1", "env:1" }, contexts.Context{Server: "flag:1", Owner: "hans", Namespace: "family"}},
		"BAI_CONTEXT":                         {func(c *contexts.ResolveInput) { c.EnvContext = "work" }, contexts.Context{Server: "work:1", Owner: "ann"}},
		"BAI_CONTEXT and BAI_SERVER":          {func(c *contexts.ResolveInput) { c.EnvContext, c.EnvServer = "work", "env:1" }, contexts.Context{Server: "env:1", Owner: "ann"}},
		"--context wins over the environment": {func(c *contexts.ResolveInput) { c.Context, c.EnvContext, c.EnvServer = "work", "home", "env:1" }, contexts.Context{Server: "work:1", Owner: "ann"}},
		"--context and --server":              {func(c *contexts.ResolveInput) { c.Context, c.Server = "work", "flag:1" }, contexts.Context{Server: "flag:1", Owner: "ann"}},
		"a context that says nothing":         {func(c *contexts.ResolveInput) { c.Context = "bare" }, contexts.Context{Server: "default:1", Owner: "me"}},
	} {
		t.Run(name, func(t *testing.T) {
			choice := base
			tt.given(&choice)
			got, err := all.Resolve(choice)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	for _, choice := range []contexts.ResolveInput{{Context: "x"}, {EnvContext: "x"}} {
		if _, err := all.Resolve(choice); err == nil || !strings.Contains(err.Error(), `there is no such context, only "bare", "home", "work"`) {
			t.Errorf("%+v: %v", choice, err)
		}
		if _, err := (contexts.Contexts{}).Resolve(choice); err == nil || !strings.Contains(err.Error(), "baictl config set-context x") {
			t.Errorf("%+v: %v", choice, err)
		}
	}
}
