package mlflow_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"
)

// The limits that MLflow's documentation has.
const (
	maxMetrics    = 1000
	maxPairs      = 100
	maxBody       = 1_000_000
	maxKey        = 250
	maxParamValue = 6000
	maxTagValue   = 8000
)

// point is a point of a metric as the server stores it: the same one is stored once.
type point struct {
	Key       string
	Value     float64
	Timestamp int64
	Step      int64
}

type keyValue struct{ Key, Value string }

// storedRun is a run of MLflow.
type storedRun struct {
	ID, Experiment, Name, Status string

	Start, End   int64
	Deleted      bool
	Params, Tags map[string]string
	Points       map[point]bool
}

// server answers as MLflow's tracking server with a database does, and refuses what that refuses. It refuses fields that the platform has no
// reason to send, too.
type server struct {
	*httptest.Server

	mu          sync.Mutex
	experiments map[string]string // IDs by name
	gone        map[string]bool   // names of deleted experiments
	runs        []*storedRun
	page        int                                                                     // most runs of an answer
	before      atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (end bool)] // called for each request, before it is handled
}

// start returns a server without experiments.
func start(t *testing.T) *server {
	t.Helper()
	s := &server{experiments: map[string]string{}, gone: map[string]bool{}, page: 2}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// refusal is an answer of the server.
type refusal struct {
	status        int
	code, message string
}

func invalid(format string, args ...any) *refusal {
	return &refusal{http.StatusBadRequest, "INVALID_PARAMETER_VALUE", fmt.Sprintf(format, args...)}
}

func missing(format string, args ...any) *refusal {
	return &refusal{http.StatusNotFound, "RESOURCE_DOES_NOT_EXIST", fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if before := s.before.Load(); before != nil && (*before)(w, r) {
		return
	}
	handlers := map[string]func(*server, *http.Request, []byte) (any, *refusal){
		"GET experiments/get-by-name": (*server).getExperiment, "POST experiments/create": (*server).createExperiment,
		"POST runs/search": (*server).search, "POST runs/create": (*server).create, "POST runs/log-batch": (*server).logBatch,
		"POST runs/update": (*server).update, "POST runs/delete": (*server).remove,
	}
	name := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/")
	handle, found := handlers[name]
	if !found {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the writer has gone
	}
	s.mu.Lock()
	answer, refused := handle(s, r, body)
	s.mu.Unlock()
	if refused != nil {
		w.WriteHeader(refused.status)
		answer = map[string]string{"error_code": refused.code, "message": refused.message}
	}
	_ = json.NewEncoder(w).Encode(answer) // the writer may have gone
}

// read reads a body without fields that are not in out.
func read(body []byte, out any) *refusal {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return invalid("%v", err)
	}
	return nil
}

func (s *server) getExperiment(r *http.Request, _ []byte) (any, *refusal) {
	name := r.URL.Query().Get("experiment_name")
	id, found := s.experiments[name]
	if !found {
		return nil, missing("Could not find experiment with name '%s'", name)
	}
	stage := "active"
	if s.gone[name] {
		stage = "deleted"
	}
	return map[string]any{"experiment": map[string]any{"experiment_id": id, "name": name, "lifecycle_stage": stage}}, nil
}

func (s *server) createExperiment(_ *http.Request, body []byte) (any, *refusal) {
	var in struct{ Name string }
	if bad := read(body, &in); bad != nil {
		return nil, bad
	}
	if in.Name == "" || len(in.Name) > 500 {
		return nil, invalid("Invalid experiment name: '%s'", in.Name)
	}
	if s.experiments[in.Name] != "" {
		return nil, &refusal{http.StatusBadRequest, "RESOURCE_ALREADY_EXISTS", "Experiment(name=" + in.Name + ") already exists."}
	}
	s.experiments[in.Name] = strconv.Itoa(len(s.experiments) + 1)
	return map[string]string{"experiment_id": s.experiments[in.Name]}, nil
}

var filter = regexp.MustCompile("^tags\\.`bai\\.run` = '([^']*)' and tags\\.`bai\\.destination` = '([^']*)'$")

func (s *server) search(_ *http.Request, body []byte) (any, *refusal) {
	var in struct {
		Experiments []string `json:"experiment_ids"`
		Filter      string   `json:"filter"`
		View        string   `json:"run_view_type"`
		Max         int      `json:"max_results"`
		Token       string   `json:"page_token"`
	}
	if bad := read(body, &in); bad != nil {
		return nil, bad
	}
	wanted := filter.FindStringSubmatch(in.Filter)
	if wanted == nil || in.Max < 1 || in.Max > 50_000 || in.View != "ACTIVE_ONLY" {
		return nil, invalid("Invalid clause(s) in filter string: %s", in.Filter)
	}
	found := []map[string]any{}
	for _, r := range s.runs {
		if slices.Contains(in.Experiments, r.Experiment) && !r.Deleted && r.Tags["bai.run"] == wanted[1] && r.Tags["bai.destination"] == wanted[2] {
			found = append(found, r.answer())
		}
	}
	from, _ := strconv.Atoi(in.Token)
	to := min(len(found), from+min(s.page, in.Max))
	out := map[string]any{}
	if from < to {
		out["runs"] = found[from:to]
	}
	if to < len(found) {
		out["next_page_token"] = strconv.Itoa(to)
	}
	return out, nil
}

func (r *storedRun) answer() map[string]any {
	return map[string]any{"info": map[string]any{"run_id": r.ID, "status": r.Status, "experiment_id": r.Experiment}, "data": map[string]any{}}
}

func (s *server) create(_ *http.Request, body []byte) (any, *refusal) {
	var in struct {
		Experiment string     `json:"experiment_id"`
		Name       string     `json:"run_name"`
		Start      int64      `json:"start_time"`
		Tags       []keyValue `json:"tags"`
	}
	if bad := read(body, &in); bad != nil {
		return nil, bad
	}
	if !slices.Contains(slices.Collect(maps.Values(s.experiments)), in.Experiment) {
		return nil, missing("No Experiment with id=%s exists", in.Experiment)
	}
	r := &storedRun{
		ID: fmt.Sprintf("%032x", uint64(len(s.runs)+1)*0x9E3779B97F4A7C15), Experiment: in.Experiment, Name: in.Name, Status: "RUNNING", Start: in.Start,
		Params: map[string]string{}, Tags: map[string]string{}, Points: map[point]bool{},
	}
	if bad := r.tag(in.Tags); bad != nil {
		return nil, bad
	}
	s.runs = append(s.runs, r)
	return map[string]any{"run": r.answer()}, nil
}

// active returns a run that is not deleted.
func (s *server) active(id string) (*storedRun, *refusal) {
	for _, r := range s.runs {
		if r.ID == id && !r.Deleted {
			return r, nil
		}
		if r.ID == id {
			return nil, invalid("The run %s must be in the 'active' state. Current state is deleted.", id)
		}
	}
	return nil, missing("Run with id=%s not found", id)
}

var names = regexp.MustCompile(`^[A-Za-z0-9_\-. /:]+$`)

// checkKey refuses a name of a metric, param or tag.
func checkKey(key string) *refusal {
	switch {
	case !names.MatchString(key):
		return invalid("Invalid value \"%s\": Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) and slashes (/).", key)
	case path.Clean(key) != key || key == "." || strings.HasPrefix(key, "..") || strings.HasPrefix(key, "/"):
		return invalid("Names may be treated as files in certain cases, and must not resolve to other names: %q", key)
	case len(key) > maxKey:
		return invalid("%q exceeds the maximum length of %d characters", key, maxKey)
	}
	return nil
}

func (r *storedRun) tag(all []keyValue) *refusal {
	for _, t := range all {
		if bad := checkKey(t.Key); bad != nil {
			return bad
		}
		if utf8.RuneCountInString(t.Value) > maxTagValue || strings.Contains(t.Value, "\x00") {
			return invalid("the value of tag %s cannot be stored", t.Key)
		}
		r.Tags[t.Key] = t.Value
	}
	return nil
}

func (s *server) logBatch(_ *http.Request, body []byte) (any, *refusal) {
	var in struct {
		Run     string `json:"run_id"`
		Metrics []point
		Params  []keyValue
		Tags    []keyValue
	}
	if len(body) > maxBody {
		return nil, invalid("Batched logging API requests must be at most %d bytes", maxBody)
	}
	if bad := read(body, &in); bad != nil {
		return nil, bad
	}
	r, bad := s.active(in.Run)
	if bad != nil {
		return nil, bad
	}
	if len(in.Metrics) > maxMetrics || len(in.Params) > maxPairs || len(in.Tags) > maxPairs || len(in.Metrics)+len(in.Params)+len(in.Tags) > maxMetrics {
		return nil, invalid("A batch logging request can contain at most %d metrics, %d params and tags", maxMetrics, maxPairs)
	}
	for _, m := range in.Metrics {
		if bad := checkKey(m.Key); bad != nil || m.Timestamp < 0 || math.IsNaN(m.Value) {
			return nil, cmp.Or(bad, invalid("metric %v", m))
		}
	}
	if bad := r.param(in.Params); bad != nil {
		return nil, bad
	}
	for _, m := range in.Metrics {
		r.Points[m] = true
	}
	return map[string]any{}, r.tag(in.Tags)
}

// param stores params, which do not change.
func (r *storedRun) param(all []keyValue) *refusal {
	for _, p := range all {
		if bad := checkKey(p.Key); bad != nil {
			return bad
		}
		if old, found := r.Params[p.Key]; found && old != p.Value {
			return invalid("Changing param values is not allowed. Param with key='%s' was already logged", p.Key)
		}
		if utf8.RuneCountInString(p.Value) > maxParamValue || strings.Contains(p.Value, "\x00") {
			return invalid("the value of param %s cannot be stored", p.Key)
		}
	}
	for _, p := range all {
		r.Params[p.Key] = p.Value
	}
	return nil
}

func (s *server) update(_ *http.Request, body []byte) (any, *refusal) {
	var in struct {
		Run    string `json:"run_id"`
		Status string
		End    int64 `json:"end_time"`
	}
	if bad := read(body, &in); bad != nil {
		return nil, bad
	}
	r, bad := s.active(in.Run)
	if bad != nil {
		return nil, bad
	}
	if !slices.Contains([]string{"FINISHED", "FAILED", "KILLED"}, in.Status) {
		return nil, invalid("Invalid status %q", in.Status)
	}
	r.Status, r.End = in.Status, in.End
	return map[string]any{"run_info": map[string]any{"run_id": r.ID}}, nil
}

func (s *server) remove(_ *http.Request, body []byte) (any, *refusal) {
	var in struct {
		Run string `json:"run_id"`
	}
	if bad := read(body, &in); bad != nil {
		return nil, bad
	}
	r, bad := s.active(in.Run)
	if bad != nil {
		return nil, bad
	}
	r.Deleted = true
	return map[string]any{}, nil
}

// visible returns the runs that are not deleted.
func (s *server) visible() []*storedRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*storedRun
	for _, r := range s.runs {
		if !r.Deleted {
			all = append(all, r)
		}
	}
	return all
}

// made returns how many runs were made, with those that are deleted.
func (s *server) made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}
