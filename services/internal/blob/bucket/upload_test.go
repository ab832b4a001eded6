package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
)

// fakeS3 keeps S3's promises for one upload: it carries out a request that it has
// received completely, even if the client does not wait for the answer, and a part that
// arrives after an abort remains until the next abort.
type fakeS3 struct {
	mu     sync.Mutex
	parts  map[int]int // number → size
	object bool
	aborts int

	slow    map[string]time.Duration // how long requests take, by name
	lost    map[string]int           // requests whose connection breaks (0), or that a proxy answers with a status
	refuse  map[string]int           // requests that are refused with a status
	ignored int                      // aborts that remove nothing
	hanging map[string]int           // number of requests, by name, that are taken and never answered
	hung    int                      // number of these
	working sync.WaitGroup           // requests that are carried out
}

// name is the name of a request in the tables above.
func name(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Has("uploads"):
		return "create"
	case q.Has("partNumber"):
		return "part " + q.Get("partNumber")
	case r.Method == http.MethodPut:
		return "put"
	case r.Method == http.MethodPost:
		return "complete"
	case r.Method == http.MethodDelete:
		return "abort"
	}
	return "list"
}

// Do implements s3.HTTPClient.
func (f *fakeS3) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if f.hangs(r) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	responses := make(chan *http.Response, 1)
	f.working.Go(func() {
		time.Sleep(f.slow[name(r)])
		responses <- f.answer(r, len(body)) //nolint:bodyclose // its client closes it
	})
	switch status, lost := f.lost[name(r)]; {
	case lost && status == 0:
		return nil, io.ErrUnexpectedEOF
	case lost:
		return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
	}
	select {
	case resp := <-responses:
		return resp, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// hangs reports whether a request is one that is never answered.
func (f *fakeS3) hangs(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hanging[name(r)] == 0 {
		return false
	}
	f.hanging[name(r)]--
	f.hung++
	return true
}

func (f *fakeS3) answer(r *http.Request, size int) *http.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	status, body := http.StatusOK, ""
	switch operation := name(r); {
	case f.refuse[operation] != 0:
		status = f.refuse[operation]
	case operation == "create":
		body = "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>"
	case operation == "put":
		f.object = true
	case operation == "complete":
		f.object, f.parts = true, map[int]int{}
		body = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"
	case operation == "abort":
		if f.aborts++; f.aborts > f.ignored {
			f.parts = map[int]int{}
		}
		status = http.StatusNoContent
	case operation == "list" && len(f.parts) == 0:
		status, body = http.StatusNotFound, "<Error><Code>NoSuchUpload</Code></Error>"
	case operation == "list":
		body = "<ListPartsResult>"
		for _, n := range slices.Sorted(maps.Keys(f.parts)) {
			body += fmt.Sprintf("<Part><PartNumber>%d</PartNumber><Size>%d</Size></Part>", n, f.parts[n])
		}
		body += "</ListPartsResult>"
	default:
		n, _ := strconv.Atoi(r.URL.Query().Get("partNumber")) // S3's client wrote it
		f.parts[n] = size
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Etag": {`"tag"`}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// partsLeft waits until nothing is under way at the server.
func (f *fakeS3) partsLeft() int {
	f.working.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.parts)
}

// upload writes that many parts and then ends, with end's error if there is one. It
// returns the log, too.
func (f *fakeS3) upload(ctx context.Context, parts int, end func() error) ([]observer.LoggedEntry, error) {
	f.parts = map[int]int{}
	core, logs := observer.New(zap.InfoLevel)
	write := bucket.Uploader(s3.New(s3.Options{
		HTTPClient: f, BaseEndpoint: aws.String("http://s3.invalid"), Region: "us-east-1", UsePathStyle: true, Credentials: aws.AnonymousCredentials{},
	}), "team", zap.New(core))
	const part = 5 << 20
	from, to := io.Pipe()
	go func() {
		_, err := to.Write(make([]byte, parts*part))
		if err == nil {
			time.Sleep(10 * time.Millisecond) // the last part is on its way
			err = end()
		}
		_ = to.CloseWithError(err) // never fails
	}()
	err := write(ctx, "objects/a", from, part, 2)
	_ = from.CloseWithError(err) // likewise
	return logs.All(), err
}

var errBroken = errors.New("the source is broken")

func broken() error { return errBroken }

func TestAPartUnderWayEndsBeforeItsUploadIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeS3{slow: map[string]time.Duration{"part 3": bucket.FinishTimeout - time.Millisecond}}
		ctx, cancel := context.WithCancel(t.Context())
		logs, err := f.upload(ctx, 3, func() error { cancel(); return ctx.Err() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("upload: %v", err)
		}
		if parts := f.partsLeft(); parts > 0 || f.aborts != 1 || len(logs) > 0 {
			t.Errorf("%d parts are left after %d aborts, and the log says %v; want 0, 1, nothing", parts, f.aborts, logs)
		}
	})
}

func TestAPartThatArrivesAfterTheAbortIsRemoved(t *testing.T) {
	for name, f := range map[string]*fakeS3{
		"of a request that took too long":             {slow: map[string]time.Duration{"part 3": bucket.FinishTimeout + 2*time.Second}},
		"of a request whose connection broke":         {slow: map[string]time.Duration{"part 3": time.Second}, lost: map[string]int{"part 3": 0}},
		"of a request that a proxy answered for":      {slow: map[string]time.Duration{"part 3": time.Second}, lost: map[string]int{"part 3": http.StatusGatewayTimeout}},
		"in a bucket that does not let us list parts": {slow: map[string]time.Duration{"part 3": bucket.FinishTimeout + 2*time.Second}, refuse: map[string]int{"list": http.StatusForbidden}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				logs, err := f.upload(ctx, 3, func() error { cancel(); return errBroken })
				if err == nil {
					t.Error("the upload did not fail")
				}
				if parts := f.partsLeft(); parts > 0 || len(logs) > 0 {
					t.Errorf("%d parts are left after %d aborts, and the log says %v", parts, f.aborts, logs)
				}
			})
		})
	}
}

func TestARequestThatIsNeverAnsweredIsSentAgain(t *testing.T) {
	for operation, parts := range map[string]int{"put": 0, "create": 2, "part 2": 2, "complete": 2} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeS3{hanging: map[string]int{operation: 1}}
				logs, err := f.upload(t.Context(), parts, func() error { return nil })
				if err != nil || !f.object || f.hung != 1 || len(logs) > 0 {
					t.Errorf("upload: %v, the object is there: %t, %d requests hung, and the log says %v", err, f.object, f.hung, logs)
				}
			})
		})
	}
}

func TestAnUploadToAServerThatNeverAnswersFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, began := &fakeS3{hanging: map[string]int{"part 2": 1000}}, time.Now()
		_, err := f.upload(t.Context(), 2, func() error { return nil })
		if err == nil || !strings.Contains(err.Error(), "has not answered within 10m0s") {
			t.Errorf("upload: %v", err)
		}
		if took := time.Since(began); took > time.Hour || f.partsLeft() > 0 {
			t.Errorf("it took %s, and %d parts are left", took, f.partsLeft())
		}
	})
}

func TestAReadOfAServerThatStopsFails(t *testing.T) {
	for name, sent := range map[string]string{"before its answer": "", "amid its answer": "the first half"} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if sent != "" {
					w.Header().Set("Content-Length", "1000")
					_, _ = io.WriteString(w, sent)
					_ = http.NewResponseController(w).Flush()
				}
				<-closed
			}))
			defer server.Close()
			defer close(closed)
			api := s3.New(s3.Options{
				BaseEndpoint: aws.String(server.URL), Region: "us-east-1", UsePathStyle: true, Credentials: aws.AnonymousCredentials{},
				Retryer: aws.NopRetryer{},
			}, bucket.LimitSilence(20*time.Millisecond))
			got, err := api.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("team"), Key: aws.String("a")})
			if err == nil {
				_, err = io.ReadAll(got.Body)
			}
			if err == nil || !strings.Contains(err.Error(), "20ms") {
				t.Errorf("read: %v, want the limit", err)
			}
		})
	}
}

func TestAnUploadIsAbortedUntilNoPartsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeS3{ignored: 3}
		logs, err := f.upload(t.Context(), 3, broken)
		if parts := f.partsLeft(); !errors.Is(err, errBroken) || parts > 0 || f.aborts != 4 || len(logs) > 0 {
			t.Errorf("%v: %d parts are left after %d aborts, and the log says %v", err, parts, f.aborts, logs)
		}
	})
}

func TestAnUploadThatCannotBeAbortedIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		f    *fakeS3
		want string
	}{
		"as the bucket refuses":         {&fakeS3{refuse: map[string]int{"abort": http.StatusForbidden}}, "abort: "},
		"as the bucket does not answer": {&fakeS3{refuse: map[string]int{"abort": http.StatusServiceUnavailable}}, "abort: "},
		"as the list fails":             {&fakeS3{refuse: map[string]int{"list": http.StatusInternalServerError}}, "list parts: "},
		"as the parts stay":             {&fakeS3{ignored: 1000}, "2 parts are listed after "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				logs, err := c.f.upload(t.Context(), 2, broken)
				if !errors.Is(err, errBroken) {
					t.Errorf("upload: %v, want the reason of the abort", err)
				}
				if took := time.Since(began); took > bucket.AbortTimeout+time.Second {
					t.Errorf("it took %s", took)
				}
				wantLogged(t, logs, c.want)
			})
		})
	}
}

// wantLogged wants one entry, with the place of the upload and an error that begins
// with a text.
func wantLogged(t *testing.T, logs []observer.LoggedEntry, text string) {
	t.Helper()
	if len(logs) != 1 {
		t.Fatalf("the log says %v", logs)
	}
	fields := logs[0].ContextMap()
	if fields["key"] != "objects/a" || fields["bucket"] != "team" || fields["upload"] != "u1" || !strings.HasPrefix(fmt.Sprint(fields["error"]), text) {
		t.Errorf("the log says %v", fields)
	}
}

func TestAnObjectThatIsBeingStoredWhenItIsCanceledIsStored(t *testing.T) {
	for name, parts := range map[string]int{"as a whole": 0, "in parts": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeS3{slow: map[string]time.Duration{"put": 2 * time.Second, "complete": 2 * time.Second}}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				_, err := f.upload(ctx, parts, func() error { return nil })
				remaining := f.partsLeft()
				if err != nil || !f.object || remaining > 0 || ctx.Err() == nil {
					t.Errorf("upload: %v, the object is there: %v, and %d parts", err, f.object, remaining)
				}
			})
		})
	}
}

func TestAnUploadThatWasCanceledBeforeSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := &fakeS3{}
		if _, err := f.upload(ctx, 0, func() error { return nil }); !errors.Is(err, context.Canceled) || f.object {
			t.Errorf("upload: %v, and the object is there: %v", err, f.object)
		}
	})
}
