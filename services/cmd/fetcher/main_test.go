package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/cmd/internal/deployedtest"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/kafkatest"
)

const descriptor = `spec_version = "1.0"
[info]
description = "x"
[hardware]
cpus = 1
[env]
docker_image = "x:1"
[[data.sources]]
src = %q
path = "/data/dogs"
`

// TestProcess runs the whole process against a broker, as a container would.
func TestProcess(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "dogs") }))
	defer site.Close()
	broker := kafkatest.Start(t, event.Topics()...)
	dir := t.TempDir()
	file := writeFile(t, fmt.Sprintf("store = %q\n[log]\nlevel = \"error\"\n[kafka]\nbrokers = [%q]\nkey_file = %q\nretry = \"10ms\"\n[objects]\nurl = %q\n[fetcher.sources]\nnetworks = [\"loopback\"]\n",
		filepath.Join(dir, "bai.db"), broker.Addrs[0], writeFile(t, "0123456789abcdef"), "file://"+dir+"/objects"))

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := program.Run(ctx, "fetcher", []string{"-config", file}, &settings{}); err != nil {
			t.Errorf("it ended with %v, want nil", err)
		}
	})
	defer running.Wait()
	defer stop()

	run := event.Submitted{Header: event.NewHeader("m1", "r1", "team", "me", time.Unix(0, 0).UTC()), Descriptor: fmt.Sprintf(descriptor, site.URL)}
	m, err := event.Encode(run)
	if err != nil {
		t.Fatal(err)
	}
	broker.Write(t, event.TopicSubmitted, kafkatest.Message{Key: m.Key, Value: string(m.Value), Headers: map[string]string{"ce_type": m.Type, "ce_id": m.ID}})
	if got := broker.Read(t, event.TopicStatus).Value; !strings.Contains(got, "fetching 1 data set") {
		t.Errorf("status: %s", got)
	}
	var fetched event.Fetched
	if err := json.Unmarshal([]byte(broker.Read(t, event.TopicFetched).Value), &fetched); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "objects", fetched.Data[0].Object))
	if err != nil || string(b) != "dogs" {
		t.Errorf("the object store has %q, %v", b, err)
	}
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct{ file, want string }{
		"all faults at once": {"[fetcher]\ntransfers = -1\n", "kafka.brokers: at least one is needed\nkafka.key_file: is needed: without the platform's key nobody can tell which run a pod may speak for. Make one with 'openssl rand -hex 32', and give all services the same\nstore: the path of the SQLite file is needed, or elasticsearch.addresses\nobjects.url: \"\" is not a URL: file:///folder is one\nfetcher: transfers: must not be negative"},
		"a misspelt setting": {"[fetcher.sources]\nhost = []\n", "unknown settings: fetcher.sources.host"},
		"no file":            {"-", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			file := "/nowhere.toml"
			if tt.file != "-" {
				file = writeFile(t, tt.file)
			}
			err := program.Run(t.Context(), "fetcher", []string{"-config", file}, &settings{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run: %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fetcher.toml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheSettingsThatAreDeployedAreOnesThatThisProgramHas(t *testing.T) {
	deployedtest.WantLoaded(t, func() config.Validator { return &settings{} })
}

// A Job mounts the settings, keys and files that it needs.
func TestWhatJobsMountIsAllThatTheyNeed(t *testing.T) {
	for name, components := range map[string][]string{"the base": nil, "with Elasticsearch and a bucket": {"elasticsearch", "s3"}} {
		dir := deployedtest.Folder(t, components...)
		for _, not := range []string{"platform.toml", "kafka.toml"} {
			if err := os.Remove(filepath.Join(dir, not)); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile("../../../deploy/kubernetes/fetch-jobs/task.toml")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "task.toml"), text, 0o600)
		}
		if err == nil {
			err = config.Load(dir, settingsFor("a task"))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
