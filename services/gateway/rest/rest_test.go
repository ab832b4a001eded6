package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/gateway/rest"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/eventtest"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

const valid = `spec_version = "0.1.0"
[info]
description = "hello"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "alpine"
[ml]
benchmark_code = "echo hello"
`

// fixture is a gateway on its own port.
type fixture struct {
	t       *testing.T
	addr    string
	bus     *eventtest.Bus
	client  baiv1.RunServiceClient
	objects string
	stop    func()
}

// token returns the token of a run.
func token(run string) string { return "token-of-" + run }

func newFixture(t *testing.T, s gateway.Settings) *fixture {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, addr: l.Addr().String(), bus: eventtest.NewBus(t), objects: t.TempDir()}
	objects, err := blob.Open(t.Context(), blob.Settings{URL: "file://" + w.objects})
	if err != nil {
		t.Fatal(err)
	}
	parts := gateway.New(s, gateway.Deps{
		Bus: w.bus, Store: storetest.Open(t), Listener: l, Objects: objects, Token: token, OpenAPI: []byte(`{"openapi": "3"}`), Entropy: rand.Reader, Log: zap.NewNop(),
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run.All(ctx, parts) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, objects.Close()); err != nil {
			t.Errorf("stopped with %v, want nil", err)
		}
	})
	conn, err := grpc.NewClient(w.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		w.stop()
	})
	w.client = baiv1.NewRunServiceClient(conn)
	return w
}

// request sends a request and returns the response.
func (w *fixture) request(method, path string, body io.Reader, headers ...string) (int, http.Header, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.addr+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end below
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// submit submits a valid descriptor over HTTP.
func (w *fixture) submit() string {
	w.t.Helper()
	code, _, text := w.request(http.MethodPost, "/v1/runs", strings.NewReader(valid), "Content-Type", "application/toml", "Bai-User", "ann")
	var resp struct {
		RunID string `json:"runId"`
	}
	if err := json.Unmarshal([]byte(text), &resp); err != nil || code != http.StatusOK || resp.RunID == "" {
		w.t.Fatalf("submit: %d %s", code, text)
	}
	return resp.RunID
}

func (w *fixture) finishRun(id string) {
	w.t.Helper()
	h := event.NewHeader(event.Derive(id, "finished"), id, "default", "ann", time.Now())
	if err := w.bus.Publish(w.t.Context(), event.Finished{Header: h, Outcome: event.Succeeded, Message: "done"}); err != nil {
		w.t.Fatal(err)
	}
}

func TestARunIsSubmittedWatchedAndCanceledOverHTTP(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	body, err := json.Marshal(map[string]any{
		"descriptorToml": base64.StdEncoding.EncodeToString([]byte(valid)), "labels": map[string]string{"a": "b"}, "name": "nightly",
		"overrides": []map[string]string{{"path": "info.description", "value": "changed"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	code, header, text := w.request(http.MethodPost, "/v1/runs", bytes.NewReader(body), "Content-Type", "application/json", "Bai-User", "ann")
	if code != http.StatusOK || header.Get("Content-Type") != "application/json" || !strings.Contains(text, "runId") {
		t.Fatalf("submit: %d %s", code, text)
	}
	code, _, text = w.request(http.MethodGet, "/v1/runs/nightly?owner=ann", nil)
	if code != http.StatusOK || !strings.Contains(text, `"owner":"ann"`) || !strings.Contains(text, `"overrides"`) {
		t.Errorf("get: %d %s", code, text)
	}
	var got struct {
		Run struct {
			ID             string `json:"id"`
			DescriptorTOML string `json:"descriptorToml"`
		} `json:"run"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || !strings.Contains(got.Run.DescriptorTOML, `description = "changed"`) {
		t.Errorf("the descriptor that is run is %q", got.Run.DescriptorTOML)
	}
	code, _, text = w.request(http.MethodPost, "/v1/runs/nightly:cancel", strings.NewReader(`{"owner": "ann"}`), "Content-Type", "application/json")
	if code != http.StatusOK || !strings.Contains(text, "PHASE_CANCELING") {
		t.Errorf("cancel: %d %s", code, text)
	}
	w.finishRun(got.Run.ID)
	code, header, text = w.request(http.MethodGet, "/v1/runs/"+got.Run.ID+":watch", nil)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if code != http.StatusOK || header.Get("Content-Type") != "application/x-ndjson" || len(lines) != 3 || !strings.Contains(lines[2], "OUTCOME_SUCCEEDED") {
		t.Errorf("watch: %d %s", code, text)
	}
	code, _, text = w.request(http.MethodGet, "/v1/runs?labels[a]=b&phases=PHASE_FINISHED&text=NIGHT&order=ORDER_OLDEST_FIRST", nil)
	if code != http.StatusOK || !strings.Contains(text, got.Run.ID) {
		t.Errorf("list: %d %s", code, text)
	}
}

func TestEveryPathAnswers(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	id := w.submit()
	for path, want := range map[string]string{
		"/v1/runs":                 id,
		"/v1/runs/" + id + "/logs": `"cursor"`,
		"/v1/runs/" + id + "/logs?search=no%20line": `"cursor"`,
		"/v1/runs/" + id + "/metrics":               `"runId"`,
		"/v1/metrics?filter.text=" + id[:5]:         `"cursor"`,
		"/v1/metrics?filter.labels[task_name]=none": `"cursor"`,
		"/v1/runs/" + id + "/artifacts":             `{}`,
		"/v1/version":                               fmt.Sprintf(`"revision":%d`, baiv1.Revision),
		"/v1/descriptors":                           `{}`,
		"/v1/incidents":                             `{}`,
		"/v1/incidents?states=firing&open=true":     `{}`,
		"/v1/mutes?ended=true":                      `{}`,
		"/v1/notices?receiver=mail":                 `{}`,
		"/v1/openapi.json":                          `"openapi"`,
		"/healthz":                                  "ok",
		"/readyz":                                   "ready",
	} {
		code, _, text := w.request(http.MethodGet, path, nil)
		if code != http.StatusOK || !strings.Contains(strings.ReplaceAll(text, `": `, `":`), want) && !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

func TestAMuteIsMadeAndRemovedOverHTTP(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	body := fmt.Sprintf(`{"task": "rates", "reason": "moving", "until": %q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	code, _, text := w.request(http.MethodPost, "/v1/mutes", strings.NewReader(body), "Content-Type", "application/json", "Bai-User", "ann")
	var made struct {
		Mute struct{ ID, Task, User string }
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil || code != http.StatusOK || made.Mute.Task != "rates" || made.Mute.User != "ann" {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	if code, _, text := w.request(http.MethodGet, "/v1/mutes", nil); code != http.StatusOK || !strings.Contains(text, made.Mute.ID) {
		t.Errorf("%d %s, want mute %s", code, text, made.Mute.ID)
	}
	for _, want := range []string{"true", "{}"} {
		if code, _, text := w.request(http.MethodDelete, "/v1/mutes/"+made.Mute.ID[:6], nil); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d %s, want %s", code, text, want)
		}
	}
}

// failure is an error as clients see it.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Details []struct {
		Type    string `json:"@type"`
		File    string `json:"file"`
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Path    string `json:"path"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"details"`
}

func TestFaultsAreToldWithTheirPlaces(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	code, _, text := w.request(http.MethodPost, "/v1/runs", strings.NewReader(strings.Replace(valid, "docker_image", "docker_imag", 1)), "Content-Type", "application/toml; charset=utf-8")
	var f failure
	if err := json.Unmarshal([]byte(text), &f); err != nil || code != http.StatusBadRequest || f.Code != 3 || len(f.Details) == 0 {
		t.Fatalf("%d %s", code, text)
	}
	if d := f.Details[len(f.Details)-1]; d.Type != "type.googleapis.com/bai.v1.Fault" || d.Line != 7 || d.Column != 1 || d.Path != "env.docker_imag" || d.File != "descriptor.toml" || !strings.HasPrefix(d.Code, "BAI") {
		t.Errorf("the last fault is %+v", d)
	}
}

func TestWhatIsWrongIsSaidInJSON(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	big := strings.Repeat("x", 2<<20)
	for name, tt := range map[string]struct {
		method, path, body string
		headers            []string
		code               int
		want               string
	}{
		"a run that does not exist":            {"GET", "/v1/runs/01k8h4fzqh3v7x9y2m5n8p0r4t", "", nil, 404, "does not exist"},
		"an incident that does not exist":      {"GET", "/v1/incidents/0a1b2c", "", nil, 404, "incident 0a1b2c of team default does not exist"},
		"an ID that is too short":              {"GET", "/v1/incidents/0a1b2", "", nil, 400, "incident"},
		"a state that does not exist":          {"GET", "/v1/incidents?states=FIRING", "", nil, 400, "FIRING"},
		"an ack without a reason":              {"POST", "/v1/incidents/0a1b2c:ack", "{}", []string{"Content-Type", "application/json"}, 400, "reason"},
		"a mute without an end":                {"POST", "/v1/mutes", `{"task": "x", "reason": "y"}`, []string{"Content-Type", "application/json"}, 400, "until"},
		"a mute of everything by mistake":      {"POST", "/v1/mutes", `{"reason": "y", "until": "2999-01-01T00:00:00Z"}`, []string{"Content-Type", "application/json"}, 400, "task"},
		"a page of notices that was not given": {"GET", "/v1/notices?pageToken=x", "", nil, 400, "page_token"},
		"a path that does not exist":           {"GET", "/v2/runs", "", nil, 404, "openapi.json"},
		"a method that does not exist":         {"DELETE", "/v1/runs", "", nil, 405, "does not take DELETE: use GET or POST"},
		"a parameter that does not exist":      {"GET", "/v1/runs?labels=x", "", nil, 400, "parameter \"labels\" does not exist: use"},
		"a parameter that is misspelt":         {"GET", "/v1/runs?phase=PHASE_RUNNING", "", nil, 400, "phases"},
		"a word that does not exist":           {"GET", "/v1/runs?phases=RUNNING", "", nil, 400, "RUNNING"},
		"the number of a word":                 {"GET", "/v1/runs?order=1", "", nil, 400, "ORDER_OLDEST_FIRST"},
		"a number that is none":                {"GET", "/v1/runs?pageSize=x", "", nil, 400, "pageSize"},
		"a field that does not exist":          {"POST", "/v1/runs", `{"descriptor": "x"}`, []string{"Content-Type", "application/json"}, 400, "descriptor"},
		"what is not JSON":                     {"POST", "/v1/runs", `{`, []string{"Content-Type", "application/json"}, 400, ""},
		"a form, as a page could send it":      {"POST", "/v1/runs", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "content type"},
		"text, as a page could send it":        {"POST", "/v1/runs", `{}`, []string{"Content-Type", "text/plain"}, 415, "content type"},
		"a body without a type":                {"POST", "/v1/runs", `{}`, nil, 415, "content type"},
		"a body that is too large":             {"POST", "/v1/runs", big, []string{"Content-Type", "application/json"}, 413, "more than"},
		"a form that is put":                   {"PUT", "/v1/baselines/x", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "content type"},
		"text that is put":                     {"PUT", "/v1/baselines/x", `{}`, []string{"Content-Type", "text/plain"}, 415, "content type"},
		"a body without a type that is put":    {"PUT", "/v1/baselines/x", `{}`, nil, 415, "content type"},
		"a body that is put and is too large":  {"PUT", "/v1/baselines/x", big, []string{"Content-Type", "application/json"}, 413, "more than"},
		"a descriptor as a baseline":           {"PUT", "/v1/baselines/x", valid, []string{"Content-Type", "application/toml"}, 400, "takes no descriptor"},
		"a deletion with a body":               {"DELETE", "/v1/mutes/x", big, []string{"Content-Type", "application/json"}, 413, "more than"},
		"a question with a body":               {"GET", "/v1/runs", big, []string{"Content-Type", "application/json"}, 413, "more than"},
		"a descriptor where none is wanted":    {"POST", "/v1/runs/x:cancel", valid, []string{"Content-Type", "application/toml"}, 400, "takes no descriptor"},
		"a client that needs a newer server":   {"GET", "/v1/runs", "", []string{"Bai-Revision", "99"}, 400, "needs revision 99"},
		"a page of another origin":             {"GET", "/v1/runs", "", []string{"Origin", "http://evil.example"}, 403, "evil.example"},
		"a page of another port":               {"POST", "/v1/runs/x:cancel", "{}", []string{"Sec-Fetch-Site", "same-site", "Content-Type", "application/json"}, 403, "another origin"},
		"a sandboxed page":                     {"GET", "/v1/runs", "", []string{"Origin", "null"}, 403, "null"},
		"a name that was rebound":              {"GET", "/v1/runs", "", []string{"Host", "evil.example:7070"}, 403, "evil.example"},
		"a question of a browser in advance":   {"OPTIONS", "/v1/runs", "", []string{"Origin", "http://evil.example"}, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, header, text := w.request(tt.method, tt.path, strings.NewReader(tt.body), tt.headers...)
			var f failure
			if err := json.Unmarshal([]byte(text), &f); err != nil || code != tt.code || f.Code == 0 || !strings.Contains(f.Message, tt.want) || strings.Contains(f.Message, "rpc error") || strings.Contains(f.Message, "proto:") {
				t.Errorf("%d %s, want %d with %q", code, text, tt.code, tt.want)
			}
			if cors := header.Get("Access-Control-Allow-Origin"); cors != "" {
				t.Errorf("allows %s", cors)
			}
		})
	}
}

func TestAPathSaysWhichMethodsItTakes(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	for path, allow := range map[string]string{
		"/v1/runs": "GET, POST", "/v1/runs/x": "GET", "/v1/runs/x:cancel": "GET, POST", "/v1/schedules/x": "GET, DELETE", "/v1/mutes": "GET, POST", "/v1/mutes/x": "DELETE", "/v1/descriptors:get": "GET",
		"/v1/runs/x/artifacts/a": "GET, HEAD, PUT", "/v1/runs/x/objects/a": "GET", "/v1/scripts/ab": "GET, PUT",
		"/healthz": "GET, HEAD", "/readyz": "GET, HEAD", "/v1/openapi.json": "GET, HEAD",
	} {
		for _, method := range []string{"TRACE", "PATCH", "CONNECTED"} {
			code, header, text := w.request(method, path, nil)
			var f failure
			if err := json.Unmarshal([]byte(text), &f); err != nil || code != http.StatusMethodNotAllowed || header.Get("Allow") != allow || f.Code != int(codes.Unimplemented) {
				t.Errorf("%s %s: %d, Allow %q (want %q): %s", method, path, code, header.Get("Allow"), allow, text)
			}
		}
	}
	for _, path := range []string{"/", "/v2/runs", "/v1/runs/x:nothing/y"} {
		if code, header, text := w.request("TRACE", path, nil); code != http.StatusNotFound || header.Get("Allow") != "" {
			t.Errorf("TRACE %s: %d, Allow %q: %s", path, code, header.Get("Allow"), text)
		}
	}
}

func TestAServerThatHasANameIsCalledByIt(t *testing.T) {
	w := newFixture(t, gateway.Settings{REST: rest.Settings{Hosts: []string{"bai.example"}}})
	for host, want := range map[string]int{"bai.example": 200, "BAI.example.:80": 200, "localhost:7070": 200, "x.localhost": 200, "[::1]:7070": 200, "10.0.0.1": 200, "other.example": 403, "bai.example.evil": 403} {
		if code, _, text := w.request(http.MethodGet, "/v1/version", nil, "Host", host); code != want {
			t.Errorf("%s: %d %s, want %d", host, code, text, want)
		}
	}
}

func TestAFileIsKeptByItsRunAndReadByAnybody(t *testing.T) {
	w := newFixture(t, gateway.Settings{Artifacts: artifact.Settings{MaxSize: 1 << 20}})
	id := w.submit()
	path := "/v1/runs/" + id + "/artifacts/1/benchmark-0/results/a%20b.json"
	for i, tt := range []struct {
		path, token, body string
		code              int
	}{
		{path, "", "hello", 401},
		{path, token("other"), "hello", 403},
		{path, token(id), "hello", 201},
		{path, token(id), "hello", 200},
		{path, token(id), "hallo", 409},
		{"/v1/runs/" + id + "/artifacts/1/benchmark-0/../../x", token(id), "hello", 400},
		{"/v1/runs/" + id + "/artifacts/1/benchmark-0/%2e%2e/x", token(id), "hello", 400},
		{"/v1/runs/" + id + "/artifacts/x", token(id), "hello", 400},
		{"/v1/runs/01k8h4fzqh3v7x9y2m5n8p0r4t/artifacts/1/benchmark-0/x", token("01k8h4fzqh3v7x9y2m5n8p0r4t"), "hello", 404},
		{"/v1/runs/nightly/artifacts/1/benchmark-0/x", token("nightly"), "hello", 403},
		{"/v1/runs/" + id + "/artifacts/1/benchmark-0/large", token(id), strings.Repeat("x", 1<<20+1), 413},
	} {
		headers := []string{"Content-Type", "application/octet-stream"}
		if tt.token != "" {
			headers = append(headers, "Authorization", "Bearer "+tt.token)
		}
		if code, _, text := w.request(http.MethodPut, tt.path, strings.NewReader(tt.body), headers...); code != tt.code {
			t.Errorf("%d: put %s: %d %s, want %d", i, tt.path, code, text, tt.code)
		}
	}
	if code, _, text := w.request(http.MethodPut, path, strings.NewReader("hello"), "Authorization", "Bearer "+token(id), "Host", "bai.default.svc"); code != 200 {
		t.Errorf("put by another name: %d %s", code, text)
	}
	w.checkReadFile(id, path)
	odd := "/v1/runs/" + id + "/artifacts/1/benchmark-0/07:47%20C:%5Cx%0A"
	if code, _, text := w.request(http.MethodPut, odd, strings.NewReader("odd"), "Authorization", "Bearer "+token(id)); code != 201 {
		t.Errorf("put a name that only Linux allows: %d %s", code, text)
	}
	if code, _, text := w.request(http.MethodGet, odd, nil); code != 200 || text != "odd" {
		t.Errorf("a name that only Linux allows: %d %s", code, text)
	}
}

func TestAFileThatCannotBeReadIsAnsweredWithAnError(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	id := w.submit()
	path := "/v1/runs/" + id + "/artifacts/1/benchmark-0/a"
	if code, _, text := w.request(http.MethodPut, path, strings.NewReader("hello"), "Authorization", "Bearer "+token(id)); code != 201 {
		t.Fatalf("put: %d %s", code, text)
	}
	entries, err := os.ReadDir(w.objects)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(w.objects, e.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range []string{"", "bytes=3-"} {
		code, header, text := w.request(http.MethodGet, path, nil, "Range", span)
		var f failure
		if err := json.Unmarshal([]byte(text), &f); err != nil || code < 400 || f.Code == 0 || header.Get("Content-Range") != "" {
			t.Errorf("%q: %d %s, %v; want an error", span, code, text, header)
		}
	}
}

// checkReadFile reads a file with the content hello in every way.
func (w *fixture) checkReadFile(id, path string) {
	t := w.t
	t.Helper()
	for span, want := range map[string]string{"": "200 hello", "bytes=0-": "206 hello", "bytes=3-": "206 lo", "bytes=1-2": "200 hello"} {
		code, header, text := w.request(http.MethodGet, path, nil, "Range", span)
		if got := fmt.Sprint(code, " ", text); got != want || header.Get("Content-Type") != "application/octet-stream" || header.Get("Content-Disposition") != "attachment" {
			t.Errorf("get %q: %s with %v, want %s", span, got, header, want)
		}
	}
	if code, _, text := w.request(http.MethodGet, path, nil, "Range", "bytes=5-"); code != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("beyond the end: %d %s", code, text)
	}
	if code, header, text := w.request(http.MethodHead, path, nil); code != 200 || text != "" || header.Get("Content-Length") != "5" {
		t.Errorf("head: %d %q %v", code, text, header)
	}
	if code, _, _ := w.request(http.MethodGet, "/v1/runs/"+id+"/artifacts/1/benchmark-0/none", nil); code != 404 {
		t.Errorf("what is not there: %d", code)
	}
	_, _, text := w.request(http.MethodGet, "/v1/runs/"+id+"/artifacts", nil)
	if strings.Count(text, `"name"`) != 1 || !strings.Contains(text, "1/benchmark-0/results/a b.json") {
		t.Errorf("listed %s", text)
	}
}

func TestOfAnUploadThatIsCutNothingIsLeft(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	id := w.submit()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "PUT /v1/runs/%s/artifacts/1/benchmark-0/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nhello", id, token(id)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is being written", func() bool { return len(files(t, w.objects)) > 0 })
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left", func() bool { return len(files(t, w.objects)) == 0 })
	if _, _, text := w.request(http.MethodGet, "/v1/runs/"+id+"/artifacts", nil); strings.Contains(text, "name") {
		t.Errorf("listed %s", text)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "artifacts", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func eventually(t *testing.T, condition string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", condition)
		}
	}
}

func TestAClientThatSendsTooSlowlyIsLeft(t *testing.T) {
	w := newFixture(t, gateway.Settings{REST: rest.Settings{Stall: 100 * time.Millisecond}})
	id := w.submit()
	for name, begin := range map[string]string{
		"a call":     "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"a baseline": "PUT /v1/baselines/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"a file":     fmt.Sprintf("PUT /v1/runs/%s/artifacts/1/benchmark-0/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nhello", id, token(id)),
		"a header":   "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX: ",
		"nothing":    "",
		"a letter":   "P",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // the other side closes it
			if _, err := io.WriteString(conn, begin); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, conn)
			var late net.Error
			if errors.As(err, &late) && late.Timeout() {
				t.Error("the connection is open after 20 s")
			}
		})
	}
}

// slowReader is a body that arrives slowly, letter by letter.
type slowReader struct{ remaining string }

func (s *slowReader) Read(p []byte) (int, error) {
	if s.remaining == "" {
		return 0, io.EOF
	}
	<-time.After(300 * time.Millisecond)
	n := copy(p[:1], s.remaining)
	s.remaining = s.remaining[n:]
	return n, nil
}

func TestAClientThatSendsSlowlyAndSteadilyIsWaitedFor(t *testing.T) {
	w := newFixture(t, gateway.Settings{REST: rest.Settings{Stall: 2 * time.Second}})
	id := w.submit()
	path := "/v1/runs/" + id + "/artifacts/1/benchmark-0/a"
	for i, want := range []int{http.StatusCreated, http.StatusOK} { // over the same connection
		if code, _, text := w.request(http.MethodPut, path, &slowReader{remaining: "steadily"}, "Authorization", "Bearer "+token(id)); code != want {
			t.Errorf("%d: %d %s, want %d", i, code, text, want)
		}
	}
}

func TestGRPCAndHTTPShareThePort(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	id := w.submit()
	got, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	if err != nil || got.GetRun().GetOwner() != "ann" {
		t.Errorf("over gRPC: %v, %v", got, err)
	}
	code, _, text := w.request(http.MethodPut, "/v1/runs", strings.NewReader("x")) // the method also starts with P
	if code != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", code, text)
	}
}

func TestAStreamOverHTTPEndsWithTheServer(t *testing.T) {
	w := newFixture(t, gateway.Settings{})
	id := w.submit()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.addr+"/v1/runs/"+id+":watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end below
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"result"`) {
		t.Fatalf("first: %s, %v", lines.Text(), lines.Err())
	}
	began := time.Now()
	w.stop()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if !strings.Contains(last, `"error"`) || !strings.Contains(last, "stopping") {
		t.Errorf("the last line is %s", last)
	}
}

func TestGuard(t *testing.T) {
	if diff := cmp.Diff(200, func() int { // a page of the server itself
		w := newFixture(t, gateway.Settings{})
		code, _, _ := w.request(http.MethodGet, "/v1/version", nil, "Origin", "http://"+w.addr, "Sec-Fetch-Site", "same-origin")
		return code
	}()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
