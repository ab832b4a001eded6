package api_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestARunWhoseRecordsWereRemovedDoesNotExist(t *testing.T) {
	w := newFixture(t, options{noProjection: true})
	request := &baiv1.SubmitRunRequest{DescriptorToml: []byte(valid), Owner: "ann", IdempotencyKey: "k"}
	made, err := w.client.SubmitRun(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetRunId()
	if _, err := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id}); err != nil {
		t.Fatalf("before its records are removed: %v", err)
	}
	if err := store.MarkForgotten(t.Context(), w.store, time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	_, got := w.client.GetRun(t.Context(), &baiv1.GetRunRequest{Run: id})
	_, canceled := w.client.CancelRun(t.Context(), &baiv1.CancelRunRequest{Run: id})
	watch, err := w.client.WatchRun(t.Context(), &baiv1.WatchRunRequest{Run: id})
	if err == nil {
		_, err = watch.Recv()
	}
	for name, err := range map[string]error{"get": got, "cancel": canceled, "watch": err} {
		if status.Code(err) != codes.NotFound {
			t.Errorf("%s: %v, want NOT_FOUND", name, err)
		}
	}
	_, err = w.client.SubmitRun(t.Context(), request)
	if status.Code(err) != codes.AlreadyExists || !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), "use another key") {
		t.Errorf("under the same key: %v", err)
	}
}
