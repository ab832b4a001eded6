package fetcher_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// repositories are the fake repositories on the Internet, by URL and reference.
type repositories map[string]fakeRepo

type fakeRepo struct {
	commit string
	files  map[string]string // "-> x" is a link, a name with * an executable
	err    error
}

func (all repositories) open(_ context.Context, url, ref, token string, _ *http.Client) (source.Repository, error) {
	r, ok := all[strings.TrimSuffix(url+"@"+ref+"!"+token, "!")]
	if !ok {
		return nil, fmt.Errorf("no such repository: %w", store.ErrNotFound)
	}
	return &r, r.err
}

// Commit implements source.Repository.
func (r *fakeRepo) Commit() string { return r.commit }

// Fetch implements source.Repository.
func (r *fakeRepo) Fetch(_ context.Context, came func(n int) error) error { return came(100) }

// Close implements source.Repository.
func (r *fakeRepo) Close() error { return nil }

// Walk implements source.Repository.
func (r *fakeRepo) Walk(path string, file func(name string, size int64, executable bool, content io.Reader) error, link func(name, to string) error) error {
	names := make([]string, 0, len(r.files))
	for name := range r.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		content, below := r.files[name], name
		if path != "" {
			below = strings.TrimPrefix(name, path+"/")
		}
		switch to, isLink := strings.CutPrefix(content, "-> "); {
		case path != "" && name == path:
			return file("", int64(len(content)), false, strings.NewReader(content))
		case path != "" && below == name:
			continue
		case isLink:
			if err := link(below, to); err != nil {
				return err
			}
		default:
			if err := file(strings.TrimSuffix(below, "*"), int64(len(content)), strings.HasSuffix(below, "*"), strings.NewReader(content)); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestACommitIsFetchedAsAFolderAndRecorded(t *testing.T) {
	commit := strings.Repeat("ab", 20)
	files := map[string]string{"a": "one", "dir/b": "two", "dir/run*": "#!", "link": "-> a"}
	w := newFixture(t)
	w.clone = repositories{"https://example.com/x/repo@v1": {commit: commit, files: files}}.open
	p := w.start(t, quick())
	p.PublishAndWait(runWith("r1", data{src: "git+https://example.com/x/repo@v1"}, data{src: "git+https://example.com/x/repo@v1#dir"}, data{src: "git+https://example.com/x/repo@v1#dir/b"}))
	got := p.waitFetched(t, "r1")
	for _, d := range got {
		if d.Revision != commit {
			t.Errorf("%s: revision %q", d.Source, d.Revision)
		}
	}
	if diff := cmp.Diff(files, untar(t, w.content(t, got[0]))); diff != "" || !got[0].Unpack {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"b": "two", "run*": "#!"}, untar(t, w.content(t, got[1]))); diff != "" || !got[1].Unpack {
		t.Errorf("a folder (-want +got):\n%s", diff)
	}
	if string(w.content(t, got[2])) != "two" || got[2].Unpack {
		t.Errorf("a file: %+v", got[2])
	}
	if got[1].Source != "git+https://example.com/x/repo@v1#dir" {
		t.Errorf("source %s", got[1].Source)
	}
	w.waitClean(t)
}

func TestACommitThatIsThereIsNotFetchedAgainAndABranchThatMovedIs(t *testing.T) {
	all := repositories{"https://example.com/repo@main": {commit: "c1", files: map[string]string{"a": "one"}}}
	w := newFixture(t)
	w.clone = all.open
	p := w.start(t, quick())
	src := data{src: "git+https://example.com/repo@main"}
	p.PublishAndWait(runWith("r1", src))
	first := p.waitFetched(t, "r1")[0]
	p.PublishAndWait(runWith("r2", src))
	if second := p.waitFetched(t, "r2")[0]; second != first {
		t.Errorf("fetched %+v, then %+v", first, second)
	}
	all["https://example.com/repo@main"] = fakeRepo{commit: "c2", files: map[string]string{"a": "two"}}
	p.PublishAndWait(runWith("r3", src))
	if moved := p.waitFetched(t, "r3")[0]; moved.Revision != "c2" || untar(t, w.content(t, moved))["a"] != "two" {
		t.Errorf("fetched %+v", moved)
	}
}

func TestWhatRepositoriesRefuse(t *testing.T) {
	all := repositories{
		"https://example.com/private@":  {err: fmt.Errorf("%w: authentication required", store.ErrRefused)},
		"https://example.com/up@":       {commit: "c", files: map[string]string{"../x": "y"}},
		"https://example.com/link@":     {commit: "c", files: map[string]string{"a/../../x": "-> y"}},
		"https://example.com/absolute@": {commit: "c", files: map[string]string{"/etc/passwd": "y"}},
		"https://example.com/forged@":   {commit: "c", files: map[string]string{"a\n0123  b": "y"}},
		"https://example.com/linked@":   {commit: "c", files: map[string]string{"a\x1bb": "-> y"}},
		"https://example.com/many@":     {commit: "c", files: map[string]string{"a": "1", "b": "2", "c": "-> a", "d": "4"}},
		"https://example.com/refs@":     {err: fmt.Errorf("its list is too long: %w", errors.ErrUnsupported)},
		"https://example.com/long@":     {err: fmt.Errorf("%w: %s", store.ErrRefused, strings.Repeat("x", 1<<20))},
		"https://example.com/large@":    {commit: "c", files: map[string]string{"a": strings.Repeat("x", 2000)}},
	}
	for name, tt := range map[string]struct {
		src    data
		reason event.Reason
		want   string
	}{
		"a repository that is not there":       {data{src: "git+https://example.com/gone@v1"}, event.FetchFailed, "no such repository"},
		"one that does not let us in":          {data{src: "git+https://example.com/private"}, event.FetchFailed, "the platform is not let in"},
		"a file that leads out":                {data{src: "git+https://example.com/up"}, event.SourceRefused, "cannot be a file"},
		"a link that leads out":                {data{src: "git+https://example.com/link"}, event.SourceRefused, "cannot be a link"},
		"an absolute name":                     {data{src: "git+https://example.com/absolute"}, event.SourceRefused, "cannot be a file"},
		"a line in a name":                     {data{src: "git+https://example.com/forged"}, event.SourceRefused, `"a\n0123  b" cannot be a file: its name holds a control character`},
		"a control character in a link's name": {data{src: "git+https://example.com/linked"}, event.SourceRefused, "cannot be a link: its name holds a control character"},
		"more files than are allowed":          {data{src: "git+https://example.com/many"}, event.DataTooLarge, "more than the 3 files"},
		"more references than are read":        {data{src: "git+https://example.com/refs"}, event.FetchFailed, "cannot be read: its list is too long"},
		"a server that says very much":         {data{src: "git+https://example.com/long"}, event.FetchFailed, "xxx…"},
		"more than is allowed":                 {data{src: "git+https://example.com/large"}, event.DataTooLarge, "more than the 1000 bytes"},
		"a host that settings do not allow":    {data{src: "git+https://example.org/x"}, event.SourceRefused, `host "example.org" is not one`},
		"a private address":                    {data{src: "git+https://10.0.0.1/x"}, event.SourceRefused, "is not public"},
		"another digest than that of the list": {data{src: "git+https://example.com/up", sha256: sha256Of(nil)}, event.SourceRefused, "cannot be a file"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newFixture(t), quick()
			w.clone = all.open
			s.Sources.Hosts, s.Sources.MaxSize, s.Sources.MaxFiles = []string{"example.com", "10.0.0.1"}, 1000, 3
			p := w.start(t, s)
			p.PublishAndWait(runWith("r1", tt.src))
			if got := p.waitFinished(t, "r1"); got.Reason != tt.reason || !strings.Contains(got.Message, tt.want) {
				t.Errorf("finished %s: %s\nwant %s: %s", got.Reason, got.Message, tt.reason, tt.want)
			}
			w.waitClean(t)
		})
	}
}
