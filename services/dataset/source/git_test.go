package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// fakeRepository has the file a, of 3 bytes, and then ends its walk with an error.
type fakeRepository struct {
	content string
	fault   error // that reading the file ends with
	end     error
	fetches int
}

// Commit implements source.Repository.
func (*fakeRepository) Commit() string { return "c" }

// Fetch implements source.Repository.
func (r *fakeRepository) Fetch(_ context.Context, came func(n int) error) error {
	r.fetches++
	return came(1)
}

// Walk implements source.Repository.
func (r *fakeRepository) Walk(_ string, file func(string, int64, bool, io.Reader) error, _ func(string, string) error) error {
	content := io.Reader(strings.NewReader(r.content))
	if r.fault != nil {
		content = io.MultiReader(content, faultyReader{r.fault})
	}
	if err := file("a", 3, false, content); err != nil {
		return err
	}
	return r.end
}

// Close implements source.Repository.
func (*fakeRepository) Close() error { return nil }

func repositoryReader(t *testing.T, of source.Repository) *source.Reader {
	t.Helper()
	r := reader(t, quick)
	r.ReadRepositories(func(context.Context, string, string, string, *http.Client) (source.Repository, error) { return of, nil })
	return r
}

func TestAFaultOfARepositoryIsToldApartFromOneOfTheSink(t *testing.T) {
	damaged := errors.New("damaged")
	for name, tt := range map[string]struct {
		repo    fakeRepository
		reason  event.Reason
		class   event.Class
		want    string
		fetches int
	}{
		"an unreadable file is tried again, and then fails": {
			repo:   fakeRepository{content: "o", fault: damaged},
			reason: event.FetchFailed, class: event.ClassInfra, want: "damaged; tried 7 times", fetches: 7,
		},
		"a file that ends early is tried again, and then fails": {
			repo: fakeRepository{content: "o"}, reason: event.FetchFailed, class: event.ClassInfra, want: "tried 7 times", fetches: 7,
		},
		"an unreadable folder is tried again, and then fails": {
			repo: fakeRepository{content: "one", end: damaged}, reason: event.FetchFailed, class: event.ClassInfra, want: "damaged; tried 7 times", fetches: 7,
		},
		"a folder that was not sent fails at once": {
			repo:   fakeRepository{content: "one", end: fmt.Errorf("%w: no folder", store.ErrNotFound)},
			reason: event.FetchFailed, class: event.ClassUser, want: "no folder", fetches: 1,
		},
		"a folder that cannot be read fails at once": {
			repo:   fakeRepository{content: "one", end: fmt.Errorf("%w: no folder", errors.ErrUnsupported)},
			reason: event.FetchFailed, class: event.ClassUser, want: "no folder", fetches: 1,
		},
		"a file over the limits fails at once": {
			repo:   fakeRepository{content: "one", end: fmt.Errorf("%w: a file", store.ErrTooLarge)},
			reason: event.DataTooLarge, class: event.ClassUser, want: "too large: a file", fetches: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := &tt.repo
			_, err := repositoryReader(t, repo).Get(t.Context(), source.Request{URL: "git+https://example.com/x"}, new(sink).put)
			wantError(t, err, tt.reason, tt.class, tt.want)
			if repo.fetches != tt.fetches {
				t.Errorf("%d fetches, want %d", repo.fetches, tt.fetches)
			}
		})
	}
}

func TestAFaultOfTheSinkIsReturnedAsItIs(t *testing.T) {
	for name, put := range map[string]source.Sink{
		"of a write": func(_ context.Context, _ int64, fill func(io.Writer) error) error {
			return fill(writer(func([]byte) (int, error) { return 0, syscall.ENOSPC }))
		},
		"of its end": func(_ context.Context, _ int64, fill func(io.Writer) error) error {
			return errors.Join(fill(io.Discard), syscall.ENOSPC)
		},
		"that a write showed first": func(_ context.Context, _ int64, fill func(io.Writer) error) error {
			return errors.Join(fill(writer(func([]byte) (int, error) { return 0, io.ErrClosedPipe })), syscall.ENOSPC)
		},
		"that says not found": func(context.Context, int64, func(io.Writer) error) error {
			return fmt.Errorf("%w: no bucket: %w", store.ErrNotFound, syscall.ENOSPC)
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := &fakeRepository{content: "one"}
			_, err := repositoryReader(t, repo).Get(t.Context(), source.Request{URL: "git+https://example.com/x"}, put)
			if own := new(source.Error); errors.As(err, &own) || !errors.Is(err, syscall.ENOSPC) || repo.fetches != 1 {
				t.Errorf("Get after %d fetches: %v", repo.fetches, err)
			}
		})
	}
}

func TestARepositoryThatIsNotStoredWithinTheDeadlineFails(t *testing.T) {
	s := quick
	s.Deadline = time.Millisecond
	r := reader(t, s)
	r.ReadRepositories(func(context.Context, string, string, string, *http.Client) (source.Repository, error) {
		return &fakeRepository{content: "one"}, nil
	})
	_, err := r.Get(t.Context(), source.Request{URL: "git+https://example.com/x"}, func(ctx context.Context, _ int64, _ func(io.Writer) error) error {
		<-ctx.Done()
		return ctx.Err()
	})
	wantError(t, err, event.FetchFailed, event.ClassInfra, "is not read within 1ms")
}

// faultyReader fails.
type faultyReader struct{ err error }

// Read implements io.Reader.
func (r faultyReader) Read([]byte) (int, error) { return 0, r.err }
