package blob_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const key = "objects/k1"

func TestWhatWasPutCanBeReadAndIsSummed(t *testing.T) {
	for name, size := range map[string]int{"nothing": 0, "a byte": 1, "less than a piece": 1000, "several pieces": 3<<20 + 17} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t, blob.Settings{})
			content := bytesOf(size)
			got, err := s.Put(t.Context(), key, -1, true, write(content))
			if err != nil {
				t.Fatal(err)
			}
			sum, sum5 := sha256.Sum256(content), md5.Sum(content)
			want := store.Object{Key: key, Size: int64(size), SHA256: hex.EncodeToString(sum[:]), MD5: hex.EncodeToString(sum5[:])}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Put (-want +got):\n%s", diff)
			}
			if !bytes.Equal(content, read(t, s, key)) {
				t.Error("what is read is not what was put")
			}
			if n, err := s.Size(t.Context(), key); err != nil || n != int64(size) {
				t.Errorf("Size: %d, %v", n, err)
			}
		})
	}
}

func TestMD5IsSummedOnlyWhenAskedFor(t *testing.T) {
	s, _ := open(t, blob.Settings{})
	o, err := s.Put(t.Context(), key, -1, false, write([]byte("foo")))
	if err != nil || o.MD5 != "" {
		t.Errorf("Put: %+v, %v", o, err)
	}
}

func TestAnObjectIsNotSeenBeforeItIsWhole(t *testing.T) {
	s, dir := open(t, blob.Settings{})
	_, err := s.Put(t.Context(), key, -1, false, func(w io.Writer) error {
		if _, err := w.Write(bytesOf(1 << 20)); err != nil {
			return err
		}
		if _, err := s.Size(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("half an object has a size: %v", err)
		}
		if got := keys(t, s); len(got) > 0 {
			t.Errorf("half an object is listed: %q", got)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, keys(t, s), key)
	want(t, files(t, dir), "objects/k1")
}

func TestAnErrorLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	for name, fill := range map[string]func(w io.Writer) error{
		"before the first byte": func(io.Writer) error { return broken },
		"in the middle": func(w io.Writer) error {
			_, err := w.Write(bytesOf(1 << 20))
			return errors.Join(err, broken)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := open(t, blob.Settings{})
			if _, err := s.Put(t.Context(), key, -1, false, fill); !errors.Is(err, broken) {
				t.Errorf("Put: %v, want %v", err, broken)
			}
			want(t, files(t, dir))
		})
	}
}

func TestAPutThatIsCanceledLeavesNothing(t *testing.T) {
	s, dir := open(t, blob.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Put(ctx, key, -1, false, func(w io.Writer) error {
		_, err := w.Write(bytesOf(1 << 20))
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	want(t, files(t, dir))
}

func TestWhatDoesNotFitIsRefusedAsNoSpace(t *testing.T) {
	for name, put := range map[string]struct {
		reserve, size int64
	}{
		"more than the disk has": {reserve: 1, size: 1 << 60},
		"the reserve is reached": {reserve: 1 << 60, size: -1},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := open(t, blob.Settings{Reserve: put.reserve})
			if _, err := s.Put(t.Context(), key, put.size, false, write([]byte("foo"))); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Put: %v, want %v", err, syscall.ENOSPC)
			}
			want(t, files(t, dir))
		})
	}
}

func TestADeadWritersFileIsRemovedAtTheStartAndALivingOnesIsNot(t *testing.T) {
	s, dir := open(t, blob.Settings{})
	dead := filepath.Join(dir, "objects", "k0.17.tmp")
	if err := errors.Join(os.Mkdir(filepath.Dir(dead), 0o755), os.WriteFile(dead, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Put(t.Context(), key, -1, false, func(w io.Writer) error {
		if _, err := w.Write(bytesOf(1 << 20)); err != nil {
			return err
		}
		reopen(t, dir)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, files(t, dir), "objects/k1")
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	s, _ := open(t, blob.Settings{})
	if _, err := s.Open(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Open: %v", err)
	}
	if _, err := s.Size(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Size: %v", err)
	}
	if err := s.Delete(t.Context(), key); err != nil {
		t.Errorf("Delete: %v", err)
	}
}

func TestAKeyThatLeavesItsPlaceIsRefused(t *testing.T) {
	s, _ := open(t, blob.Settings{})
	for _, bad := range []string{"", "k1", "objects/", "objects/../k1", "objects/a/b", "objects/k.tmp", "objects/K", "objects/" + strings.Repeat("k", 65)} {
		if _, err := s.Put(t.Context(), bad, -1, false, write(nil)); err == nil {
			t.Errorf("Put as %q was not refused", bad)
		}
	}
}

func TestAKeyIsUsedOnce(t *testing.T) {
	s, _ := open(t, blob.Settings{})
	for i, content := range []string{"first", "second"} {
		if _, err := s.Put(t.Context(), key, -1, false, write([]byte(content))); (err != nil) != (i == 1) {
			t.Errorf("Put of the %s: %v", content, err)
		}
	}
	if got := string(read(t, s, key)); got != "first" {
		t.Errorf("the object says %q", got)
	}
}

func TestDeletedObjectsAreGone(t *testing.T) {
	s, dir := open(t, blob.Settings{})
	for _, k := range []string{"objects/b", "objects/a", "objects/c"} {
		if _, err := s.Put(t.Context(), k, 1, false, write([]byte(k))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), "objects/b"); err != nil {
		t.Fatal(err)
	}
	want(t, keys(t, s), "objects/a", "objects/c")
	want(t, files(t, dir), "objects/a", "objects/c")
}

func TestAFolderIsFoundUnderEveryNameThatLinuxAllows(t *testing.T) {
	for _, name := range []string{"plain", "with space", "a#b", "what?x=1", "100%", "a%zz", "a%25b", "line\nfeed", "{run}", "ünï ☃", "b\xff\xfe", "a:b", `back\slash`, "&+;='\""} {
		dir := filepath.Join(t.TempDir(), name, "objects")
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := blob.Open(t.Context(), blob.Settings{URL: blob.FolderURL(dir)})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if _, err := s.Put(t.Context(), key, -1, false, write([]byte("foo"))); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		want(t, files(t, dir), key)
		if u, err := url.Parse(s.PodURL()); err != nil || u.Path != dir {
			t.Errorf("%q: pods are told %q, %v", name, s.PodURL(), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAPodReadsFromTheSameFolderUnlessToldOtherwise(t *testing.T) {
	s, dir := open(t, blob.Settings{})
	if got := s.PodURL(); got != "file://"+dir {
		t.Errorf("PodURL: %s", got)
	}
	s, _ = open(t, blob.Settings{PodURL: "https://data.example.com"})
	if got := s.PodURL(); got != "https://data.example.com" {
		t.Errorf("PodURL: %s", got)
	}
}

func TestSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		settings blob.Settings
		want     string
	}{
		"no URL":             {blob.Settings{}, `objects.url: "" is not a URL: file:///folder is one`},
		"a path":             {blob.Settings{URL: "/data"}, `objects.url: "/data" is not a URL: file:///folder is one`},
		"a relative folder":  {blob.Settings{URL: "file://data"}, `objects.url: "file://data" does not name an absolute folder: file:///folder does`},
		"no bucket":          {blob.Settings{URL: "s3:///x"}, `objects.url: "s3:///x" does not name a bucket and nothing else: s3://bucket/prefix does`},
		"a way out":          {blob.Settings{URL: "s3://x/a/.."}, `objects.url: "s3://x/a/.." has a prefix that not every bucket keeps as it is: s3://bucket/prefix`},
		"a secret in a URL":  {blob.Settings{URL: "s3://u:p@x"}, `objects.url: "s3://u:xxxxx@x" does not name a bucket and nothing else: s3://bucket/prefix does`},
		"a bucket for pods":  {blob.Settings{URL: "file:///data", PodURL: "s3://x"}, `objects.pod_url: "s3://x" is no URL that pods read: use file, http or https`},
		"all faults at once": {blob.Settings{URL: "x", Reserve: -1}, "objects.url: \"x\" is not a URL: file:///folder is one\nobjects.reserve: must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.settings.Validate(); err == nil || err.Error() != tt.want {
				t.Errorf("Validate: %v, want %s", err, tt.want)
			}
			if _, err := blob.Open(t.Context(), tt.settings); err == nil {
				t.Error("Open took them")
			}
		})
	}
}

func open(t *testing.T, s blob.Settings) (*blob.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s.URL = "file://" + dir
	b, err := blob.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, dir
}

// reopen opens the store of dir as another process would.
func reopen(t *testing.T, dir string) {
	t.Helper()
	s, err := blob.Open(t.Context(), blob.Settings{URL: "file://" + dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func write(content []byte) func(w io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(content))
		return err
	}
}

func read(t *testing.T, s *blob.Store, key string) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

func keys(t *testing.T, s *blob.Store) []string {
	t.Helper()
	var all []string
	for o, err := range s.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.Key)
	}
	return all
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	all, err := fs.Glob(os.DirFS(dir), "*/*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func want(t *testing.T, got []string, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func bytesOf(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
}

func TestWhatRunsLeaveIsReadFromAnyPlaceAndIsNoDataSet(t *testing.T) {
	s, err := blob.Open(t.Context(), blob.Settings{URL: "file://" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing is lost with it
	const key = "artifacts/run1x"
	if _, err := s.Put(t.Context(), key, -1, false, func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }); err != nil {
		t.Fatal(err)
	}
	for offset, want := range map[int64]string{0: "hello", 2: "llo", 5: ""} {
		r, err := s.OpenAt(t.Context(), key, offset)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if string(got) != want || err != nil {
			t.Errorf("from %d: %q, %v, want %q", offset, got, err, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for info, err := range s.All(t.Context()) {
		t.Errorf("listed %v, %v", info, err)
	}
	if _, err := s.OpenAt(t.Context(), "artifacts/none", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("opened what is not there: %v", err)
	}
}
