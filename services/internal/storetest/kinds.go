package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// Kinds are all kinds of documents.
func Kinds() []store.Kind {
	return []store.Kind{
		store.KindIdempotencyKey, store.KindRunName, store.KindSubmission, store.KindOutbox, store.KindCancel,
		store.KindDescriptor, store.KindArtifact,
		store.KindCodeBundle, store.KindPin, store.KindSchedule, store.KindScheduleVersion, store.KindFirings, store.KindBackfill,
		store.KindSet, store.KindSetRequest, store.KindOpenSet, store.KindSetRollup, store.KindBaseline, store.KindOrder,
		store.KindDownload, store.KindObject, store.KindQueue, store.KindSlotTable, store.KindPlan, store.KindWatch, store.KindLogProgress,
		store.KindPendingSummary, store.KindSummary, store.KindPoints, store.KindReindex, store.KindOwed, store.KindEnvironment,
		store.KindRuleSet, store.KindRuleState, store.KindIncident, store.KindOpenIncident, store.KindIncidentIndex,
		store.KindConfirmation, store.KindConfirmationRuns,
		store.KindIncidentGroup, store.KindDelivery, store.KindUnsentNotice, store.KindAck, store.KindMute,
		store.KindForgotten, store.KindLease, store.KindSignatures, store.KindPeerBroker,
	}
}

// testKinds writes one document of each kind under one name, with the keys that their owners make, and checks that the kinds are separate,
// and that a list by prefix returns the documents of one owner.
func testKinds(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for i, k := range Kinds() {
		for _, key := range []string{"ann/x", "ann/x@2", "bob/x", "01kdvr00070000000000000007"} {
			must(t, s.CreateDoc(ctx, store.Doc{Kind: k, Key: key, Value: fmt.Appendf(nil, `{"of":%d,"key":%q}`, i, key)}))
		}
		must(t, s.DeleteDoc(ctx, store.Doc{Kind: k, Key: "bob/x", Version: 1}))
	}
	for i, k := range Kinds() {
		value, version, err := store.Get[struct{ Of int }](ctx, s, k, "ann/x@2")
		must(t, err)
		wantSame(t, fmt.Sprint(i, 1), fmt.Sprint(value.Of, version))
		_, err = s.Doc(ctx, k, "bob/x")
		wantError(t, err, store.ErrNotFound)
		next, err := store.Replace(ctx, s, k, "ann/x", 1, map[string]int{"of": -i})
		must(t, err)
		eventually(t, fmt.Sprintf("documents of kind %s", k),
			fmt.Sprintf("01kdvr00070000000000000007:1=%d ann/x:%d=%d ann/x@2:1=%d ", i, next, -i, i), func() (string, error) {
				return listing(s.Docs(ctx, k, "", 10))
			})
		eventually(t, fmt.Sprintf("documents of kind %s after one", k), fmt.Sprintf("ann/x@2:1=%d ", i), func() (string, error) {
			return listing(s.Docs(ctx, k, "ann/x", 10))
		})
	}
}

// listing returns a list of documents as text.
func listing(docs []store.Doc, err error) (string, error) {
	var text strings.Builder
	for _, d := range docs {
		var v struct{ Of int }
		if err := json.Unmarshal(d.Value, &v); err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(&text, "%s:%d=%d ", d.Key, d.Version, v.Of)
	}
	return text.String(), err
}
