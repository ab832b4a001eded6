package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// standard writes ev as encoding/json does, and reads it again.
func standard[T event.Event](t rapidT, ev T) (value []byte, decoded T) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ev); err != nil {
		t.Fatal(err)
	}
	value = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if err := json.Unmarshal(value, &decoded); err != nil {
		t.Fatal(err)
	}
	return value, decoded
}

type rapidT interface{ Fatal(args ...any) }

func TestBatchesTravelAsEncodingJSONWritesAndReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := event.NewHeader(text().Draw(t, "id")+"i", "run", "pets", "ann", time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "time"), 0).UTC())
		from := event.Stream{Role: text().Draw(t, "role") + "r", Pod: "u", Container: `},"samples":[`, Kind: `,"lines":[`}
		var end *event.End
		if rapid.Bool().Draw(t, "ends") {
			end = &event.End{Count: rapid.Int64().Draw(t, "count"), Last: -1, Reason: text().Draw(t, "reason")}
		}
		same(t, event.Metrics{Header: h, Stream: from, Samples: rapid.SliceOfN(rapid.Custom(sample), 0, 8).Draw(t, "samples"), End: end})
		same(t, event.Logs{Header: h, Stream: from, Lines: rapid.SliceOfN(rapid.Custom(line), 0, 8).Draw(t, "lines"), End: end})
	})
}

// same checks that ev travels as encoding/json has it.
func same[T event.Event](t *rapid.T, ev T) {
	want, decoded := standard(t, ev)
	m, err := event.Encode(ev)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Value, want) {
		t.Fatalf("written as\n%s\nwant\n%s", m.Value, want)
	}
	got, err := event.Decode[T](m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded, got); diff != "" {
		t.Fatalf("%s is read as (-want +got):\n%s", want, diff)
	}
}

func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.String(),
			rapid.SampledFrom([]string{`"`, `\`, "\x00", "\x1f", "\x7f", "\b\f\n\r\t", "<&>", "\u2028\u2029", "\ufffd", "\xff\xfe", "☃😀", `],"end":{"`, `{"seq":`}),
		), 0, 4).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

func sample(t *rapid.T) event.Sample {
	s := event.Sample{
		Seq: rapid.Int64().Draw(t, "seq"), Sub: rapid.IntRange(-1, 2).Draw(t, "sub"), Name: text().Draw(t, "name") + "n",
		Unit: text().Draw(t, "unit"), Time: rapid.Int64().Draw(t, "ns"),
	}
	s.Set(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-6, 9.99e-7, 1e-9, 1e-10, 1e20, 1e21, 1e-300, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64})).Draw(t, "value"))
	if rapid.Bool().Draw(t, "has a step") {
		step := rapid.Int64().Draw(t, "step")
		s.Step = &step
	}
	if rapid.Bool().Draw(t, "has labels") {
		s.Labels = rapid.MapOfN(text(), text(), 0, 3).Draw(t, "labels")
	}
	s.Direction = rapid.OneOf(rapid.SampledFrom([]string{"", event.Higher, event.Lower}), text()).Draw(t, "direction")
	return s
}

func line(t *rapid.T) event.Line {
	return event.Line{
		Seq: rapid.Int64().Draw(t, "seq"), Time: rapid.Int64().Draw(t, "ns"), Text: text().Draw(t, "text"), Raw: rapid.Int64Range(0, 2).Draw(t, "raw"),
		Stderr: rapid.Bool().Draw(t, "err"), Truncated: rapid.Bool().Draw(t, "cut"), Unterminated: rapid.Bool().Draw(t, "open"),
	}
}

func TestAValueThatJSONCannotCarryIsRefused(t *testing.T) {
	nan := math.NaN()
	_, err := event.Encode(event.Metrics{
		Header: event.NewHeader("m1", "r1", "pets", "ann", time.Unix(0, 0)), Stream: event.Stream{Role: "r", Pod: "p", Container: "c", Kind: "s"},
		Samples: []event.Sample{{Name: "n", Value: &nan}},
	})
	if !errors.Is(err, event.ErrPoison) {
		t.Errorf("Encode: %v, want %v", err, event.ErrPoison)
	}
}

// FuzzBatchesAreReadAsEncodingJSONDoes mends nothing and forgives nothing that
// encoding/json does not.
func FuzzBatchesAreReadAsEncodingJSONDoes(f *testing.F) {
	at := time.Unix(1767323045, 0).UTC()
	h, from := event.NewHeader("m1", "r1", "pets", "ann", at), event.Stream{Role: "r", Pod: "p", Container: "c", Kind: "s"}
	for _, ev := range []event.Event{
		event.Metrics{Header: h, Stream: from, Samples: samples(at), End: &event.End{Count: 3}},
		event.Logs{Header: h, Stream: from, Lines: []event.Line{{Seq: 1, Text: "a\tb", Stderr: true, Raw: 7, Truncated: true, Unterminated: true}, {Seq: 2}}},
	} {
		m, err := event.Encode(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.Value)
		for _, form := range []string{`%s`, `{"x":%s}`, `{"samples":[],%s`, `[%s]`} {
			f.Add(fmt.Appendf(nil, form, m.Value[1:]))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		readAlike[event.Metrics](t, value)
		readAlike[event.Logs](t, value)
	})
}

func readAlike[T event.Event](t *testing.T, value []byte) {
	t.Helper()
	var want T
	wantErr := json.Unmarshal(value, &want)
	m := event.Message{Type: want.Topic() + ".v1", Key: want.Head().Run, Value: value}
	got, err := event.Decode[T](m)
	if wantErr != nil || want.Validate() != nil {
		if err == nil {
			t.Fatalf("%q is read as %+v, but encoding/json says %v, and Validate %v", value, got, wantErr, want.Validate())
		}
		return
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%q: %v (-want +got):\n%s", value, err, diff)
	}
}
