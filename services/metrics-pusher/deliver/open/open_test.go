package open_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/open"
)

type settings struct{ Destinations open.Settings }

func (s *settings) Validate() error { return s.Destinations.Validate() }

// load reads settings from text.
func load(t *testing.T, text string) (open.Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bai.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var s settings
	err := config.Load(path, &s)
	return s.Destinations, err
}

func TestTheDestinationsOfTheSettingsAreOpened(t *testing.T) {
	s, err := load(t, `
[destinations.lake]
kind = "objects"
url = "file:///srv/lake"
format = "jsonl"
[destinations.warehouse]
kind = "sql"
driver = "postgres"
dsn_file = "/etc/bai/warehouse"
table = "bench.results"
namespaces = ["perf"]
[destinations.tracking]
kind = "mlflow"
url = "https://mlflow:5000"
experiment = "speed tests"
token_file = "/etc/bai/mlflow"
`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"lake": nil, "warehouse": {"perf"}, "tracking": nil}, s.Namespaces()); diff != "" {
		t.Error(diff)
	}
	all, end, err := open.Destinations(t.Context(), s, nil, zap.NewNop())
	if err != nil || len(all) != 3 || all["lake"] == nil || all["warehouse"] == nil || all["tracking"] == nil {
		t.Errorf("%v, %v", all, err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestSettingsThatCannotWorkAreNamed(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"no kind":         {"", `destinations.d.kind: "", want objects, sql or mlflow`},
		"a format":        {"kind = \"objects\"\nurl = \"file:///srv\"\nformat = \"xml\"", `destinations.d.format: "xml", want csv or jsonl`},
		"a relative file": {"kind = \"sql\"\ndriver = \"sqlite\"\ndsn_file = \"x\"\ntable = \"t\"", `destinations.d.dsn_file: "x" is not the absolute path of a file`},
		"a table for objects": {
			"kind = \"objects\"\nurl = \"file:///srv\"\ntable = \"t\"", `destinations.d.table: kind objects has no table`,
		},
		"a URL for a table": {
			"kind = \"sql\"\ndriver = \"sqlite\"\ndsn_file = \"/x\"\ntable = \"t\"\nurl = \"file:///srv\"", `destinations.d.url: kind sql has no url`,
		},
		"a table for MLflow": {
			"kind = \"mlflow\"\nurl = \"https://x\"\nexperiment = \"e\"\ntable = \"t\"", `destinations.d.table: kind mlflow has no table`,
		},
		"an experiment for a table": {
			"kind = \"sql\"\ndriver = \"sqlite\"\ndsn_file = \"/x\"\ntable = \"t\"\nexperiment = \"e\"", `destinations.d.experiment: kind sql has no experiment`,
		},
		"MLflow without an experiment": {
			"kind = \"mlflow\"\nurl = \"https://x\"", `destinations.d.experiment: "", want the name of an experiment of at most 500 bytes`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := load(t, "[destinations.d]\n"+tt.text)
			if err := s.Validate(); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestTwoDestinationsThatWriteTheSameObjectsAreRefused(t *testing.T) {
	const a, b = "[destinations.a]\nkind = \"objects\"\n", "[destinations.b]\nkind = \"objects\"\n"
	const clash = "destinations.b.url: destinations.a writes objects with the same names there, and a name is written once: " +
		"take another URL or format"
	for name, tt := range map[string]struct{ text, want string }{
		"one folder":                  {a + "url = \"file:///srv\"\n" + b + "url = \"file:///srv\"", clash},
		"one folder, with a slash":    {a + "url = \"file:///srv/lake/\"\n" + b + "url = \"file:///srv//lake\"\nformat = \"csv\"", clash},
		"one prefix":                  {a + "url = \"s3://x/y\"\nformat = \"jsonl\"\n" + b + "url = \"s3://x/y/\"\nformat = \"jsonl\"", clash},
		"one namespace of both":       {a + "url = \"s3://x\"\nnamespaces = [\"p\", \"q\"]\n" + b + "url = \"s3://x/\"\nnamespaces = [\"r\", \"q\"]", clash},
		"namespaces that are others":  {a + "url = \"s3://x\"\nnamespaces = [\"p\"]\n" + b + "url = \"s3://x\"\nnamespaces = [\"q\"]", ""},
		"formats that are others":     {a + "url = \"s3://x\"\n" + b + "url = \"s3://x\"\nformat = \"jsonl\"", ""},
		"prefixes that are others":    {a + "url = \"s3://x/y\"\n" + b + "url = \"s3://x/z\"", ""},
		"buckets that are others":     {a + "url = \"s3://x/y\"\n" + b + "url = \"s3://z/y\"", ""},
		"a bucket, and a folder":      {a + "url = \"s3://srv/x\"\n" + b + "url = \"file:///srv/x\"", ""},
		"URLs that cannot be read":    {a + "url = \"x\"\n" + b + "url = \"x\"", "destinations.a.url: \"x\" is not a URL: file:///folder is one\ndestinations.b.url: \"x\" is not a URL: file:///folder is one"},
		"one server for two projects": {strings.ReplaceAll(a+"experiment = \"e\"\nurl = \"https://x\"\n"+b+"experiment = \"e\"\nurl = \"https://x\"", "objects", "mlflow"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := load(t, tt.text)
			got := ""
			if err := s.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
