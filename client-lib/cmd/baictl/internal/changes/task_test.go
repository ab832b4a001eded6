package changes_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/changes"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// task returns the history of a task with one series.
func task(all ...*baiv1.HistoryChange) *baiv1.QueryHistoryResponse {
	for _, c := range all {
		c.Time = timestamppb.New(time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC))
	}
	return &baiv1.QueryHistoryResponse{Series: []*baiv1.SeriesHistory{{
		Metric: "rate", Unit: "MB/s", Direction: "higher", Levels: []*baiv1.HistoryLevel{{Last: 11}, {First: 12, Last: 29}}, Changes: all,
	}}}
}

func TestTheAnswerAboutATaskAsJSON(t *testing.T) {
	for want, c := range map[string]*baiv1.HistoryChange{
		`{"index":12,"time":"2026-03-01T02:00:00Z","kind":"step","direction":"down","verdict":"regression","before":101.5,"after":94.75,"magnitude":-0.0665,` +
			`"interval":[-0.083,-0.049],"level":0.95,"p":3.1e-7,"range":[11,13],"run":"r","version_before":"v1","version_after":"v2","subjects":["image"]}`: {
			Index: 12, RunId: "r", Kind: "step", Direction: "down", Verdict: "regression", Before: 101.5, After: 94.75, Magnitude: -0.0665, P: 3.1e-7,
			Interval: &baiv1.Interval{Low: -0.083, High: -0.049, Level: 0.95}, RangeFirst: 11, RangeLast: 13, VersionBefore: "v1", VersionAfter: "v2", Subjects: []string{"image"},
		},
		`{"index":12,"time":"2026-03-01T02:00:00Z","kind":"drift","direction":"up","verdict":"change","before":0,"after":5,"magnitude":null,"interval":null,` +
			`"shift":5,"shift_interval":[4,6],"level":0.95,"p":0.25,"range":[12,12],"run":"r","version_before":"","version_after":"","subjects":[]}`: {
			Index: 12, RunId: "r", Kind: "drift", Direction: "up", Verdict: "change", After: 5, Shift: 5, ShiftInterval: &baiv1.Interval{Low: 4, High: 6, Level: 0.95}, Magnitude: math.NaN(), P: 0.25, RangeFirst: 12, RangeLast: 12,
		},
	} {
		got := changes.OfTask(task(c))
		if got[0].Series != "rate (MB/s)" || got[0].Points != 30 || got[0].Missing != 0 || got[0].Notes == nil {
			t.Errorf("%+v", got[0])
		}
		text, err := json.Marshal(got[0].Changes[0])
		if diff := cmp.Diff(want, string(text)); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestOtherMachinesAreNoRegression(t *testing.T) {
	all := changes.OfTask(task(
		&baiv1.HistoryChange{Index: 12, Kind: "environment", Direction: "down", Verdict: "change", Before: 2, After: 1, Magnitude: -0.5, P: 1},
		&baiv1.HistoryChange{Index: 20, Kind: "step", Direction: "up", Verdict: "improvement", Before: 1, After: 2, Magnitude: 1},
	))
	if n, in := changes.Regressions(all); n != 0 || in != 0 {
		t.Errorf("%d regressions in %d series", n, in)
	}
	if got, want := changes.Summary(all, "point"), "1 series, 30 points, 2 changes (1 improvement)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRowsOfATaskHaveAsManyValuesAsTheirHeader(t *testing.T) {
	rows := changes.TaskCSV(changes.OfTask(task(&baiv1.HistoryChange{Index: 12, VersionAfter: "v2", Subjects: []string{"image", "code"}})))
	if len(rows) != 2 || len(rows[0]) != len(rows[1]) || rows[1][len(rows[1])-1] != "image code" {
		t.Errorf("%q", rows)
	}
}
