// Package kibana_test runs the query of every panel that Kibana is given on a real
// Elasticsearch with data of real runs, and draws the answers with the versions of
// vega and vega-lite that Kibana ships.
package kibana_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/internal/store/sqlite"
	"github.com/benchmark-ai/bai/services/test/testbed/elasticsearch"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/process"
)

// panel is a picture on a dashboard.
type panel struct {
	id    string
	index string
	body  any            // of the search
	from  any            // where in the answer the rows are
	draw  map[string]any // the rest of its specification
}

func TestEveryPanelIsDrawnFromWhatRunsBrought(t *testing.T) {
	server := elasticsearch.Start(t)
	dir := t.TempDir()
	prefix := fmt.Sprintf("panels%d", time.Now().UnixNano())
	copyToElasticsearch(t, runPlatform(t, dir), server.URL, prefix)
	draw := drawer(t)
	pictures := os.Getenv("BAI_PICTURES") // a folder to look at them in
	if pictures == "" {
		pictures = dir
	}
	for _, p := range panels(t) {
		t.Run(p.id, func(t *testing.T) {
			p.draw["data"] = map[string]any{"format": p.from, "values": ask(t, server.URL, prefix, p)}
			marks, warnings := draw(t, p.draw, filepath.Join(pictures, p.id+".svg"))
			if marks == 0 || len(warnings) > 0 {
				t.Errorf("%d marks are drawn; %q", marks, warnings)
			}
			picture, err := os.ReadFile(filepath.Join(pictures, p.id+".svg"))
			if err != nil || bytes.Contains(picture, []byte("undefined")) || bytes.Contains(picture, []byte("NaN")) {
				t.Errorf("what is drawn is not what was measured: %v", err)
			}
		})
	}
}

// panels are those that are shipped.
func panels(t *testing.T) []panel {
	t.Helper()
	var out []panel
	for _, o := range shipped(t) {
		if o.Type == "visualization" {
			out = append(out, panelOf(t, o))
		}
	}
	if len(out) < 12 {
		t.Fatalf("%d panels, want 12 or more", len(out))
	}
	return out
}

// panelOf reads the panel that an object is.
func panelOf(t *testing.T, o object) panel {
	t.Helper()
	var state struct{ Params struct{ Spec string } }
	var data struct {
		Data struct {
			Format any
			URL    struct {
				Index string
				Body  any
			}
		}
	}
	p := panel{id: strings.TrimPrefix(o.ID, "bai-")}
	err := json.Unmarshal([]byte(o.Attributes.VisState), &state)
	if err := errors.Join(err, json.Unmarshal([]byte(state.Params.Spec), &p.draw), json.Unmarshal([]byte(state.Params.Spec), &data)); err != nil {
		t.Fatalf("%s: %v", o.ID, err)
	}
	p.index, p.body, p.from = data.Data.URL.Index, data.Data.URL.Body, data.Data.Format
	return p
}

// ask sends a panel's query, with Kibana's replacements.
func ask(t *testing.T, server, prefix string, p panel) any {
	t.Helper()
	now := time.Now()
	body := substitute(p.body, map[string]any{
		"%timefilter%":   map[string]any{"gte": now.Add(-time.Hour).Format(time.RFC3339), "lte": now.Add(time.Minute).Format(time.RFC3339)},
		"%autointerval%": "1s",
	})
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	index := prefix + strings.TrimPrefix(p.index, "bai")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+"/"+index+"/_search", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", text, resp.Status, errors.Join(err, errors.New(string(answer))))
	}
	var out any
	if err := json.Unmarshal(answer, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// substitute returns v with the values that Kibana puts in place of its words: those
// of the dashboard's filters are nothing here.
func substitute(v any, values map[string]any) any {
	switch v := v.(type) {
	case map[string]any:
		for word, value := range values {
			if _, ok := v[word]; ok {
				return value
			}
		}
		out := make(map[string]any, len(v))
		for key, one := range v {
			out[key] = substitute(one, values)
		}
		return out
	case []any:
		var out []any
		for _, one := range v {
			if word, ok := one.(string); !ok || !strings.HasPrefix(word, "%dashboard_context") {
				out = append(out, substitute(one, values))
			}
		}
		return out
	default:
		return v
	}
}

// drawer returns a function that draws specifications, with programs that it fetches
// once.
func drawer(t *testing.T) func(t *testing.T, spec map[string]any, out string) (marks int, warnings []string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("drawing needs Node.js 18 or later: %v", err)
		}
	}
	home := vega(t)
	return func(t *testing.T, spec map[string]any, out string) (int, []string) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"spec": spec, "out": out})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "node", "render.mjs")
		cmd.Dir, cmd.Stdin = home, bytes.NewReader(text)
		output, err := cmd.Output()
		var drawn struct {
			Marks    int
			Warnings []string
		}
		if err == nil {
			err = json.Unmarshal(output, &drawn)
		}
		if err != nil {
			var failed *exec.ExitError
			errors.As(err, &failed)
			t.Fatalf("draw: %v\n%s", err, failed.Stderr)
		}
		return drawn.Marks, drawn.Warnings
	}
}

// vega returns the folder with vega and vega-lite, named by a digest of its inputs.
func vega(t *testing.T) string {
	t.Helper()
	root, err := kit.Root()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	files := []string{"package.json", "package-lock.json", "render.mjs"}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("render", name))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = sum.Write(text)
	}
	home := filepath.Join(root, "bin", "testbed", fmt.Sprintf("vega-%x", sum.Sum(nil)[:6]))
	if _, err := os.Stat(home); err == nil {
		return home
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(home), "vega-") //nolint:usetesting // it is renamed within its folder
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := os.CopyFS(fresh, os.DirFS("render")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = fresh
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fetch vega: %v\n%s", err, out)
	}
	if err := os.Rename(fresh, home); err != nil && !errors.Is(err, fs.ErrExist) { // another process was faster
		t.Fatal(err)
	}
	return home
}

// runPlatform runs benchmarks on a platform, the last of which is not over, and returns
// its data directory. The platform ends with the test.
func runPlatform(t *testing.T, dir string) string {
	t.Helper()
	bin, data := filepath.Join(dir, "bin"), filepath.Join(dir, "data")
	if err := process.Build(bin); err != nil {
		t.Fatal(err)
	}
	platform := exec.Command(filepath.Join(bin, "bai"), "standalone", "--data", data, "--listen", "127.0.0.1:0", "--slots", "2")
	out, err := platform.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := platform.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(platform.Process.Signal(syscall.SIGTERM), platform.Wait()); err != nil {
			t.Errorf("end the platform: %v", err)
		}
	})
	server := listening(t, out)
	second := strings.Replace(training, `version = "v1"`, `version = "v2"`, 1)
	for i, text := range []string{training, training, second, second, failing} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "baictl"), "--server", server, "--owner", []string{"ann", "bob"}[i%2], "run", "-")
		cmd.Stdin, cmd.Env = strings.NewReader(text), []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		if output, err := cmd.CombinedOutput(); (err == nil) != (i < 4) {
			t.Fatalf("run %d: %v\n%s", i, err, output)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "baictl"), "--server", server, "submit", "-")
	cmd.Stdin, cmd.Env = strings.NewReader(lasting), []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("submit: %v\n%s", err, output)
	}
	return data
}

// listening reads where a platform listens.
func listening(t *testing.T, out io.Reader) string {
	t.Helper()
	s := bufio.NewScanner(out)
	for s.Scan() {
		if m := regexp.MustCompile(`\blistens on (\S+)`).FindStringSubmatch(s.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m[1]
		}
	}
	t.Fatal("the platform does not listen")
	return ""
}

const head = `spec_version = "0.1.0"
[info]
description = "a small training"
labels = { task_name = "training", version = "v1" }
[hardware]
instance_type = "t3.small"
price_per_hour = "3.06 USD"
[env]
docker_image = "debian:12-slim"
[ml]
benchmark_code = '''
#!/bin/sh
`

// training has a price, and is slower than its alarm allows.
const training = head + `for step in 1 2 3 4 5 6 7 8; do
  echo "{\"loss\": $((100 / step)), \"@step\": $step}" >>"$BENCHMARK_AI_FILE"
  echo "speed=$((90 + step % 3 + $$ % 5)) images/s"
  sleep 0.3
done
'''
` + rule

// rule is the metric and the alarm of all runs of the task: a run without the alarm would end its incidents.
const rule = `[[output.metrics]]
name = "speed"
units = "1/s"
direction = "higher"
pattern = 'speed=(\d+)'
[[alarms]]
metric = "speed"
below = 1000
for = 1
`

const failing = head + "echo no such file >&2; exit 3\n'''\n" + rule

const lasting = head + "sleep 600\n'''\n" + rule

// copyToElasticsearch copies a platform's stored runs to Elasticsearch.
func copyToElasticsearch(t *testing.T, data, server, prefix string) {
	t.Helper()
	from, err := sqlite.Open(t.Context(), filepath.Join(data, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	to, err := elastic.Open(elastic.Settings{Addresses: []string{server}, Prefix: prefix, Refresh: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = to.Close() }()
	runs, _, err := from.Runs(t.Context(), store.RunFilter{}, "", 100)
	if err != nil || len(runs) != 6 {
		t.Fatalf("%d runs, want 6: %v", len(runs), err)
	}
	for _, r := range runs {
		if err := copyRun(t.Context(), from, to, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyIncidents(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(server+"/"+prefix+"-*/_refresh", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// copyIncidents copies the incidents of the runs, which are open, and for each another one, which is a change and over.
func copyIncidents(ctx context.Context, from *sqlite.Store, to *elastic.Store) error {
	docs, err := awaitIncidents(ctx, from)
	for _, d := range docs {
		i, fault := store.Decode[incident.Incident](d)
		ended, size := i, store.Float(-0.08)
		ended.ID, ended.State, ended.Kind, ended.Cause, ended.Magnitude = "another", incident.Resolved, "step", incident.CauseRegression, &size
		err = errors.Join(err, fault, to.PutIncident(ctx, i.Record(d.Version)), to.PutIncident(ctx, ended.Record(1)))
	}
	return err
}

// awaitIncidents waits for the documents of incidents.
func awaitIncidents(ctx context.Context, from *sqlite.Store) ([]store.Doc, error) {
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		docs, err := from.Docs(ctx, store.KindIncident, "", 10)
		if len(docs) > 0 || err != nil {
			return docs, err
		}
		if time.Now().After(end) {
			return nil, errors.New("the runs have no incident after 5 minutes")
		}
	}
}

// awaitSummary waits for a document of a run that has succeeded; others may have none.
func awaitSummary(ctx context.Context, from *sqlite.Store, kind store.Kind, r store.Run) (store.Doc, error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		d, err := from.Doc(ctx, kind, r.ID)
		if errors.Is(err, store.ErrNotFound) && r.Outcome != event.Succeeded {
			return store.Doc{}, nil
		}
		if err == nil || !errors.Is(err, store.ErrNotFound) || time.Now().After(end) {
			d.Version = 0
			return d, err
		}
	}
}

// awaitPoints waits for the points of a run that has succeeded; others may have none.
func awaitPoints(ctx context.Context, from *sqlite.Store, r store.Run) ([]store.RunPoints, error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		all, err := from.RunPoints(ctx, []string{r.ID}, nil)
		if len(all) == 1 || err != nil || r.Outcome != event.Succeeded {
			return all, err
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("run %s has no points after a minute", r.ID)
		}
	}
}

// copyResults copies the summaries, the environment and the points of a run.
func copyResults(ctx context.Context, from *sqlite.Store, to *elastic.Store, r store.Run) error {
	for _, kind := range []store.Kind{store.KindEnvironment, store.KindSummary} { // points are stored with environments
		d, err := awaitSummary(ctx, from, kind, r)
		if err != nil {
			return err
		}
		if len(d.Value) == 0 {
			continue
		}
		if err := to.CreateDoc(ctx, d); err != nil {
			return err
		}
	}
	points, err := awaitPoints(ctx, from, r)
	for _, p := range points {
		err = errors.Join(err, to.PutPoints(ctx, p))
	}
	return err
}

func copyRun(ctx context.Context, from *sqlite.Store, to *elastic.Store, r store.Run) error {
	changes, err := from.Changes(ctx, r.ID, 0, 1000)
	if err != nil {
		return err
	}
	for _, c := range changes {
		r.Revision = c.Revision
		if err := to.PutRun(ctx, r, c); err != nil {
			return err
		}
	}
	if err := copyResults(ctx, from, to, r); err != nil {
		return err
	}
	samples, _, err := from.Samples(ctx, store.SampleQuery{Run: r.ID}, "", 10_000)
	if err != nil {
		return err
	}
	for _, s := range samples {
		if err := to.AppendSamples(ctx, []store.Samples{{Origin: s.Origin, Samples: []event.Sample{s.Sample}}}); err != nil {
			return err
		}
	}
	lines, _, err := from.Lines(ctx, store.LineQuery{Run: r.ID}, "", 10_000)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if err := to.AppendLines(ctx, []store.Lines{{Origin: l.Origin, Lines: []event.Line{l.Line}}}); err != nil {
			return err
		}
	}
	return nil
}
