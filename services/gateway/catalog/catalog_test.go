package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/catalog"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

// text returns a valid descriptor that differs by n.
func text(n int) []byte {
	return fmt.Appendf(nil, `spec_version = "0.1.0"
[info]
description = "number %d"
[hardware]
instance_type = "t3.small"
[env]
docker_image = "alpine"
[ml]
benchmark_code = "echo hello"
`, n)
}

func push(name string, n int) catalog.Push {
	return catalog.Push{Namespace: "default", Name: name, Owner: "ann", File: "a.toml", Text: text(n)}
}

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func newCatalog(t *testing.T, docs catalog.Store) *catalog.Catalog {
	t.Helper()
	return catalog.New(catalog.Settings{}, docs, nil, parser.Parser{}, noon)
}

func mustPush(t *testing.T, s *catalog.Catalog, p catalog.Push) (int, bool) {
	t.Helper()
	k, repeated, _, err := s.Push(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return k.Version, repeated
}

// staleListStore is a store whose lists lack recent writes.
type staleListStore struct{ *storetest.Memory }

func (staleListStore) Docs(context.Context, store.Kind, string, int) ([]store.Doc, error) {
	return nil, nil
}

func TestEveryPushOfAnotherTextIsTheNextVersion(t *testing.T) {
	for name, docs := range map[string]catalog.Store{"as stores are": storetest.NewMemory(), "with lists that are late": staleListStore{storetest.NewMemory()}} {
		t.Run(name, func(t *testing.T) {
			s := newCatalog(t, docs)
			var got []string
			for _, n := range []int{1, 1, 2, 1, 1} {
				version, repeated := mustPush(t, s, push("a", n))
				got = append(got, fmt.Sprint(version, repeated))
			}
			if diff := cmp.Diff([]string{"1 false", "1 true", "2 false", "3 false", "3 true"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhoPushesAtOnceGetsAVersionOfHisOwn(t *testing.T) {
	s := newCatalog(t, storetest.Open(t))
	const many = 16
	versions := make([]int, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			k, _, _, err := s.Push(context.Background(), push("a", i))
			if err != nil {
				t.Error(err)
			}
			versions[i] = k.Version
		})
	}
	wg.Wait()
	for i, v := range versions {
		got, _, err := s.Find(t.Context(), "default", fmt.Sprintf("stored:a@%d", v))
		if err != nil || string(got) != string(text(i)) {
			t.Errorf("version %d is %q, %v", v, got, err)
		}
	}
	slices.Sort(versions)
	if n := len(slices.Compact(versions)); n != many || versions[many-1] != many {
		t.Errorf("versions %v", versions)
	}
}

func TestEqualPushesAtOnceAreOneVersion(t *testing.T) {
	s := newCatalog(t, storetest.Open(t))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if k, _, _, err := s.Push(context.Background(), push("a", 1)); err != nil || k.Version != 1 {
				t.Errorf("version %d, %v", k.Version, err)
			}
		})
	}
	wg.Wait()
}

func TestListsAreByNameAndNewestFirstInPagesOfAnySize(t *testing.T) {
	s := newCatalog(t, storetest.Open(t))
	for _, name := range []string{"b", "a.b", "a-b", "a", "ab", "A"} {
		for n := range 3 {
			mustPush(t, s, push(name, n))
		}
	}
	other := push("z", 1)
	other.Namespace = "default.x"
	mustPush(t, s, other)
	for _, limit := range []int{1, 2, 5, 100} {
		if diff := cmp.Diff([]string{"A@3", "a@3", "a-b@3", "a.b@3", "ab@3", "b@3"}, list(t, s, "", limit)); diff != "" {
			t.Errorf("by %d (-want +got):\n%s", limit, diff)
		}
		if diff := cmp.Diff([]string{"a@3", "a@2", "a@1"}, list(t, s, "a", limit)); diff != "" {
			t.Errorf("versions by %d (-want +got):\n%s", limit, diff)
		}
	}
	if got := list(t, s, "none", 1); got != nil {
		t.Errorf("listed %v", got)
	}
	_, token, err := s.List(t.Context(), "default", "", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []struct{ namespace, name, token string }{{"default", "a", token}, {"default.x", "", token}, {"default", "", "x"}, {"default", "", token + "A"}} {
		if _, _, err := s.List(t.Context(), foreign.namespace, foreign.name, foreign.token, 1); !errors.Is(err, store.ErrCursor) {
			t.Errorf("listed %v with a foreign token: %v", foreign, err)
		}
	}
}

func list(t *testing.T, s *catalog.Catalog, name string, limit int) (all []string) {
	t.Helper()
	for token := ""; ; {
		some, next, err := s.List(t.Context(), "default", name, token, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range some {
			if k.Text != "" || k.Owner != "ann" || len(k.SHA256) != 64 || !k.Created.Equal(noon()) {
				t.Errorf("listed %+v", k)
			}
			all = append(all, fmt.Sprintf("%s@%d", k.Name, k.Version))
		}
		if token = next; token == "" {
			return all
		}
	}
}

func TestWhatIsInvalidIsNotKept(t *testing.T) {
	s := newCatalog(t, storetest.NewMemory())
	for name, tt := range map[string]struct {
		change func(*catalog.Push)
		path   string
	}{
		"a name that is a path":        {func(p *catalog.Push) { p.Name = "../a" }, "name"},
		"no name":                      {func(p *catalog.Push) { p.Name = "" }, "name"},
		"a namespace with a separator": {func(p *catalog.Push) { p.Namespace = "a!b" }, "namespace"},
		"a descriptor with a fault":    {func(p *catalog.Push) { p.Text = []byte(strings.Replace(string(p.Text), "alpine", "", 1)) }, "env.docker_image"},
	} {
		t.Run(name, func(t *testing.T) {
			p := push("a", 1)
			tt.change(&p)
			_, _, _, err := s.Push(t.Context(), p)
			var invalid *submit.InvalidError
			if !errors.As(err, &invalid) || invalid.Faults[0].Path != tt.path {
				t.Errorf("pushed: %v, want a fault of %s", err, tt.path)
			}
		})
	}
}

// fakeSource has a different text at each URL.
type fakeSource struct{ err error }

// textOf returns the descriptor at a URL.
func textOf(url string) []byte { return append(text(0), "# "+url+"\n"...) }

func (e fakeSource) Read(_ context.Context, url string) ([]byte, error) {
	return textOf(url), e.err
}

func TestADescriptorIsFoundByItsURI(t *testing.T) {
	docs := storetest.NewMemory()
	s := catalog.New(catalog.Settings{}, docs, fakeSource{}, parser.Parser{}, noon)
	mustPush(t, s, push("a", 1))
	mustPush(t, s, push("a", 2))
	for name, tt := range map[string]struct{ uri, text, from string }{
		"the newest that is kept":                     {"stored:a", string(text(2)), "stored:a@2"},
		"a version that is kept":                      {"stored:a@1", string(text(1)), "stored:a@1"},
		"one that lies elsewhere, without its secret": {"https://u:p@h/x.toml?token=1#f", string(textOf("https://u:p@h/x.toml?token=1#f")), "https://h/x.toml"},
		"one of an object store":                      {"s3://b/k", string(textOf("s3://b/k")), "s3://b/k"},
	} {
		t.Run(name, func(t *testing.T) {
			got, from, err := s.Find(t.Context(), "default", tt.uri)
			if err != nil || string(got) != tt.text || from.URI != tt.from || len(from.SHA256) != 64 {
				t.Errorf("found %q from %+v, %v", got, from, err)
			}
		})
	}
}

func TestAURIThatNamesNothingIsSaidToDoSo(t *testing.T) {
	s := catalog.New(catalog.Settings{}, storetest.NewMemory(), fakeSource{}, parser.Parser{}, noon)
	mustPush(t, s, push("a", 1))
	for uri, want := range map[string]any{
		"stored:b": new(*catalog.MissingError), "stored:a@2": new(*catalog.MissingError), "stored:a@0": new(*catalog.RefError), "stored:a@01": new(*catalog.RefError),
		"stored:a@": new(*catalog.RefError), "stored:": new(*catalog.RefError), "stored:a!b": new(*submit.InvalidError), "file:///etc/passwd": new(*catalog.RefError),
		"http://h/x": new(*catalog.RefError), "": new(*catalog.RefError), "a.toml": new(*catalog.RefError), "https:///x": new(*catalog.RefError), "https://h/" + strings.Repeat("x", 5000): new(*catalog.RefError),
		"stored:a@99999999999999999999": new(*catalog.RefError),
	} {
		if _, _, err := s.Find(t.Context(), "default", uri); !errors.As(err, want) {
			t.Errorf("%.60s: %v, want %T", uri, err, want)
		}
	}
	allowed := catalog.New(catalog.Settings{HTTP: true}, storetest.NewMemory(), fakeSource{}, parser.Parser{}, noon)
	if _, _, err := allowed.Find(t.Context(), "default", "http://h/x"); err != nil {
		t.Errorf("http where settings allow it: %v", err)
	}
	refusing := catalog.New(catalog.Settings{}, storetest.NewMemory(), fakeSource{err: &catalog.SourceError{Message: "no", User: true}}, parser.Parser{}, noon)
	if _, _, err := refusing.Find(t.Context(), "default", "https://h/x"); !errors.As(err, new(*catalog.SourceError)) {
		t.Errorf("a source that refuses: %v", err)
	}
	if _, _, err := newCatalog(t, storetest.NewMemory()).Find(t.Context(), "default", "https://h/x"); !errors.As(err, new(*catalog.SourceError)) {
		t.Errorf("without a source: %v", err)
	}
}
