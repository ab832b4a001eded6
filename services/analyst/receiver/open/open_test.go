package open_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/analyst/receiver/open"
	"github.com/benchmark-ai/bai/services/internal/config"
)

type settings struct{ Receivers open.Settings }

func (s *settings) Validate() error { return s.Receivers.Validate() }

// load reads settings from text.
func load(t *testing.T, text string) (open.Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bai.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var s settings
	err := config.Load(path, &s)
	return s.Receivers, err
}

// page returns the blocks of settings in docs/receivers.md.
func page(t *testing.T) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/receivers.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(text), "```toml\n") {
		if block, _, ok := strings.Cut(part, "```"); i > 0 && ok && strings.Contains(block, "[receivers.") {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

func TestTheSettingsInTheDocumentsOpenReceiversOfAllKinds(t *testing.T) {
	secrets := t.TempDir()
	for name, text := range map[string]string{
		"app": privateKey(t), "github": "token",
		"hook": "a secret of at least 24 bytes", "chat": "https://hooks.slack.com/services/T/B/X", "mail": "password", "token": "token",
	} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	blocks := page(t)
	if len(blocks) == 0 {
		t.Fatal("docs/receivers.md has no settings")
	}
	s, err := load(t, strings.ReplaceAll(strings.Join(blocks, "\n"), "/etc/bai/", secrets+"/"))
	if err != nil {
		t.Fatal(err)
	}
	channels, end, err := open.Channels(s, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, c := range channels {
		kinds[s[c.Name].Kind] = true
	}
	if len(kinds) != 5 || len(channels) != len(s) {
		t.Errorf("%d channels of kinds %v, want those of all five", len(channels), kinds)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// privateKey returns a key of a GitHub App.
func privateKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func TestASecretThatIsNotThereIsSaidAtOnce(t *testing.T) {
	s, err := load(t, "[receivers.hook]\nkind = \"webhook\"\nurl = \"https://example.com/\"\nsecret_file = \"/nowhere/secret\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := open.Channels(s, time.Now); err == nil || !strings.Contains(err.Error(), "open receiver hook: ") || !strings.Contains(err.Error(), "/nowhere/secret") {
		t.Errorf("Channels: %v", err)
	}
}

func TestEveryFaultOfTheSettingsIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"no kind":             {"x = 1", []string{`unknown settings: receivers.r.x`, `receivers.r.kind: "", want webhook, slack, email, alertmanager or github`}},
		"webhook without all": {`kind = "webhook"`, []string{"receivers.r.url: want a URL", "receivers.r.secret_file: is needed"}},
		"keys of other kinds": {"kind = \"slack\"\nurl_file = \"/x\"\nurl = \"https://x/\"\nto = [\"a@b\"]", []string{"receivers.r.url: kind slack has no url", "receivers.r.to: kind slack has no to"}},
		"slack without all":   {`kind = "slack"`, []string{"receivers.r.url_file: is needed"}},
		"email without all":   {`kind = "email"`, []string{`receivers.r.address: "", want host:port`, `receivers.r.from: ""`, "receivers.r.to: is needed"}},
		"plain mail": {"kind = \"email\"\naddress = \"mail.example.com:25\"\ntls = \"none\"\nfrom = \"a@b\"\nto = [\"x\"]\nusername = \"u\"", []string{
			"receivers.r.tls: none is for loopback addresses alone", `receivers.r.to: "x", want an address`, "receivers.r: username and password_file go together",
		}},
		"alertmanager with a rate": {"kind = \"alertmanager\"\nurl = \"http://x/\"\nrate = 3\nquiet = \"1:00-2:00\"\nresolved = false", []string{
			"receivers.r.rate: kind alertmanager has no rate", "receivers.r.quiet: kind alertmanager has no quiet", "receivers.r.resolved: kind alertmanager has no resolved",
		}},
		"rules": {"kind = \"slack\"\nurl_file = \"/x\"\nrate = -1\nquiet = \"22\"\nmin_change = \"5\"\ntimeout = \"-1s\"", []string{
			"receivers.r.rate: must not be negative", `receivers.r.quiet: "22": want two different times such as 22:00-07:00`, `receivers.r.min_change: "5", want a percentage such as 5%`,
			"receivers.r.timeout: must not be negative",
		}},
		"a time zone for nothing": {"kind = \"slack\"\nurl_file = \"/x\"\ntime_zone = \"Europe/Berlin\"", []string{"receivers.r.time_zone: is that of quiet"}},
		"github without all": {"kind = \"github\"\nrate = 1", []string{
			"receivers.r.rate: kind github has no rate", "receivers.r.token_file: is needed", "receivers.r.username: is needed", "receivers.r.repositories: is needed",
		}},
		"repositories that are none": {"kind = \"github\"\nurl = \"x\"\ntoken_file = \"/x\"\nusername = \"bot\"\nrepositories = [\"app\", \"a/..\", \"a/app\"]", []string{
			"receivers.r.url: want a URL", `repositories: "app", want OWNER/NAME`, `repositories: "a/..", want OWNER/NAME`, `two of the name "app"`,
		}},
		"an App and a token": {
			"kind = \"github\"\napp_id = \"1\"\ninstallation_id = -1\ntoken_file = \"/x\"\nusername = \"bot\"\nrepositories = [\"a/x\", \"A/y\", \"b/z\"]",
			[]string{
				"receivers.r: token_file or a GitHub App, not both", "receivers.r: app_id, installation_id and private_key_file go together",
				"receivers.r.installation_id: must not be negative", `receivers.r.username: "bot", want the account of the App`,
				`receivers.r.repositories: "b/z" is of another owner`,
			},
		},
		"an App for a chat": {
			"kind = \"slack\"\nurl_file = \"/x\"\napp_id = \"1\"\ninstallation_id = 2\nprivate_key_file = \"/k\"",
			[]string{"kind slack has no app_id", "kind slack has no installation_id", "kind slack has no private_key_file"},
		},
		"repositories for a chat": {"kind = \"slack\"\nurl_file = \"/x\"\nrepositories = [\"a/b\"]\nalways = true", []string{"kind slack has no repositories", "kind slack has no always"}},
		"an owner without a name": {"kind = \"slack\"\nurl_file = \"/x\"\nowners = [\"\"]", []string{"receivers.r.owners: an owner without a name"}},
		"a password in the URL":   {"kind = \"alertmanager\"\nurl = \"http://u:p@x/\"", []string{"receivers.r.url: a URL must not hold a password"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, "[receivers.r]\n"+tt.text+"\n")
			if err == nil {
				t.Fatal("no fault")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %s", err, want)
				}
			}
		})
	}
	if _, err := load(t, "[receivers.\"a b\"]\nkind = \"slack\"\nurl_file = \"/x\"\n[receivers.submitter]\nkind = \"slack\"\nurl_file = \"/x\"\n"); err == nil || strings.Count(err.Error(), "no descriptor can have this name") != 2 {
		t.Errorf("names: %v", err)
	}
}

func TestWhichReceiversANoticeHas(t *testing.T) {
	s := open.Settings{
		"all": {Default: true}, "perf": {Namespaces: []string{"perf"}}, "ops": {Namespaces: []string{"ops"}, Default: true},
		"ann": {Owners: []string{"ann", "bob"}}, "bob-ops": {Owners: []string{"bob"}, Namespaces: []string{"ops"}}, "others": {Owners: []string{"*"}},
	}
	for name, tt := range map[string]struct {
		namespace, owner string
		notify           []string
		want             []string
		logged           int
	}{
		"without notify those that are defaults of the namespace": {"perf", "ann", nil, []string{"all"}, 0},
		"of several defaults all":                                 {"ops", "ann", nil, []string{"all", "ops"}, 0},
		"those of notify alone":                                   {"perf", "ann", []string{"perf"}, []string{"perf"}, 0},
		"none of another namespace, and none that is not there":   {"perf", "ann", []string{"ops", "perf", "gone"}, []string{"perf"}, 1},
		"for the submitter those of the owner":                    {"ops", "bob", []string{"submitter"}, []string{"ann", "bob-ops"}, 0},
		"of these none of another namespace":                      {"perf", "bob", []string{"submitter"}, []string{"ann"}, 0},
		"each once":                                               {"perf", "ann", []string{"submitter", "ann"}, []string{"ann"}, 0},
		"for an owner whom no receiver names those for others":    {"perf", "eve", []string{"submitter"}, []string{"others"}, 0},
		"for an owner whose name is the sign for others as well":  {"perf", "*", []string{"submitter"}, []string{"others"}, 0},
		"none without an owner":                                   {"perf", "", []string{"submitter"}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			got := s.Resolver(zap.New(core))(tt.namespace, tt.owner, tt.notify)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if logs.Len() != tt.logged {
				t.Errorf("%v, want %d lines", logs.All(), tt.logged)
			}
		})
	}
}
