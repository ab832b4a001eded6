package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ErrNewer says that a newer version of the platform has written to the store.
var ErrNewer = errors.New("was written by a newer version of the platform")

// priority of templates, above that of those that come with the server.
const priority = 250

// ready makes sure, once, that what is needed is there.
func (s *Store) ready(ctx context.Context) error {
	if s.settled.Load() {
		return nil
	}
	if err := s.setup.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.setup.Release(1)
	if s.settled.Load() {
		return nil
	}
	do := s.Setup
	if s.settings.ManualSetup {
		do = s.Check
	}
	if err := do(ctx); err != nil {
		return err
	}
	s.settled.Store(true)
	return nil
}

// Setup makes the templates and the indices that are not by month, and brings
// those of earlier versions to this one: it adds fields and changes none. It
// changes nothing where all is done, and nothing at all, and says ErrNewer, where
// anything is newer.
func (s *Store) Setup(ctx context.Context) error {
	for _, i := range Indices() {
		if err := s.newer(ctx, i); err != nil {
			return err
		}
	}
	for _, i := range Indices() {
		if err := s.prepare(ctx, i); err != nil {
			return fmt.Errorf("prepare index %s: %w", s.index(i.Name), err)
		}
	}
	return nil
}

// Check says whether Setup was done, and is of this version or of one that this
// program can use.
func (s *Store) Check(ctx context.Context) error {
	for _, i := range Indices() {
		if err := s.newer(ctx, i); err != nil {
			return err
		}
	}
	for _, i := range Indices() {
		v, err := s.templateVersion(ctx, i)
		if err != nil {
			return err
		}
		if v < Version {
			return fmt.Errorf("index template %s has version %d, want %d: run `bai admin store setup`", s.index(i.Name), v, Version)
		}
	}
	return nil
}

// newer says ErrNewer where a template or an index is.
func (s *Store) newer(ctx context.Context, i Index) error {
	v, err := s.templateVersion(ctx, i)
	if err != nil {
		return err
	}
	versions, err := s.indexVersions(ctx, i)
	if err != nil {
		return err
	}
	versions["template "+s.index(i.Name)] = v
	for name, v := range versions {
		if v > Version {
			return fmt.Errorf("elasticsearch: %s has version %d and this program knows up to %d: it %w: run that version, or give another elasticsearch.prefix", name, v, Version, ErrNewer)
		}
	}
	return nil
}

// pattern matches the names of all indices of a kind.
func (s *Store) pattern(i Index) string {
	if i.ByMonth {
		return s.index(i.Name, "*")
	}
	return s.index(i.Name)
}

// meta is where a mapping says its version.
type meta struct {
	Mappings struct {
		Meta struct {
			Bai struct {
				Version int `json:"version"`
			} `json:"bai"`
		} `json:"_meta"`
	} `json:"mappings"`
}

// templateVersion returns the version of a template, 0 where there is none.
func (s *Store) templateVersion(ctx context.Context, i Index) (int, error) {
	a, err := s.call(ctx, http.MethodGet, "/_index_template/"+s.index(i.Name), nil, nil, http.StatusNotFound)
	if err != nil || a.status == http.StatusNotFound {
		return 0, err
	}
	var got struct {
		Templates []struct {
			Template struct {
				Template meta `json:"template"`
			} `json:"index_template"`
		} `json:"index_templates"`
	}
	if err := a.decode(&got); err != nil {
		return 0, err
	}
	v := 0
	for _, t := range got.Templates {
		v = max(v, t.Template.Template.Mappings.Meta.Bai.Version)
	}
	return v, nil
}

// indexVersions returns the versions of the indices of a kind, by name.
func (s *Store) indexVersions(ctx context.Context, i Index) (map[string]int, error) {
	query := url.Values{"filter_path": {"*.mappings._meta"}, "ignore_unavailable": {"true"}}
	a, err := s.call(ctx, http.MethodGet, "/"+s.pattern(i)+"/_mapping", query, nil, http.StatusNotFound)
	versions := make(map[string]int)
	if err != nil || a.status == http.StatusNotFound {
		return versions, err
	}
	var got map[string]meta
	if err := json.Unmarshal(a.body, &got); err != nil {
		return nil, err
	}
	for name, m := range got {
		versions["index "+name] = m.Mappings.Meta.Bai.Version
	}
	return versions, nil
}

// prepare makes what is missing for a kind of index.
func (s *Store) prepare(ctx context.Context, i Index) error {
	v, err := s.templateVersion(ctx, i)
	if err != nil {
		return err
	}
	if v < Version {
		if _, err := s.call(ctx, http.MethodPut, "/_index_template/"+s.index(i.Name), nil, s.template(i)); err != nil {
			return err
		}
	}
	versions, err := s.indexVersions(ctx, i)
	if err != nil {
		return err
	}
	for name, v := range versions {
		if v < Version {
			if _, err := s.call(ctx, http.MethodPut, "/"+strings.TrimPrefix(name, "index ")+"/_mapping", nil, i.mapping()); err != nil {
				return err
			}
		}
	}
	if i.ByMonth || len(versions) > 0 {
		return nil
	}
	a, err := s.call(ctx, http.MethodPut, "/"+s.index(i.Name), nil, nil, http.StatusBadRequest)
	if err == nil && a.status == http.StatusBadRequest && !slices.Contains([]string{"resource_already_exists_exception"}, kindOf(a)) {
		err = a.as()
	}
	return err
}

// kindOf returns the type of the server's error.
func kindOf(a answer) string {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &e) // what is no JSON has no type
	return e.Error.Type
}

// template returns the index template of a kind.
func (s *Store) template(i Index) map[string]any {
	refresh, shards := s.settings.Refresh, s.settings.Shards
	if !i.many() {
		refresh, shards = refresh/4, 1 // small, and what lists are made of
	}
	return map[string]any{
		"index_patterns": []string{s.pattern(i)},
		"priority":       priority,
		"template": map[string]any{
			"settings": map[string]any{
				"number_of_shards": shards, "auto_expand_replicas": s.settings.Replicas,
				"refresh_interval": fmt.Sprint(max(refresh.Round(time.Millisecond), time.Millisecond).Milliseconds(), "ms"),
			},
			"mappings": i.mapping(),
		},
	}
}
