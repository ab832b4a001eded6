// Package schema is the mappings of the platform's indices in Elasticsearch, and
// makes them.
package schema

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
)

// Schema creates the indices of one store. Any goroutine may use it.
type Schema struct {
	client    *client.Client
	lock      *semaphore.Weighted       // one setup at a time
	done      atomic.Bool               // the templates are as this program needs them
	checkedAt atomic.Pointer[time.Time] // when Check last found no fault
}

// New returns the schema of the store that a client writes to.
func New(c *client.Client) *Schema { return &Schema{client: c, lock: semaphore.NewWeighted(1)} }

// ErrNewer means that a newer version of the platform has written to the store.
var ErrNewer = errors.New("was written by a newer version of the platform")

// priority of templates, above that of the server's own.
const priority = 250

// Ensure runs Setup once, or Check if the settings say so.
func (s *Schema) Ensure(ctx context.Context) error {
	if s.done.Load() {
		return nil
	}
	if err := s.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.lock.Release(1)
	if s.done.Load() {
		return nil
	}
	var err error
	if s.client.Settings.ManualSetup {
		err = s.Check(ctx)
	} else {
		_, err = s.Setup(ctx)
	}
	if err != nil {
		return err
	}
	s.done.Store(true)
	return nil
}

// Setup creates the templates and the indices that are not by month, and brings those of earlier versions to this one: it adds fields and
// changes none. It applies Settings to templates, and to the indices that are not by month. It returns its changes, for people: none if all
// is set up. If a template or index is newer, it changes nothing and returns ErrNewer.
func (s *Schema) Setup(ctx context.Context) (done []string, err error) {
	have, err := s.versions(ctx)
	if err != nil {
		return nil, err
	}
	if err := have.checkNotNewer(); err != nil {
		return nil, err
	}
	for _, i := range Indices() {
		did, err := s.prepare(ctx, i, have)
		done = append(done, did...)
		if err != nil {
			return done, fmt.Errorf("prepare index %s: %w", s.client.Index(i.Name), err)
		}
	}
	return done, nil
}

// checkTTL is how long a success of Check is valid.
const checkTTL = 10 * time.Second

// Check returns an error unless Setup was run by this version or one that this program can use. A success is valid for 10 s; otherwise
// Check costs two requests.
func (s *Schema) Check(ctx context.Context) error {
	if at := s.checkedAt.Load(); at != nil && time.Since(*at) < checkTTL {
		return nil
	}
	have, err := s.versions(ctx)
	if err != nil {
		return err
	}
	if err := have.checkNotNewer(); err != nil {
		return err
	}
	for _, i := range Indices() {
		if v := have.templates[s.client.Index(i.Name)].version(); v < Version {
			return fmt.Errorf("index template %s has version %d, want %d: run `bai admin store setup`", s.client.Index(i.Name), v, Version)
		}
	}
	s.checkedAt.Store(new(time.Now()))
	return nil
}

// versions are the templates and the versions of indices, by name.
type versions struct {
	templates map[string]indexTemplate
	indices   map[string]int
}

// checkNotNewer returns ErrNewer if a template or an index is newer.
func (v versions) checkNotNewer() error {
	all := make(map[string]int)
	for name, t := range v.templates {
		all["template "+name] = t.version()
	}
	for name, version := range v.indices {
		all["index "+name] = version
	}
	for name, version := range all {
		if version > Version {
			return fmt.Errorf("elasticsearch: %s has version %d and this program knows up to %d: it %w: run that version, or give another elasticsearch.prefix", name, version, Version, ErrNewer)
		}
	}
	return nil
}

// versions returns those of all templates and indices, by two requests.
func (s *Schema) versions(ctx context.Context) (versions, error) {
	templates, err := s.indexTemplates(ctx)
	if err != nil {
		return versions{}, err
	}
	indices, err := s.IndexVersions(ctx, Indices()...)
	return versions{templates, indices}, err
}

// pattern matches the names of all indices of a kind.
func (s *Schema) pattern(i Index) string {
	if i.ByMonth {
		return s.client.Index(i.Name, "*")
	}
	return s.client.Index(i.Name)
}

// meta is the part of a mapping with its version.
type meta struct {
	Mappings struct {
		Meta struct {
			Bai struct {
				Version int `json:"version"`
			} `json:"bai"`
		} `json:"_meta"`
	} `json:"mappings"`
}

// indexTemplate is an index template as the server has it. The zero value means that there is none.
type indexTemplate struct {
	meta

	Settings struct {
		Index indexSettings `json:"index"`
	} `json:"settings"`
}

func (t indexTemplate) version() int { return t.Mappings.Meta.Bai.Version }

// indexSettings are those of the settings of an index that are chosen here.
type indexSettings struct {
	Shards   string `json:"number_of_shards,omitempty"`
	Replicas string `json:"auto_expand_replicas,omitempty"`
	Refresh  string `json:"refresh_interval,omitempty"`
}

// diff returns how the settings in have differ from those in w, as far as w sets them.
func (w indexSettings) diff(have indexSettings) (changes []string) {
	for _, c := range []struct{ name, want, have string }{
		{"number_of_shards", w.Shards, have.Shards},
		{"auto_expand_replicas", w.Replicas, have.Replicas},
		{"refresh_interval", w.Refresh, have.Refresh},
	} {
		if c.want != "" && c.want != c.have {
			changes = append(changes, fmt.Sprintf("%s is %s, and was %s", c.name, c.want, cmp.Or(c.have, "not set")))
		}
	}
	return changes
}

// indexTemplates returns the templates as the server has them, by name.
func (s *Schema) indexTemplates(ctx context.Context) (map[string]indexTemplate, error) {
	const template = "index_templates.index_template.template."
	query := url.Values{"filter_path": {"index_templates.name," + template + "mappings._meta," + template + "settings.index"}}
	a, err := s.client.Call(ctx, http.MethodGet, "/_index_template/"+s.client.Index("*"), query, nil, http.StatusNotFound)
	found := make(map[string]indexTemplate)
	if err != nil || a.Status == http.StatusNotFound {
		return found, err
	}
	var got struct {
		Templates []struct {
			Name     string `json:"name"`
			Template struct {
				Template indexTemplate `json:"template"`
			} `json:"index_template"`
		} `json:"index_templates"`
	}
	if err := a.Decode(&got); err != nil {
		return nil, err
	}
	for _, t := range got.Templates {
		if slices.ContainsFunc(Indices(), func(i Index) bool { return t.Name == s.client.Index(i.Name) }) { // not those of a longer prefix
			found[t.Name] = t.Template.Template
		}
	}
	return found, nil
}

// IndexVersions returns the versions of the indices of some kinds, by name.
func (s *Schema) IndexVersions(ctx context.Context, kinds ...Index) (map[string]int, error) {
	var patterns []string
	for _, i := range kinds {
		patterns = append(patterns, s.pattern(i))
	}
	query := url.Values{"filter_path": {"*.mappings._meta"}, "ignore_unavailable": {"true"}}
	a, err := s.client.Call(ctx, http.MethodGet, "/"+strings.Join(patterns, ",")+"/_mapping", query, nil, http.StatusNotFound)
	found := make(map[string]int)
	if err != nil || a.Status == http.StatusNotFound {
		return found, err
	}
	var got map[string]meta
	if err := json.Unmarshal(a.Body, &got); err != nil {
		return nil, err
	}
	for name, m := range got {
		found[name] = m.Mappings.Meta.Bai.Version
	}
	return found, nil
}

// prepare creates the missing template and index of a kind, and returns its changes.
func (s *Schema) prepare(ctx context.Context, i Index, have versions) (done []string, err error) {
	did, err := s.prepareTemplate(ctx, i, have.templates[s.client.Index(i.Name)])
	if err != nil {
		return nil, err
	}
	done = append(done, did...)
	versions, err := s.IndexVersions(ctx, i) // with those that the template has created before
	if err != nil {
		return done, err
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if versions[name] >= Version {
			continue
		}
		if _, err := s.client.Call(ctx, http.MethodPut, "/"+name+"/_mapping", nil, i.mapping()); err != nil {
			return done, err
		}
		done = append(done, fmt.Sprintf("index %s is of version %d, and was of version %d", name, Version, versions[name]))
	}
	if i.ByMonth {
		return done, nil
	}
	if len(versions) > 0 {
		did, err = s.applySettings(ctx, i)
		return append(done, did...), err
	}
	a, err := s.client.Call(ctx, http.MethodPut, "/"+s.client.Index(i.Name), nil, nil, http.StatusBadRequest)
	if err == nil && a.Status == http.StatusBadRequest && kindOf(a) != "resource_already_exists_exception" {
		err = a.Err()
	}
	return done, err
}

// prepareTemplate creates or updates the template of a kind; t is the server's.
func (s *Schema) prepareTemplate(ctx context.Context, i Index, t indexTemplate) (done []string, err error) {
	name := "index template " + s.client.Index(i.Name)
	switch v := t.version(); {
	case v == 0:
		done = append(done, name+" is made")
	case v < Version:
		done = append(done, fmt.Sprintf("%s is of version %d, and was of version %d", name, Version, v))
	}
	if t.version() > 0 {
		for _, c := range s.indexSettings(i).diff(t.Settings.Index) {
			done = append(done, name+": "+c+", for indices that are made from now on")
		}
	}
	if len(done) > 0 {
		_, err = s.client.Call(ctx, http.MethodPut, "/_index_template/"+s.client.Index(i.Name), nil, s.template(i))
	}
	return done, err
}

// applySettings applies the settings to an index that is not by month, and so is never created anew.
func (s *Schema) applySettings(ctx context.Context, i Index) (done []string, err error) {
	name := s.client.Index(i.Name)
	a, err := s.client.Call(ctx, http.MethodGet, "/"+name+"/_settings", nil, nil)
	if err != nil {
		return nil, err
	}
	var got map[string]indexTemplate
	if err := a.Decode(&got); err != nil {
		return nil, err
	}
	want := s.indexSettings(i)
	want.Shards = "" // they cannot be changed
	for _, c := range want.diff(got[name].Settings.Index) {
		done = append(done, "index "+name+": "+c)
	}
	if len(done) > 0 {
		_, err = s.client.Call(ctx, http.MethodPut, "/"+name+"/_settings", nil, map[string]any{"index": want})
	}
	return done, err
}

// kindOf returns the type of the server's error.
func kindOf(a client.Response) string {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &e) // a text that is no JSON has no type
	return e.Error.Type
}

// indexSettings returns those of the indices of a kind.
func (s *Schema) indexSettings(i Index) indexSettings {
	refresh, shards := s.client.Settings.Refresh, s.client.Settings.Shards
	if !i.sharded() {
		refresh, shards = refresh/4, 1 // small, and used for lists
	}
	return indexSettings{
		Shards: strconv.Itoa(shards), Replicas: s.client.Settings.Replicas,
		Refresh: fmt.Sprint(max(refresh.Round(time.Millisecond), time.Millisecond).Milliseconds(), "ms"),
	}
}

// template returns the index template of a kind.
func (s *Schema) template(i Index) map[string]any {
	return map[string]any{
		"index_patterns": []string{s.pattern(i)},
		"priority":       priority,
		"template":       map[string]any{"settings": map[string]any{"index": s.indexSettings(i)}, "mappings": i.mapping()},
	}
}
