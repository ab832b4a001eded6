package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/storetest"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
)

// administer runs bai with arguments, and returns its output.
func administer(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	c := command(&out, io.Discard)
	c.SetArgs(append([]string{"admin"}, args...))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := c.ExecuteContext(ctx)
	return out.String(), err
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admin.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnOperatorPlansAndAppliesTopics(t *testing.T) {
	b := kafkatest.StartSecured(t)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(kafkatest.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	file := settingsFile(t, fmt.Sprintf(`[kafka]
brokers = [%q]
tls.ca_file = %q
sasl = { mechanism = "SCRAM-SHA-512", user = %q, password_file = %q }
topics = { partitions = 2, replication = 1 }
principals = { services = ["User:bai"], pods = ["User:bai-pods"] }
`, b.Addrs[0], b.CA, kafkatest.Operator, password))
	plan, err := administer(t, "topics", "plan", "--config", file)
	for _, want := range []string{
		"+ topic bai.submitted, 2 partitions, 1 copy, cleanup.policy=delete, max.message.bytes=1048588, retention.ms=2592000000\n",
		"+ topic bai.dead, 1 partition, 1 copy,",
		"+ User:bai-pods may write topic bai.metrics\n",
		"+ User:bai may read group executor*\n",
	} {
		if err != nil || !strings.Contains(plan, want) {
			t.Errorf("plan: %v\n%s\nwant %s", err, plan, want)
		}
	}
	if got, err := administer(t, "topics", "apply", "--config", file); err != nil || got != plan+"done\n" {
		t.Errorf("apply: %q, %v", got, err)
	}
	if got, err := administer(t, "topics", "plan", "--config", file); err != nil || got != "everything is as it is to be\n" {
		t.Errorf("plan again: %q, %v", got, err)
	}
	if got, err := administer(t, "dead", "list", "--config", file); err != nil || got != "OFFSET  AT  RUN  TYPE  REASON\n" {
		t.Errorf("dead letters: %q, %v", got, err)
	}
}

func TestWhatAnOperatorHasWrongIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.toml")
	empty := settingsFile(t, "")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a file that is not there": {[]string{"topics", "plan", "--config", missing}, missing},
		"no brokers":               {[]string{"topics", "plan", "--config", empty}, "kafka.brokers: at least one is needed"},
		"seals of no platform":     {[]string{"seals", "show", "--data", t.TempDir()}, "start it, then try again"},
		"seals that nobody notes":  {[]string{"seals", "show", "--config", settingsFile(t, "[kafka]\nbrokers=['127.0.0.1:1']")}, "elasticsearch.addresses: at least one is needed, or --data"},
		"seals without a key": {
			[]string{"seals", "require", "--config", settingsFile(t, "[kafka]\nbrokers=['127.0.0.1:1']\n[elasticsearch]\naddresses=['http://127.0.0.1:1']")}, "kafka.seal_key_file: is needed",
		},
		"no Elasticsearch":                {[]string{"store", "setup", "--config", empty}, "elasticsearch.addresses: at least one is needed"},
		"a month that is none":            {[]string{"store", "forget", "--before", "January", "--config", empty}, `--before "January" is no month`},
		"a month that is to come":         {[]string{"store", "forget", "--before", "2999-01", "--config", empty}, "the months before it are not over"},
		"no month":                        {[]string{"store", "forget", "--config", empty}, "before"},
		"an offset that is none":          {[]string{"dead", "show", "x", "--config", settingsFile(t, "[kafka]\nbrokers=['127.0.0.1:1']")}, `"x" is no offset`},
		"a replay without the key":        {[]string{"dead", "replay", "1", "--config", settingsFile(t, "[kafka]\nbrokers=['127.0.0.1:1']")}, "kafka.key_file"},
		"a password that anybody can see": {[]string{"topics", "plan", "--config", settingsFile(t, "[kafka]\nbrokers=['b:9092']\nsasl={mechanism='PLAIN',user='u',password_file='p'}")}, "PLAIN shows the password"},
		"pods with the rights of services": {
			[]string{"topics", "plan", "--config", settingsFile(t, "[kafka]\nbrokers=['127.0.0.1:1']\nprincipals={services=['User:a'],pods=['User:a']}")}, "principal of pods too",
		},
		"brokers that do not answer": {[]string{"topics", "plan", "--config", settingsFile(t, "[kafka]\nbrokers=['127.0.0.1:1']")}, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := administer(t, tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q, %v, want %q", out, err, tt.want)
			}
		})
	}
}

func TestAnOperatorSetsUpTheStore(t *testing.T) {
	server := elasticsearch.Start(t)
	prefix := fmt.Sprintf("admin%d", time.Now().UnixNano())
	file := settingsFile(t, fmt.Sprintf("[elasticsearch]\naddresses = [%q]\nprefix = %q\n", server.URL, prefix))
	if out, err := administer(t, "store", "check", "--config", file); err == nil || !strings.Contains(err.Error(), "bai admin store setup") {
		t.Errorf("check before: %q, %v", out, err)
	}
	for range 2 {
		if out, err := administer(t, "store", "setup", "--config", file); err != nil || !strings.Contains(out, "the store is of version") {
			t.Errorf("setup: %q, %v", out, err)
		}
	}
	if out, err := administer(t, "store", "check", "--config", file); err != nil || !strings.Contains(out, "nothing is to be done") {
		t.Errorf("check after: %q, %v", out, err)
	}
	for _, flag := range []string{"--dry-run", "--yes"} {
		if out, err := administer(t, "store", "forget", "--before", "2026-01", flag, "--config", file); err != nil || out != "there is nothing to be removed\n" {
			t.Errorf("forget %s: %q, %v", flag, out, err)
		}
	}
	forgetOld(t, server, file, prefix)
}

// forgetOld removes the index of a past month.
func forgetOld(t *testing.T, server *elasticsearch.Server, file, prefix string) {
	t.Helper()
	opened, err := elastic.Open(elastic.Settings{Addresses: []string{server.URL}, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	// of January 2026
	line := store.Lines{Origin: storetest.NewOrigin("01kdvr00070000000000000007", "p"), Lines: []event.Line{storetest.NewLine(1, "x")}}
	if err := errors.Join(opened.AppendLines(t.Context(), []store.Lines{line}), opened.Close()); err != nil {
		t.Fatal(err)
	}
	forget := func(flags ...string) (string, error) {
		return administer(t, append([]string{"store", "forget", "--before", "2026-02", "--config", file}, flags...)...)
	}
	want := fmt.Sprintf("- index %s-sources-2026.01\n- index %s-logs-2026.01\n", prefix, prefix)
	if out, err := forget("--dry-run"); err != nil || out != want {
		t.Errorf("what would be forgotten: %q, %v", out, err)
	}
	if out, err := forget(); err == nil || out != want || !strings.Contains(err.Error(), "give --yes") {
		t.Errorf("forgotten without being sure: %q, %v", out, err)
	}
	if out, err := forget("--yes"); err != nil || out != want+"done\n" {
		t.Errorf("forget: %q, %v", out, err)
	}
	if out, err := forget("--yes"); err != nil || out != "there is nothing to be removed\n" {
		t.Errorf("forget again: %q, %v", out, err)
	}
}

func TestTheSettingsInTheManualAreSettings(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) < 4 {
		t.Errorf("%d blocks of settings, want 4 or more", len(blocks))
	}
	for _, b := range blocks {
		for _, key := range unknownSettings(t, string(b[1])) {
			t.Errorf("no program has the setting %s of the manual:\n%s", key, b[1])
		}
	}
}

// unknownSettings returns the settings in a text that no program has.
func unknownSettings(t *testing.T, text string) (keys []string) {
	t.Helper()
	programs := []any{&program.Settings{}, &settings{}, &struct{ Objects wiring.Objects }{}}
	times := map[string]int{}
	for _, s := range programs {
		meta, err := toml.Decode(text, s)
		if err != nil {
			t.Errorf("settings of the manual: %v\n%s", err, text)
		}
		for _, key := range meta.Undecoded() {
			if times[key.String()]++; times[key.String()] == len(programs) {
				keys = append(keys, key.String())
			}
		}
	}
	return keys
}
