package wiring_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/gateway/preflight"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/test/testbed/s3"
)

func serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/fine":
		_, _ = w.Write([]byte("text"))
	case "/large":
		_, _ = w.Write(make([]byte, descriptors.MaxSize+1))
	case "/away":
		http.Redirect(w, r, "http://169.254.169.254/secret", http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

func TestADescriptorIsReadUnderTheGuardsOfDataSets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	for name, tt := range map[string]struct {
		networks  []string
		url, want string
		user      bool
	}{
		"what settings allow":                   {[]string{"loopback"}, server.URL + "/fine", "", true},
		"what is too large":                     {[]string{"loopback"}, server.URL + "/large", "more than the 256 KiB", true},
		"what is not there":                     {[]string{"loopback"}, server.URL + "/none", "404", true},
		"what leads to a place not allowed":     {[]string{"loopback"}, server.URL + "/away", "not public", true},
		"a place that settings do not allow":    {nil, server.URL + "/fine", "not public", true},
		"a file of the server's":                {[]string{"loopback"}, "file:///etc/passwd", "allow no files", true},
		"a folder":                              {nil, "s3://bucket/folder/", "name the file", true},
		"a secret of the URL is not in the way": {nil, "http://user:geheim@127.0.0.1/x?token=geheim", "not public", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := wiring.NewSource(source.Settings{Networks: tt.networks, Folders: []string{"/etc"}}, bucket.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			text, err := s.Read(t.Context(), tt.url)
			var why *catalog.SourceError
			switch {
			case tt.want == "" && (err != nil || string(text) != "text"):
				t.Errorf("read %q, %v", text, err)
			case tt.want != "" && (!errors.As(err, &why) || why.User != tt.user || !strings.Contains(why.Message, tt.want) || strings.Contains(why.Message, "geheim")):
				t.Errorf("read: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestADescriptorIsReadFromABucket(t *testing.T) {
	server := s3.Start(t)
	server.Bucket(t, "team")
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	if err := os.WriteFile(filepath.Join(server.Dir, "team", "nightly.toml"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := wiring.NewSource(source.Settings{Networks: []string{"loopback"}}, bucket.Settings{S3: bucket.S3{Endpoint: server.Endpoint, Region: server.Region}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if text, err := s.Read(t.Context(), "s3://team/nightly.toml"); err != nil || string(text) != "text" {
		t.Errorf("read %q, %v", text, err)
	}
	var why *catalog.SourceError
	if _, err := s.Read(t.Context(), "s3://team/none.toml"); !errors.As(err, &why) || !why.User {
		t.Errorf("what is not there: %v", err)
	}
}

func TestOnlyTheLocalClusterIgnoresZones(t *testing.T) {
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\naws_zone_id = \"use1-az9\"\n[env]\ndocker_image = \"alpine:3\"\n")
	local := executor.Settings{}
	d, faults := local.Parser().Parse("a.toml", text)
	if d == nil || len(faults.Warnings()) != 1 {
		t.Fatalf("the local cluster: %v, want one warning", faults)
	}
	if _, err := wiring.NewRenderer(local, false).Render(d, text, false); err != nil {
		t.Errorf("rendered for the local cluster: %v", err)
	}
	if planned, err := wiring.NewPlanner(local, nil).Plan(t.Context(), d, text, false); err != nil || len(planned.Objects) == 0 {
		t.Errorf("planned for the local cluster: %d objects, %v", len(planned.Objects), err)
	}
	for zone, accepted := range map[string]bool{"use1-az9": true, "use1-az1": false} {
		s := executor.Settings{Engine: executor.EngineKubernetes}
		s.Pods.Zones = map[string]string{zone: "us-east-1a"}
		if d, faults := s.Parser().Parse("a.toml", text); (d != nil) != accepted {
			t.Errorf("a cluster that knows %s: %v", zone, faults)
		}
	}
	if d, _ := (executor.Settings{Engine: executor.EngineKubernetes}).Parser().Parse("a.toml", text); d != nil {
		t.Error("a cluster without a map knows the zone")
	}
}

func TestSettingsSayWhichSecretsTheParserOfAllLetsDescriptorsName(t *testing.T) {
	text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\nsecrets = { TOKEN = \"registry/token\" }\n")
	for _, engine := range []string{executor.EngineLocal, executor.EngineKubernetes} {
		s := executor.Settings{Engine: engine}
		_, faults := s.Parser().Parse("a.toml", text)
		if len(faults) != 1 || faults[0].Code != "BAI0046" || faults[0].Line != 8 || !strings.Contains(faults[0].Remedy, "executor.pods.allow") {
			t.Errorf("%s, without an entry: %v", engine, faults)
		}
		s.Pods.Allow = map[string]descriptors.Allowlist{"vision": {Secrets: []string{"registry"}}}
		if d, _ := s.Parser().Parse("a.toml", text); d != nil {
			t.Errorf("%s: another namespace's entry holds", engine)
		}
		d, faults := s.Parser().In("vision").Parse("a.toml", text)
		if d == nil {
			t.Fatalf("%s, with an entry: %v", engine, faults)
		}
		if _, err := wiring.NewRenderer(s, false).Render(d, text, false); err != nil {
			t.Errorf("%s: rendered: %v", engine, err)
		}
		if _, err := wiring.NewPlanner(s, nil).Plan(t.Context(), d, text, false); err != nil {
			t.Errorf("%s: planned: %v", engine, err)
		}
	}
}

func TestAnEngineThatNoExecutorHasIsRefusedAtSubmit(t *testing.T) {
	for engine, has := range map[string]string{executor.EngineLocal: "default local", executor.EngineKubernetes: "default kubernetes"} {
		for _, named := range []string{"default", "local", "kubernetes", "aws.sagemaker"} {
			text := []byte("spec_version = \"1.0\"\n[info]\ndescription = \"x\"\nexecution_engine = \"" + named + "\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n")
			d, faults := executor.Settings{Engine: engine}.Parser().Parse("a.toml", text)
			if want := strings.Contains(has, named); (d != nil) != want {
				t.Errorf("%s on a platform of %s: %v", named, engine, faults)
			}
		}
	}
}

func TestAProgramInCodeThatIsSentAlongIsNotLookedForOnTheMachine(t *testing.T) {
	const frame = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n[ml]\nbenchmark_code = \"env A=1 $(BAI_SCRIPTS_PATH)/run.sh\"\n"
	for name, tt := range map[string]struct {
		text     string
		withCode bool
	}{
		"the descriptor asks for it":     {text: frame + "[ml.script]\nscript = \"x.tar\"\n"},
		"the command line sends it":      {text: frame, withCode: true},
		"code of which nothing is known": {text: frame},
	} {
		t.Run(name, func(t *testing.T) {
			d, faults := executor.Settings{}.Parser().Parse("a.toml", []byte(tt.text))
			if d == nil {
				t.Fatal(faults)
			}
			planned, err := wiring.NewPlanner(executor.Settings{}, nil).Plan(t.Context(), d, []byte(tt.text), tt.withCode)
			if err != nil {
				t.Fatal(err)
			}
			q := preflight.NewInquiry(preflight.Requirements{Scope: planned.Scope, Objects: planned.Objects}, preflight.Settings{})
			if diff := cmp.Diff([]string{"env"}, q.Programs); diff != "" {
				t.Errorf("programs that the machine must have (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheObjectsOfARunAreRenderedAlike(t *testing.T) {
	text := []byte("spec_version = \"0.1.0\"\n[info]\ndescription = \"hello\"\n[hardware]\ninstance_type = \"t3.small\"\n[env]\ndocker_image = \"alpine\"\n[ml]\nbenchmark_code = \"echo hello\"\n")
	d, faults := descriptors.Parse("a.toml", text)
	if d == nil {
		t.Fatal(faults)
	}
	var last string
	for range 3 {
		manifest, err := wiring.NewRenderer(executor.Settings{}, false).Render(d, text, false)
		if err != nil || !strings.Contains(string(manifest), "kind: Job") || last != "" && last != string(manifest) {
			t.Fatalf("rendered %q, %v", manifest, err)
		}
		last = string(manifest)
	}
}
