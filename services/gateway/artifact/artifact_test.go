package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/gateway/artifact"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/storetest"
)

const run = "01k8h4fzqh3v7x9y2m5n8p0r4t"

// sum is the digest of "hello".
const sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// countingStore is an object store that counts its objects.
type countingStore struct {
	*blob.Store

	n atomic.Int64
}

func (c *countingStore) Put(ctx context.Context, key string, size int64, withMD5 bool, fill func(w io.Writer) error) (store.Object, error) {
	o, err := c.Store.Put(ctx, key, size, withMD5, fill)
	if err == nil {
		c.n.Add(1)
	}
	return o, err
}

func (c *countingStore) Delete(ctx context.Context, key string) error {
	c.n.Add(-1)
	return c.Store.Delete(ctx, key)
}

func objects(t *testing.T) *countingStore {
	t.Helper()
	s, err := blob.Open(t.Context(), blob.Settings{URL: "file://" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &countingStore{Store: s}
}

func newRepository(t *testing.T, s artifact.Settings) (*artifact.Repository, *countingStore) {
	t.Helper()
	o := objects(t)
	return artifact.New(s, o, storetest.Open(t), noon), o
}

func put(t *testing.T, k *artifact.Repository, name, content string) (bool, error) {
	t.Helper()
	_, repeated, err := k.Put(t.Context(), run, name, -1, strings.NewReader(content))
	return repeated, err
}

func TestAFileIsKeptWholeAndReadFromAnyPlace(t *testing.T) {
	k, _ := newRepository(t, artifact.Settings{})
	const name = "1/benchmark-0/a dir/ö%2F.json"
	if repeated, err := put(t, k, name, "hello"); repeated || err != nil {
		t.Fatal(repeated, err)
	}
	files, err := k.List(t.Context(), run)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	want := artifact.File{Name: name, Object: files[0].Object, Size: 5, SHA256: sum, Time: noon()}
	if diff := cmp.Diff(want, files[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	readAtOffsets(t, k, name)
}

func readAtOffsets(t *testing.T, k *artifact.Repository, name string) {
	t.Helper()
	for offset, want := range map[int64]string{0: "hello", 3: "lo", 5: ""} {
		_, r, err := k.Open(t.Context(), run, name, offset)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != want || err != nil {
			t.Errorf("from %d: %q, %v", offset, got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, offset := range []int64{-1, 6} {
		if _, _, err := k.Open(t.Context(), run, name, offset); !errors.As(err, new(*artifact.OffsetError)) {
			t.Errorf("from %d: %v", offset, err)
		}
	}
	if _, _, err := k.Open(t.Context(), run, "1/benchmark-0/none", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
	if _, _, err := k.Open(t.Context(), run[:25]+"x", name, 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of another run: %v", err)
	}
}

func TestTheSameAgainIsFineAndAnotherContentIsRefused(t *testing.T) {
	k, o := newRepository(t, artifact.Settings{})
	for i, content := range []string{"hello", "hello", "hallo", "hell", "hello!"} {
		repeated, err := put(t, k, "1/benchmark-0/a", content)
		if i < 2 && (err != nil || repeated != (i == 1)) {
			t.Errorf("%q: %v, %v", content, repeated, err)
		}
		if i >= 2 && !errors.As(err, new(*artifact.ContentConflictError)) {
			t.Errorf("%q: %v, want it refused", content, err)
		}
	}
	if n := o.n.Load(); n != 1 {
		t.Errorf("%d objects", n)
	}
}

func TestOfManyAtOnceOneIsKeptAndNothingIsLeftBehind(t *testing.T) {
	k, o := newRepository(t, artifact.Settings{})
	var wg sync.WaitGroup
	var kept, repeated, taken atomic.Int32
	for i := range 16 {
		wg.Go(func() {
			_, again, err := k.Put(context.Background(), run, "1/benchmark-0/a", -1, strings.NewReader([]string{"hello", "hallo"}[i%2]))
			switch {
			case errors.As(err, new(*artifact.ContentConflictError)):
				taken.Add(1)
			case err != nil:
				t.Error(err)
			case again:
				repeated.Add(1)
			default:
				kept.Add(1)
			}
		})
	}
	wg.Wait()
	if kept.Load() != 1 || repeated.Load() != 7 || taken.Load() != 8 || o.n.Load() != 1 {
		t.Errorf("%d kept, %d repeated, %d taken, %d objects", kept.Load(), repeated.Load(), taken.Load(), o.n.Load())
	}
}

func TestOfAnUploadThatIsCutNothingIsSeen(t *testing.T) {
	k, o := newRepository(t, artifact.Settings{})
	body := io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, _, err := k.Put(t.Context(), run, "1/benchmark-0/a", 5, body); !errors.As(err, new(*artifact.BodyError)) {
		t.Errorf("put: %v", err)
	}
	if files, err := k.List(t.Context(), run); len(files) != 0 || err != nil || o.n.Load() != 0 {
		t.Errorf("listed %v, %v, of %d objects", files, err, o.n.Load())
	}
	if _, err := put(t, k, "1/benchmark-0/a", "hello"); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestWhatIsTooMuchIsRefusedAndLeavesNothing(t *testing.T) {
	k, o := newRepository(t, artifact.Settings{MaxSize: 5, MaxTotal: 8, MaxFiles: 3})
	for i, tt := range []struct {
		name, content string
		size          int64
		want          string
	}{
		{"a", "hello!", -1, "max_size"},
		{"a", "", 6, "max_size"},
		{"a", "hello", -1, ""},
		{"b", "hell", -1, "max_total"},
		{"b", "he", -1, ""},
		{"c", "l", -1, ""},
		{"d", "", -1, "max_files"},
	} {
		_, _, err := k.Put(t.Context(), run, "1/benchmark-0/"+tt.name, tt.size, strings.NewReader(tt.content))
		if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, new(*artifact.LimitError)) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d: %v, want %q", i, err, tt.want)
		}
	}
	if n := o.n.Load(); n != 3 {
		t.Errorf("%d objects", n)
	}
}

func TestNames(t *testing.T) {
	for name, fine := range map[string]bool{
		"1/benchmark-0/a": true, "12/worker-10/a/b c/.d/é☃": true, "1/benchmark-0/" + strings.Repeat("x", 1010): true, "1/benchmark-0/...": true,
		"": false, "a": false, "1/benchmark-0": false, "1/benchmark-0/": false, "0/benchmark-0/a": false, "01/benchmark-0/a": false, "-1/benchmark-0/a": false,
		"1/benchmark/a": false, "1/-0/a": false, "1/Bench-0/a": false, "1/benchmark-00/a": false, "1/benchmark-0/../a": false, "1/benchmark-0/a/..": false,
		"1/benchmark-0/./a": false, "1/benchmark-0//a": false, "/1/benchmark-0/a": false, "../1/benchmark-0/a": false, "1/benchmark-0/a\x00": false,
		"1/benchmark-0/\xff": false,
		"1/benchmark-0/a\nb": true, `1/benchmark-0/C:\x`: true, "1/benchmark-0/2026-11-23T07:47:50.json": true, "1/benchmark-0/\x1b[2J\u202e": true,
		"1/benchmark-0/" + strings.Repeat("x/", 2000): false, "1/benchmark-0/" + strings.Repeat("x/", 2000) + "x": true, "1/benchmark-0/" + strings.Repeat("x", 5000): false,
	} {
		if err := artifact.CheckName(name); (err == nil) != fine {
			t.Errorf("%.40q: %v", name, err)
		}
	}
}

func TestEveryNameThatLinuxAllowsIsKept(t *testing.T) {
	k, _ := newRepository(t, artifact.Settings{})
	names := []string{"1/benchmark-0/\x01\x7f", "1/benchmark-0/a\tb", "1/benchmark-0/a\nb", "1/benchmark-0/a:b", `1/benchmark-0/a\b`, "1/benchmark-0/a\u202eb"}
	for _, name := range names {
		if repeated, err := put(t, k, name, name); repeated || err != nil {
			t.Errorf("%q: %v, %v", name, repeated, err)
		}
	}
	files, err := k.List(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name)
		_, r, err := k.Open(t.Context(), run, f.Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(r); string(content) != f.Name || err != nil {
			t.Errorf("%q holds %q, %v", f.Name, content, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongNamesThatBeginAlikeAreOthers(t *testing.T) {
	k, _ := newRepository(t, artifact.Settings{})
	var want []string
	for i := range 3 {
		name := "1/benchmark-0/" + strings.Repeat("x", 900) + fmt.Sprint(i)
		want = append(want, name)
		if repeated, err := put(t, k, name, fmt.Sprint(i)); repeated || err != nil {
			t.Fatal(repeated, err)
		}
	}
	files, err := k.List(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMoreFilesThanAreLookedUpAtOnceAreAllListed(t *testing.T) {
	k, _ := newRepository(t, artifact.Settings{})
	for i := range 205 {
		if _, err := put(t, k, fmt.Sprintf("1/benchmark-0/%03d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	files, err := k.List(t.Context(), run)
	if err != nil || len(files) != 205 || files[204].Name != "1/benchmark-0/204" {
		t.Errorf("%d files, %v", len(files), err)
	}
}
