package points_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/points"
)

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"", "\ufeff" + header, header + row("s", 0, "1,true") + row("t", 0, "NaN,") + row("s", 1, "-1e9,"),
		header + row("s", 1, "inf,false") + row("s", 0, "1,"), header + header,
		"series,time,value\r\n\"a,\"\"b\"\"\nc\",2026-03-01T02:00:00+01:00,\r\n",
		"value,time,series\n0x1p-2,2026-03-01T02:00:00.000000001Z,\"\"\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := points.Read(bytes.NewReader(text))
		if err != nil {
			fault, ok := errors.AsType[*points.FaultError](err)
			lines := bytes.Count(text, []byte("\n")) + 1
			if !ok || fault.Line < 1 || fault.Line > lines || fault.Column < 1 || fault.Message == "" || fault.Remedy == "" {
				t.Errorf("%v", err)
			}
			return
		}
		for _, s := range all {
			checkSeries(t, s)
		}
		again, err := points.Read(write(t, all))
		if diff := cmp.Diff(all, again, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v (-read +read again):\n%s", err, diff)
		}
	})
}

// checkSeries checks what a TimeSeries promises.
func checkSeries(t *testing.T, s *points.TimeSeries) {
	t.Helper()
	missing := 0
	for _, v := range s.Values {
		if math.IsNaN(v) {
			missing++
		}
		if math.IsInf(v, 0) {
			t.Errorf("%v is a value", v)
		}
	}
	if s.Name == "" || len(s.Values) == 0 || len(s.Values) != len(s.Times) || missing != s.Missing || !slices.IsSorted(s.Times) {
		t.Errorf("%+v", s)
	}
}

// write writes series as CSV.
func write(t *testing.T, all []*points.TimeSeries) *bytes.Buffer {
	t.Helper()
	rows := [][]string{{"series", "time", "value", "higher_is_better"}}
	better := map[points.Direction]string{points.Higher: "true", points.Lower: "false"}
	for _, s := range all {
		for i, v := range s.Values {
			rows = append(rows, []string{s.Name, s.Time(i).Format(time.RFC3339Nano), strconv.FormatFloat(v, 'g', -1, 64), better[s.Better]})
		}
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return &b
}
