package git_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/git"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

func TestWhatAReferenceHasIsRead(t *testing.T) {
	url, commits := serve(t, "")
	all := map[string]string{"a.txt": "one", "dir/b": "two", "dir/run*": "#!/bin/sh", "dir.c": "three", "link": "-> a.txt"}
	old := map[string]string{"a.txt": "zero"}
	for name, tt := range map[string]struct {
		ref, path string
		commit    string
		want      map[string]string
	}{
		"what it shows first":  {commit: commits[1], want: all},
		"a branch":             {ref: "main", commit: commits[1], want: all},
		"HEAD":                 {ref: "HEAD", commit: commits[1], want: all},
		"a short commit":       {ref: commits[1][:7], commit: commits[1], want: all},
		"one that a tag has":   {ref: commits[0][:12], commit: commits[0], want: old},
		"a branch with a path": {ref: "feature/x", commit: commits[0], want: old},
		"a tag":                {ref: "light", commit: commits[0], want: old},
		"a tag with a message": {ref: "v1", commit: commits[0], want: old},
		"a full reference":     {ref: "refs/tags/v1", commit: commits[0], want: old},
		"a commit":             {ref: commits[0], commit: commits[0], want: old},
		"a folder of it":       {path: "dir", commit: commits[1], want: map[string]string{"b": "two", "run*": "#!/bin/sh"}},
		"a file of it":         {path: "dir/b", commit: commits[1], want: map[string]string{"": "two"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := git.Opener{}.Open(t.Context(), url, tt.ref, "", http.DefaultClient)
			if err != nil {
				t.Fatal(err)
			}
			received := 0
			if err := r.Fetch(t.Context(), func(n int) error { received += n; return nil }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, walk(t, r, tt.path)); diff != "" || received == 0 || r.Commit() != tt.commit {
				t.Errorf("%d bytes of commit %s came, want %s; (-want +got):\n%s", received, r.Commit(), tt.commit, diff)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatIsNotThereIsTold(t *testing.T) {
	url, _ := serve(t, "")
	for name, tt := range map[string]struct {
		url, ref string
		want     error
	}{
		"a reference":      {url, "gone", store.ErrNotFound},
		"an unknown short": {url, "0000000", store.ErrNotFound},
		"a repository":     {url + "s", "", store.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := (git.Opener{}).Open(t.Context(), tt.url, tt.ref, "", http.DefaultClient); !errors.Is(err, tt.want) {
				t.Errorf("Open: %v, want %v", err, tt.want)
			}
		})
	}
	r, err := git.Opener{}.Open(t.Context(), url, "", "", http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it is looked at below
	if err := r.Fetch(t.Context(), func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.Walk("gone", nil, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Walk: %v", err)
	}
}

func TestAShortCommitThatNobodyShowsIsToBeWrittenWhole(t *testing.T) {
	url, _ := serve(t, "")
	_, err := git.Opener{}.Open(t.Context(), url, "0000000", "", http.DefaultClient)
	if err == nil || !strings.Contains(err.Error(), "write all 40 digits") {
		t.Errorf("Open: %v", err)
	}
}

func TestWhatAServerAnswersInsteadIsToldApartAndNotRepeated(t *testing.T) {
	const words = "a page of a thousand words "
	for name, tt := range map[string]struct {
		status     int
		retryAfter string
		want       func(err error) bool
	}{
		"that it does not let us in":  {status: 401, want: func(err error) bool { return errors.Is(err, store.ErrRefused) }},
		"that we may not":             {status: 403, want: func(err error) bool { return errors.Is(err, store.ErrRefused) }},
		"that there is none":          {status: 404, want: func(err error) bool { return errors.Is(err, store.ErrNotFound) }},
		"that it is busy":             {status: 503, retryAfter: "7", want: func(err error) bool { return busy(err, 503, "7") }},
		"that it was asked too often": {status: 429, retryAfter: "8", want: func(err error) bool { return busy(err, 429, "8") }},
		"references without end":      {status: 200, want: func(err error) bool { return errors.Is(err, errors.ErrUnsupported) }},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tt.retryAfter)
				w.WriteHeader(tt.status)
				if tt.status != http.StatusOK {
					_, _ = io.WriteString(w, strings.Repeat(words, 100_000)) // or the client is gone
					return
				}
				endless(w)
			}))
			defer server.Close()
			_, err := git.Opener{}.Open(t.Context(), server.URL+"/repo", "", "", server.Client())
			if err == nil || !tt.want(err) || strings.Contains(err.Error(), words) {
				t.Errorf("Open: %.300v", err)
			}
		})
	}
}

func busy(err error, status int, retryAfter string) bool {
	b := new(store.UnavailableError)
	return errors.As(err, &b) && b.Status == status && b.RetryAfter == retryAfter
}

// endless lists references until the reader closes.
func endless(w io.Writer) {
	line := func(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
	hash := strings.Repeat("ab", 20)
	_, err := io.WriteString(w, line("# service=git-upload-pack\n")+"0000"+line(hash+" HEAD\x00shallow\n"))
	many := strings.Repeat(line(hash+" refs/heads/"+strings.Repeat("x", 200)+"\n"), 1000)
	for n := 0; err == nil && n < 1000; n++ {
		_, err = io.WriteString(w, many)
	}
}

func TestATokenIsSentAndNeverTold(t *testing.T) {
	url, _ := serve(t, "hunter2")
	if _, err := (git.Opener{}).Open(t.Context(), url, "", "", http.DefaultClient); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Open without: %v", err)
	}
	_, err := git.Opener{}.Open(t.Context(), url, "", "hunter3", http.DefaultClient)
	if !errors.Is(err, store.ErrRefused) || strings.Contains(err.Error(), "hunter3") {
		t.Errorf("Open with another: %v", err)
	}
	r, err := git.Opener{}.Open(t.Context(), url, "", "hunter2", http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Fetch(t.Context(), func(int) error { return nil }), r.Close()); err != nil {
		t.Error(err)
	}
}

func TestAFetchEndsWhenWhoCountsSaysSoAndLeavesNothing(t *testing.T) {
	url, _ := serve(t, "")
	t.Setenv("TMPDIR", t.TempDir())
	r, err := git.Opener{}.Open(t.Context(), url, "", "", http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := r.Fetch(t.Context(), func(int) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("Fetch: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if leftovers, err := os.ReadDir(os.TempDir()); err != nil || len(leftovers) > 0 {
		t.Errorf("left: %v, %v", leftovers, err)
	}
}

func TestWhatAProcessThatDiedHadFetchedIsRemoved(t *testing.T) {
	url, _ := serve(t, "")
	t.Setenv("TMPDIR", t.TempDir())
	dead := filepath.Join(os.TempDir(), "bai-git-dead")
	anHourAgo := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Mkdir(dead, 0o700), os.Chtimes(dead, anHourAgo, anHourAgo), os.Mkdir(dead+"-young", 0o700)); err != nil {
		t.Fatal(err)
	}
	r, err := git.Opener{}.Open(t.Context(), url, "", "", http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Fetch(t.Context(), func(int) error { return nil }), r.Close()); err != nil {
		t.Fatal(err)
	}
	leftovers, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil || len(leftovers) != 1 || leftovers[0] != dead+"-young" {
		t.Errorf("left: %q, %v", leftovers, err)
	}
}

func walk(t *testing.T, r *git.Repository, path string) map[string]string {
	t.Helper()
	got := make(map[string]string)
	err := r.Walk(path, func(name string, size int64, executable bool, content io.Reader) error {
		b, err := io.ReadAll(content)
		if int64(len(b)) != size {
			t.Errorf("%s has %d bytes, not %d", name, len(b), size)
		}
		if executable {
			name += "*"
		}
		got[name] = string(b)
		return err
	}, func(name, to string) error {
		got[name] = "-> " + to
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// serve serves a repository by git's own server, to clients with the token, and returns
// its URL and its commits.
func serve(t *testing.T, token string) (url string, commits []string) {
	t.Helper()
	where, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(where)), "git-http-backend")
	if _, missing := os.Stat(backend); err != nil || missing != nil {
		tooltest.Missing(t, "git or its git-http-backend is missing: apt-get install git")
	}
	root := t.TempDir()
	commits = repository(t, filepath.Join(root, "repo"))
	handler := &cgi.Handler{Path: backend, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=uploadpack.allowReachableSHA1InWant", "GIT_CONFIG_VALUE_0=true", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/repo", commits
}

func repository(t *testing.T, dir string) (commits []string) {
	t.Helper()
	run := func(args ...string) string {
		c := exec.CommandContext(t.Context(), "git", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		output, err := c.CombinedOutput()
		if err != nil {
			t.Fatal(fmt.Errorf("git %v: %w: %s", args, err, output))
		}
		return strings.TrimSpace(string(output))
	}
	write := func(name, content string, mode os.FileMode) {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", "zero", 0o600)
	run("init", "-b", "main")
	commit := func() {
		run("add", ".")
		run("commit", "-m", "x")
		commits = append(commits, run("rev-parse", "HEAD"))
	}
	commit()
	run("tag", "light")
	run("tag", "-a", "v1", "-m", "x")
	run("branch", "feature/x")
	write("a.txt", "one", 0o600)
	write("dir/b", "two", 0o600)
	write("dir/run", "#!/bin/sh", 0o700)
	write("dir.c", "three", 0o600)
	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	commit()
	return commits
}
