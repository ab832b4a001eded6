package alarm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// waitingTests are the keys of the tests that wait.
func (w *fixture) waitingTests() (keys []string) {
	w.t.Helper()
	for d, err := range store.All[notice.Delivery](w.t.Context(), w.store, store.KindDelivery, "") {
		if err != nil {
			w.t.Fatal(err)
		}
		if d.Value.Status == notice.Waiting && d.Value.Notice.Test {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// answer says what became of all tests that wait.
func (w *fixture) answer(status notice.Status, text string) {
	w.t.Helper()
	for _, key := range w.waitingTests() {
		_, err := store.Update(w.t.Context(), w.store, store.KindDelivery, key, func(d notice.Delivery, _ bool) (notice.Delivery, bool, error) {
			d.Status, d.Answer = status, text
			return d, true, nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestATestWaitsForTheAnswerOfItsReceiver(t *testing.T) {
	for _, status := range []notice.Status{notice.Sent, notice.Refused} {
		synctest.Test(t, func(t *testing.T) {
			w := newFixture(t)
			go func() {
				time.Sleep(5 * time.Second) // of the bubble's clock
				w.answer(status, "thanks")
			}()
			got, err := w.Test(t.Context(), alarm.TestRequest{Namespace: "default", Receiver: "chat", By: "ann"})
			if err != nil || got.Status != status || got.Answer != "thanks" || !got.Notice.Test {
				t.Errorf("Test: %+v, %v", got, err)
			}
		})
	}
}

func TestATestWithTheSameKeyWaitsOnForTheSameNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t)
		r := alarm.TestRequest{Namespace: "default", Receiver: "chat", Key: "k", By: "ann"}
		first, err := w.Test(t.Context(), r)
		if err != nil || first.Status != notice.Waiting {
			t.Fatalf("Test: %+v, %v: want one that waits", first, err)
		}
		w.answer(notice.Sent, "thanks")
		again, err := w.Test(t.Context(), r)
		if err != nil || again.Status != notice.Sent || again.Notice.ID != first.Notice.ID {
			t.Errorf("Test again: %+v, %v", again, err)
		}
		r.Key = ""
		if other, err := w.Test(t.Context(), r); err != nil || other.Notice.ID == first.Notice.ID {
			t.Errorf("Test without a key: %+v, %v: want another notice", other, err)
		}
	})
}

func TestATestEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newFixture(t).Test(ctx, alarm.TestRequest{Namespace: "default", Receiver: "chat"}); err == nil {
		t.Error("no error")
	}
}

func TestATeamTestsOnlyTheReceiversThatItMayUse(t *testing.T) {
	w := newFixture(t)
	if got := fmt.Sprint(w.Receivers("default"), w.Receivers("other")); got != "[chat] [chat mail]" {
		t.Errorf("receivers are %s", got)
	}
	for name, c := range map[string]struct {
		request alarm.TestRequest
		want    string
	}{
		"that of another team": {alarm.TestRequest{Receiver: "mail"}, `missing: receiver "mail" does not exist for team default: it may use chat`},
		"one that isn't":       {alarm.TestRequest{Receiver: "mai"}, `missing: receiver "mai" does not exist for team default: it may use chat`},
		"none":                 {alarm.TestRequest{}, "field: receiver is missing: name a receiver of the settings"},
		"a key without end":    {alarm.TestRequest{Receiver: "chat", Key: strings.Repeat("k", 129)}, "field: idempotency_key has 129 bytes: take at most 128"},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Namespace = "default"
			if _, err := w.Test(t.Context(), c.request); describeError(err) != c.want {
				t.Errorf("got %s, want %s", describeError(err), c.want)
			}
			if got := w.waitingTests(); len(got) > 0 {
				t.Errorf("%v waits", got)
			}
		})
	}
}
