package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/golden"
)

// TestWire shows each event as it is in Kafka.
func TestWire(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	h := event.NewHeader("m1", "01jgxk3q8rtn5v9w2x4y6z8abc", "pets", "ann", at)
	h.Lineage = event.Lineage{
		Set: "s1", Cell: "lr=0.1", Repetition: 2, Warmup: true, Schedule: "nightly", Firing: &at, RerunOf: "01jgxk3q8rtn5v9w2x4y6z8abb",
	}
	labels := map[string]string{"task_name": "resnet"}
	data := []event.Data{{Source: "s3://pets/cats.tar", Path: "/data/cats", Object: "objects/1", SHA256: "ab", Size: 5, Unpack: true, Writable: true}}
	second := h
	second.Attempt = 2
	code := 3
	source := event.Stream{Role: "worker", Index: 1, Pod: "u1", Container: "benchmark", Kind: event.StreamMetrics}
	end := &event.End{Count: 4, Last: 99, Dropped: 1, Reason: "limits.max_log_size"}

	t.Run("submitted", wire(event.Submitted{Header: h, Name: "cats", File: "cats.toml", Descriptor: "[info]\n", Labels: labels, Overrides: []event.Override{{Path: "info.task_name", Value: "cats"}}, Provenance: &event.Provenance{URI: "stored:cats@3", SHA256: "ab"}, Bundle: &event.Bundle{SHA256: "cd", Size: 7}}))
	t.Run("command", wire(event.Command{Header: h, Kind: event.CommandCancel, By: "bob"}))
	t.Run("fetched", wire(event.Fetched{Header: h, Name: "cats", File: "cats.toml", Descriptor: "[info]\n", Labels: labels, Data: data}))
	t.Run("launched", wire(event.Launched{Header: h, Cluster: "local", Scope: "default", Job: "run-1", UID: "u0", Retries: 1, PendingDeadline: time.Minute}))
	t.Run("retried", wire(event.Retried{Header: second, Class: event.ClassInfra, Reason: event.NodeLost, Message: "the node is gone", Collectors: []string{"u1"}}))
	t.Run("status", wire(event.Status{
		Header: h, Phase: event.PhaseFetching, Reason: event.FetchFailed, Message: "fetching 1 of 1 data sets",
		Progress: &event.Progress{Done: 1, Total: 2, Unit: "items"},
	}))
	t.Run("finished", wire(event.Finished{
		Header: h, Outcome: event.Failed, Class: event.ClassUser, Reason: event.NonZeroExit, Message: "exit code 3",
		ExitCode: &code, Started: &at, Ended: &at, Collectors: []string{"u1"},
	}))
	t.Run("summarised", wire(event.Summarised{Header: h, Revision: 2, Complete: true}))
	t.Run("metrics", wire(event.Metrics{Header: h, Stream: source, Samples: samples(at), End: end}))
	source.Kind = event.StreamOutput
	t.Run("logs", wire(event.Logs{Header: h, Stream: source, End: end, Lines: []event.Line{
		{Seq: 20, Time: at.UnixNano(), Text: "epoch 1"},
		{Seq: 40, Stderr: true, Time: at.UnixNano(), Text: "caf\ufffd <&>", Raw: 9, Truncated: true, Unterminated: true},
	}}))
}

func samples(at time.Time) []event.Sample {
	step := int64(7)
	all := []event.Sample{
		{Seq: 10, Name: "loss", Unit: "1", Time: at.UnixNano(), Step: &step, Labels: map[string]string{"gpu": "0"}},
		{Seq: 10, Sub: 1, Name: "speed", Time: at.UnixNano()},
		{Seq: 20, Name: "nan", Time: at.UnixNano()},
		{Seq: 30, Name: "plus", Time: at.UnixNano()},
		{Seq: 40, Name: "minus", Time: at.UnixNano()},
	}
	for i, v := range []float64{0.1, -1e300, math.NaN(), math.Inf(1), math.Inf(-1)} {
		all[i].Set(v)
	}
	return all
}

// wire holds our writer to its golden file, and the file to our type: strictly,
// unlike Decode, so that neither drifts from the other.
func wire[T event.Event](ev T) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		m, err := event.Encode(ev)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", m.Type+".json"), append(m.Value, '\n'))

		var got T
		strict := json.NewDecoder(bytes.NewReader(m.Value))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&got); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(ev, got); diff != "" {
			t.Errorf("written and read again (-want +got):\n%s", diff)
		}
		if got, err = event.Decode[T](m); err != nil {
			t.Errorf("what Encode wrote Decode refuses: %v", err)
		}
		if diff := cmp.Diff(ev, got); diff != "" {
			t.Errorf("encoded and decoded (-want +got):\n%s", diff)
		}
	}
}

const (
	submittedV1 = "bai.submitted.v1"
	header      = `"id":"m1","run":"r1","namespace":"pets","owner":"ann","attempt":1,"time":"2026-01-02T03:04:05Z","schema":1`
	body        = `{` + header + `,"descriptor":"x"}`
)

func TestDecodeIgnoresFieldsOfALaterMinorVersion(t *testing.T) {
	value := `{` + header + `,"descriptor":"x","colour":"red","labels":{"a":"b"}}`
	_, err := event.Decode[event.Submitted](event.Message{Type: submittedV1, Key: "r1", Value: []byte(value)})
	if err != nil {
		t.Error(err)
	}
}

func TestDecodeTellsWhenTheMessageWasWritten(t *testing.T) {
	at := time.Unix(5, 0)
	ev, err := event.Decode[event.Submitted](event.Message{Type: submittedV1, Key: "r1", Value: []byte(body), PublishedAt: at})
	if err != nil || !ev.PublishedAt.Equal(at) {
		t.Errorf("said at %v, %v, want %v", ev.PublishedAt, err, at)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ kind, value, want string }{
		"another major version":    {"bai.submitted.v2", body, `type "bai.submitted.v2", want "bai.submitted.v1"`},
		"another type":             {"bai.fetched.v1", body, `type "bai.fetched.v1"`},
		"a message without a type": {"", body, `type ""`},
		"a contradicting schema":   {submittedV1, strings.Replace(body, `"schema":1`, `"schema":2`, 1), "schema: 2, want 1"},
		"what is not JSON":         {submittedV1, `hello`, "invalid character"},
		"a field of wrong type":    {submittedV1, `{` + header + `,"descriptor":5}`, "cannot unmarshal"},
		"an event of no run":       {submittedV1, strings.Replace(body, "r1", "", 1), "run: must not be empty"},
		"an event without header":  {submittedV1, `{}`, "namespace: must not be empty"},
		"another run's key":        {submittedV1, strings.Replace(body, "r1", "r2", 1), `key "r1", but run "r2"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := event.Decode[event.Submitted](event.Message{Type: tt.kind, Key: "r1", Value: []byte(tt.value)})
			if !errors.Is(err, event.ErrPoison) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Decode: %v, want poison with %q", err, tt.want)
			}
		})
	}
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	if m, err := event.Encode(event.Status{}); !errors.Is(err, event.ErrPoison) {
		t.Errorf("Encode: %+v, %v, want poison", m, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(body))
	f.Add([]byte(`{` + header + `,"source":{"role":"r","pod":"p","container":"c","stream":"s"},"samples":[{"name":"a","value":1,"time":"1"}]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		checkRoundTrip[event.Submitted](t, value)
		checkRoundTrip[event.Metrics](t, value)
		checkRoundTrip[event.Logs](t, value)
		checkRoundTrip[event.Finished](t, value)
	})
}

// checkRoundTrip checks that a decoded event can be encoded, and decoded again.
func checkRoundTrip[T event.Event](t *testing.T, value []byte) {
	t.Helper()
	var zero T
	ev, err := event.Decode[T](event.Message{Type: zero.Topic() + ".v1", Key: "r1", Value: value})
	if err != nil {
		return
	}
	m, err := event.Encode(ev)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := event.Decode[T](m); err != nil {
		t.Errorf("what Encode wrote Decode refuses: %v", err)
	}
}
