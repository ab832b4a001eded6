package data_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/gateway/data"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// fakeDatasetCache is a DatasetCache and a Prefetcher in memory.
type fakeDatasetCache struct {
	stored     []dataset.Stored
	damaged    map[string]bool
	prefetched []dataset.Source
	endings    map[string]*dataset.Ending
}

// List implements data.Cache.
func (h *fakeDatasetCache) List(context.Context) ([]dataset.Stored, error) { return h.stored, nil }

// Verify implements data.Cache.
func (h *fakeDatasetCache) Verify(_ context.Context, sha256 string, read func(done, total int64)) (bool, error) {
	for _, d := range h.stored {
		if d.SHA256 == sha256 {
			read(d.Size, d.Size)
			return !h.damaged[sha256], nil
		}
	}
	return false, fmt.Errorf("verify %s: %w", sha256, store.ErrNotFound)
}

// Evict implements data.Cache.
func (h *fakeDatasetCache) Evict(_ context.Context, sha256 string) error {
	for _, d := range h.stored {
		switch {
		case d.SHA256 != sha256:
		case len(d.Runs) > 0:
			return &dataset.InUseError{Message: "it is needed by " + strings.Join(d.Runs, ", ")}
		default:
			return nil
		}
	}
	return store.ErrNotFound
}

// Prefetch implements data.Prefetcher.
func (h *fakeDatasetCache) Prefetch(_ context.Context, s dataset.Source) (string, error) {
	if strings.HasPrefix(s.URL, "ftp:") {
		return "", &source.Error{Message: "nothing is read by ftp"}
	}
	h.prefetched = append(h.prefetched, s)
	return "prefetch-1", nil
}

// PrefetchResult implements data.Prefetcher.
func (h *fakeDatasetCache) PrefetchResult(_ context.Context, name string) (*dataset.Ending, string, error) {
	ending, ok := h.endings[name]
	if !ok {
		return nil, "", store.ErrNotFound
	}
	return ending, "", nil
}

// storedData returns a data set with that digest and size, and the runs that need it.
func storedData(sha256 string, size int64, runs ...string) dataset.Stored {
	return dataset.Stored{Object: store.Object{SHA256: sha256, Size: size}, Runs: runs}
}

func digest(c string) string { return strings.Repeat(c, 64) }

// serveData returns a client of a data server over h.
func serveData(t *testing.T, h *fakeDatasetCache) baiv1.DataServiceClient {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	baiv1.RegisterDataServiceServer(g, data.NewServer(h, h))
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Stop()
		if err := errors.Join(conn.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return baiv1.NewDataServiceClient(conn)
}

func TestTheListComesInPagesThatMissNothing(t *testing.T) {
	h := &fakeDatasetCache{}
	for _, c := range []string{"1", "3", "5", "7", "9"} {
		h.stored = append(h.stored, storedData(digest(c), 10))
	}
	client := serveData(t, h)
	var got []string
	req := &baiv1.ListDataRequest{PageSize: 2}
	for n := 0; ; n++ {
		res, err := client.ListData(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if res.GetTotalSize() != 50 {
			t.Errorf("%d bytes in all", res.GetTotalSize())
		}
		for _, d := range res.GetData() {
			got = append(got, d.GetSha256()[:1])
		}
		if n == 0 { // the data set in the token is deleted, and a new one is added
			h.stored = append(h.stored[:1:1], append([]dataset.Stored{storedData(digest("4"), 10)}, h.stored[2:]...)...)
		}
		if req.PageToken = res.GetNextPageToken(); req.GetPageToken() == "" {
			break
		}
	}
	if diff := cmp.Diff("134579", strings.Join(got, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDataAreVerified(t *testing.T) {
	h := &fakeDatasetCache{stored: []dataset.Stored{storedData(digest("a"), 7), storedData(digest("b"), 8)}, damaged: map[string]bool{digest("b"): true}}
	client := serveData(t, h)
	for sha256, want := range map[string]string{
		digest("a"): "VERDICT_WHOLE 7/7", digest("b"): "VERDICT_DAMAGED 8/8",
	} {
		stream, err := client.VerifyData(t.Context(), &baiv1.VerifyDataRequest{Sha256: sha256})
		if err != nil {
			t.Fatal(err)
		}
		var last *baiv1.VerifyDataResponse
		for res, err := stream.Recv(); err == nil; res, err = stream.Recv() {
			last = res
		}
		if got := fmt.Sprintf("%s %d/%d", last.GetVerdict(), last.GetDone(), last.GetTotal()); got != want {
			t.Errorf("%s: %s, want %s", sha256[:4], got, want)
		}
	}
}

func TestWhatIsNeededIsNotEvictedAndWhatIsGoneIsNoError(t *testing.T) {
	client := serveData(t, &fakeDatasetCache{stored: []dataset.Stored{storedData(digest("a"), 0), storedData(digest("b"), 0, "r1")}})
	for sha256, want := range map[string]string{
		digest("a"): "true OK ", digest("b"): "false FailedPrecondition it is needed by r1", digest("c"): "false OK ",
	} {
		res, err := client.EvictData(t.Context(), &baiv1.EvictDataRequest{Sha256: sha256})
		if got := fmt.Sprint(res.GetStored(), " ", status.Code(err), " ", status.Convert(err).Message()); got != want {
			t.Errorf("%s: %s, want %s", sha256[:4], got, want)
		}
	}
}

func TestAPrefetchIsFollowed(t *testing.T) {
	h := &fakeDatasetCache{endings: map[string]*dataset.Ending{
		"prefetch-1": nil,
		"prefetch-2": {Data: []event.Data{{SHA256: digest("a"), Size: 3, Revision: "c0ffee"}}},
		"prefetch-3": {Finished: &event.Finished{Reason: event.FetchFailed, Message: "404"}},
	}}
	client := serveData(t, h)
	res, err := client.PrefetchData(t.Context(), &baiv1.PrefetchDataRequest{Src: "s3://cats", Sha256: digest("A")})
	if err != nil || res.GetPrefetch() != "prefetch-1" {
		t.Errorf("prefetch: %v, %v", res, err)
	}
	if diff := cmp.Diff([]dataset.Source{{URL: "s3://cats", SHA256: digest("a")}}, h.prefetched); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"prefetch-1": "STATE_FETCHING 0", "prefetch-2": "STATE_FETCHED 3 c0ffee", "prefetch-3": "STATE_FAILED 0 FetchFailed 404",
	} {
		res, err := client.GetPrefetch(t.Context(), &baiv1.GetPrefetchRequest{Prefetch: name})
		got := strings.Join(strings.Fields(fmt.Sprintf("%s %d %s %s %s", res.GetState(), res.GetSize(), res.GetRevision(), res.GetReason(), res.GetMessage())), " ")
		if got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
}

func TestRequestsThatAreWrong(t *testing.T) {
	client := serveData(t, &fakeDatasetCache{})
	ctx := t.Context()
	verify := func(sha256 string) error {
		stream, err := client.VerifyData(ctx, &baiv1.VerifyDataRequest{Sha256: sha256})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	evict := func(sha256 string) error {
		_, err := client.EvictData(ctx, &baiv1.EvictDataRequest{Sha256: sha256})
		return err
	}
	prefetch := func(req *baiv1.PrefetchDataRequest) error {
		_, err := client.PrefetchData(ctx, req)
		return err
	}
	list := func(req *baiv1.ListDataRequest) error {
		_, err := client.ListData(ctx, req)
		return err
	}
	state := func(name string) error {
		_, err := client.GetPrefetch(ctx, &baiv1.GetPrefetchRequest{Prefetch: name})
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		code codes.Code
		want string
	}{
		"half a digest":           {verify("abc"), codes.InvalidArgument, `sha256: "abc" is not 64 hexadecimal digits in lower case`},
		"no digest":               {evict(""), codes.InvalidArgument, `sha256: "" is not 64`},
		"a digest in upper case":  {evict(digest("A")), codes.InvalidArgument, "in lower case"},
		"what is not stored":      {verify(digest("a")), codes.NotFound, "no data with sha256 aaaa"},
		"no source":               {prefetch(&baiv1.PrefetchDataRequest{}), codes.InvalidArgument, "src: is missing"},
		"a source without end":    {prefetch(&baiv1.PrefetchDataRequest{Src: strings.Repeat("x", 5000)}), codes.InvalidArgument, "src: has 5000 bytes, 4096 at most"},
		"a source that is wrong":  {prefetch(&baiv1.PrefetchDataRequest{Src: "ftp://x"}), codes.InvalidArgument, "src: nothing is read by ftp"},
		"an md5 that is none":     {prefetch(&baiv1.PrefetchDataRequest{Src: "s3://x", Md5: "x"}), codes.InvalidArgument, `md5: "x" is not 32`},
		"a sha256 that is none":   {prefetch(&baiv1.PrefetchDataRequest{Src: "s3://x", Sha256: "x"}), codes.InvalidArgument, `sha256: "x" is not 64`},
		"fewer than none":         {list(&baiv1.ListDataRequest{PageSize: -1}), codes.InvalidArgument, "page_size: must be 0 or more"},
		"a token of nobody's":     {list(&baiv1.ListDataRequest{PageToken: "x"}), codes.InvalidArgument, "page_token: is not one that this server gave"},
		"a prefetch of nobody's":  {state("prefetch-9"), codes.NotFound, `there is no prefetch "prefetch-9"`},
		"what is no prefetch":     {state("01kdyt1q880000000000000001"), codes.NotFound, "there is no prefetch"},
		"a prefetch somewhere up": {state("prefetch-../x"), codes.NotFound, "there is no prefetch"},
	} {
		if status.Code(tt.err) != tt.code || !strings.Contains(status.Convert(tt.err).Message(), tt.want) {
			t.Errorf("%s: %v, want %s: %s", name, tt.err, tt.code, tt.want)
		}
	}
}
