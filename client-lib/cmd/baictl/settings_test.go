package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// A home is a folder in which baictl is used several times, with only the test's
// environment.
type home struct {
	t   *testing.T
	dir string
}

func (h home) run(env []string, args ...string) result {
	h.t.Helper()
	cmd := command(h.t, "", args...)
	cmd.Env = append([]string{"HOME=" + h.dir, "TZ=UTC", "GORACE=atexit_sleep_ms=0"}, env...)
	cmd.Dir = h.dir
	return finish(h.t, cmd)
}

func (h home) must(args ...string) string {
	h.t.Helper()
	got := h.run(nil, args...)
	if got.code != 0 {
		h.t.Fatalf("%q: %s", args, got)
	}
	return got.out
}

func TestTheLinkToKibanaHasThePrefixOfTheDashboards(t *testing.T) {
	p := baitest.Start(t)
	id := p.Add(&baiv1.Run{Owner: "ann", CreateTime: timestamppb.New(newYear)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"success": true, "successCount": 3}`)
	}))
	defer server.Close()
	h := home{t, t.TempDir()}
	h.must("config", "set-context", "lab", "--server", p.Addr(), "--owner", "ann", "--kibana", server.URL)
	h.must("config", "set-context", "other", "--server", p.Addr(), "--kibana", "https://kibana.example.org")
	link := func() string {
		_, after, _ := strings.Cut(h.must("get", id), server.URL+"/app/dashboards#/view/")
		dashboard, _, _ := strings.Cut(after, "?")
		return dashboard
	}
	before := link()
	if !strings.HasPrefix(before, "bai-") {
		t.Fatalf("the link leads to %q", before)
	}
	for _, args := range [][]string{{"--prefix", "lab"}, {}, {"--kibana", server.URL + "/"}} { // the later calls use the stored settings
		h.must(append([]string{"dashboards", "install"}, args...)...)
		if got, want := link(), "lab-"+strings.TrimPrefix(before, "bai-"); got != want {
			t.Errorf("installed with %q: the link leads to %q, want %q", args, got, want)
		}
	}
	h.must("config", "set-context", "lab", "--kibana-prefix", "")
	if got := link(); got != before {
		t.Errorf("with the prefix taken away the link leads to %q", got)
	}
	text, err := os.ReadFile(filepath.Join(h.dir, ".config", "bai", "config.toml"))
	if err != nil || strings.Contains(string(text), "kibana_prefix") {
		t.Errorf("the contexts are %s, %v", text, err)
	}
}

func TestAContextIsMadeUsedChangedAndForgotten(t *testing.T) {
	one, two := baitest.Start(t), baitest.Start(t)
	first := one.Add(&baiv1.Run{Owner: "ann"})
	second := two.Add(&baiv1.Run{Owner: "bob"})
	h := home{t, t.TempDir()}
	h.must("config", "set-context", "one", "--server", one.Addr(), "--owner", "ann", "--namespace", "pets")
	h.must("config", "set-context", "two", "--server", two.Addr(), "--owner", "bob")
	if got := h.must("list", "-o", "name"); got != first+"\n" {
		t.Errorf("the first context is not the current one: %s", got)
	}
	h.must("config", "use-context", "two")
	if got := h.must("list", "-o", "name"); got != second+"\n" || two.Calls("ListRuns") != 1 {
		t.Errorf("the current context is not used: %s", got)
	}
	table := h.must("config", "get-contexts")
	for _, want := range []string{"         one   " + one.Addr() + "  ann    pets", "*        two   " + two.Addr() + "  bob    -"} {
		if !strings.Contains(table, want) {
			t.Errorf("want %q in\n%s", want, table)
		}
	}
	h.must("config", "set-context", "two", "--namespace", "cars", "--owner", "")
	text, err := os.ReadFile(filepath.Join(h.dir, ".config", "bai", "config.toml"))
	want := "current = \"two\"\n\n[contexts.\"one\"]\nserver = \"" + one.Addr() + "\"\nowner = \"ann\"\nnamespace = \"pets\"\n\n[contexts.\"two\"]\nserver = \"" + two.Addr() + "\"\nnamespace = \"cars\"\n"
	if err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, string(text)))
	}
	h.must("config", "delete-context", "two")
	if got := h.must("config", "view", "-o", "name"); got != "127.0.0.1:7070\n" {
		t.Errorf("after the current context was forgotten: %s", got)
	}
	expect(t, h.run(nil, "config", "delete-context", "two"), 2, `context "two": there is no such context, only "one"`)
}

func TestFlagsWinOverTheEnvironmentThatOverTheContextThatOverTheDefault(t *testing.T) {
	h := home{t, t.TempDir()}
	h.must("config", "set-context", "home", "--server", "home:1", "--owner", "hans")
	h.must("config", "set-context", "work", "--server", "work:1", "--owner", "will")
	for name, tt := range map[string]struct {
		env  []string
		args string
		want string
	}{
		"the current context": {nil, "", "home:1"},
		"BAI_CONTEXT":         {[]string{"BAI_CONTEXT=work"}, "", "work:1"},
		"BAI_SERVER":          {[]string{"BAI_CONTEXT=work", "BAI_SERVER=env:1"}, "", "env:1"},
		"--context":           {[]string{"BAI_SERVER=env:1", "BAI_CONTEXT=home"}, "--context work", "work:1"},
		"--server":            {[]string{"BAI_SERVER=env:1"}, "--context work --server flag:1", "flag:1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.run(tt.env, strings.Fields("config view -o name "+tt.args)...)
			if got.code != 0 || got.out != tt.want+"\n" {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestAFileOfContextsThatIsFaultyIsSaidWithItsPlace(t *testing.T) {
	h := home{t, t.TempDir()}
	h.must("config", "set-context", "home", "--server", "home:1")
	path := filepath.Join(h.dir, ".config", "bai", "config.toml")
	if err := os.WriteFile(path, []byte("current = \"home\"\n[contexts.home]\nsever = \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"list", "config view", "config use-context home", "config set-context home"} {
		expect(t, h.run(nil, strings.Fields(args)...), 2, path+":3:1: contexts.home.sever: unknown key")
	}
	for _, args := range []string{"version --client", "explain BAI0001", "init", "__complete get x", "__complete list --context "} { // these do not need it
		expect(t, h.run(nil, strings.Fields(args)...), 0, "")
	}
}

func TestWhatIsBegunWithInitIsValid(t *testing.T) {
	h := home{t, t.TempDir()}
	for _, kind := range []string{"single_node", "gpu", "mpi", "inference", "scheduled", "sweep"} {
		h.must("init", "--kind", kind, kind+".toml")
		if got := h.run(nil, "validate", "--strict", kind+".toml"); got.code != 0 {
			t.Errorf("%s: %s", kind, got)
		}
		text, err := os.ReadFile(filepath.Join(h.dir, kind+".toml"))
		if printed := h.must("init", "--kind", kind); err != nil || printed != string(text) {
			t.Errorf("%s: %v, the file and the standard output differ", kind, err)
		}
	}
}
