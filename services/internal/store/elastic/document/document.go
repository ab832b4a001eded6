// Package document writes and reads the documents of samples, lines and their sources as JSON. It is pure.
package document

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// Encoder writes the documents of one source. It encodes their common fields once.
type Encoder struct {
	streamID string // ID
	head     []byte // the beginning of each action: routing and the first half of the ID
	shared   []byte // the fields about the source of a document

	tokenizer store.Tokenizer
	tokens    []byte // of a line, as JSON
}

// New returns an encoder for the documents of a source.
func New(o store.Origin) *Encoder {
	e := &Encoder{streamID: o.StreamID()}
	e.head = append(AppendString([]byte(`{"create":{"routing":`), e.streamID), `,"_id":"`...)
	e.head = append(append(e.head, names.ShortID(e.streamID)...), '.')
	e.shared = appendOrigin(nil, o, e.streamID)
	return e
}

// appendOrigin writes the fields of a source.
func appendOrigin(b []byte, o store.Origin, source string) []byte {
	b = AppendString(append(b, `"run":{"id":`...), names.Term(o.Run))
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(o.Attempt), 10)
	b = AppendString(append(b, `},"source":{"id":`...), source)
	b = AppendString(append(b, `,"role":`...), names.Term(o.Role))
	b = strconv.AppendInt(append(b, `,"index":`...), int64(o.Index), 10)
	b = AppendString(append(b, `,"pod":`...), names.Term(o.Pod))
	b = AppendString(append(b, `,"container":`...), names.Term(o.Container))
	b = AppendString(append(b, `,"stream":`...), names.Term(o.Kind))
	return append(b, '}')
}

// begin writes the action and the fields that order a document. The end of its
// ID is written by more.
func (e *Encoder) begin(b []byte, seq, ns int64, more func([]byte) []byte) []byte {
	b = strconv.AppendInt(append(b, e.head...), seq, 36)
	if more != nil {
		b = more(b)
	}
	b = append(b, "\"}}\n{\"@timestamp\":\""...)
	b = time.Unix(0, max(ns, 0)).UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(append(b, `",`...), e.shared...)
	b = strconv.AppendInt(append(b, `,"seq":`...), seq, 10)
	return strconv.AppendInt(append(b, `,"place":`...), names.SortKey(e.streamID, seq), 10)
}

// Sample writes a sample.
func (e *Encoder) Sample(b []byte, v *event.Sample) ([]byte, error) {
	if v.Value != nil && (math.IsNaN(*v.Value) || math.IsInf(*v.Value, 0)) {
		w := *v
		w.Set(*v.Value)
		v = &w
	}
	b = e.begin(b, v.Seq, v.Time, func(b []byte) []byte { return appendSampleID(b, v) })
	b = strconv.AppendInt(append(b, `,"sub":`...), int64(v.Sub), 10)
	b = appendMetric(b, v)
	labels, whole := names.Searchable(v.Labels)
	if len(labels) > 0 {
		text, err := json.Marshal(labels)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"labels":`...), text...)
	}
	if !whole || v.Time < 0 || len(v.Name) > schema.MaxTerm || len(v.Unit) > schema.MaxTerm {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		b = AppendString(append(b, `,"exact":`...), string(text))
	}
	return append(b, "}\n"...), nil
}

// appendMetric writes the metric and its value.
func appendMetric(b []byte, v *event.Sample) []byte {
	b = AppendString(append(b, `,"metric":{"name":`...), names.Term(v.Name))
	if v.Value != nil {
		b = strconv.AppendFloat(append(b, `,"value":`...), *v.Value, 'g', -1, 64)
	}
	if v.Special != "" {
		b = AppendString(append(b, `,"special":`...), v.Special)
	}
	if v.Unit != "" {
		b = AppendString(append(b, `,"unit":`...), names.Term(v.Unit))
	}
	if v.Step != nil {
		b = strconv.AppendInt(append(b, `,"step":`...), *v.Step, 10)
	}
	if v.Direction == event.Higher || v.Direction == event.Lower {
		b = AppendString(append(b, `,"direction":`...), v.Direction)
	}
	return append(b, '}')
}

// appendSampleID writes the part of an ID that distinguishes samples of one sequence number.
func appendSampleID(b []byte, v *event.Sample) []byte {
	b = strconv.AppendInt(append(b, '.'), int64(v.Sub), 36)
	if len(v.Name) <= 64 && names.Safe(v.Name) {
		return append(append(b, '.'), v.Name...)
	}
	return append(append(b, '#'), names.Digest(v.Name)...)
}

// Line writes a line.
func (e *Encoder) Line(b []byte, l *event.Line) ([]byte, error) {
	b = e.begin(b, l.Seq, l.Time, nil)
	b = AppendString(append(b, `,"message":`...), l.Text)
	b = e.appendTokens(b, l.Text)
	if l.Stderr || l.Truncated || l.Unterminated || l.Raw != 0 {
		b = append(b, `,"log":{"error":`...)
		b = strconv.AppendBool(b, l.Stderr)
		b = strconv.AppendBool(append(b, `,"cut":`...), l.Truncated)
		b = strconv.AppendBool(append(b, `,"open":`...), l.Unterminated)
		b = strconv.AppendInt(append(b, `,"raw":`...), l.Raw, 10)
		b = append(b, '}')
	}
	if l.Time < 0 {
		w := *l
		w.Text = "" // the field message has the text
		text, err := json.Marshal(w)
		if err != nil {
			return nil, err
		}
		b = AppendString(append(b, `,"exact":`...), string(text))
	}
	return append(b, "}\n"...), nil
}

// appendTokens writes the tokens of a line. Tokens need no escapes.
func (e *Encoder) appendTokens(b []byte, text string) []byte {
	e.tokens = e.tokens[:0]
	e.tokenizer.Each(text, func(token []byte) { e.tokens = append(append(append(e.tokens, '"'), token...), '"', ',') })
	if n := len(e.tokens); n > 0 {
		b = append(append(append(b, `,"tokens":[`...), e.tokens[:n-1]...), ']')
	}
	return b
}

// StreamRecord is a source as it is stored.
type StreamRecord struct {
	Topic  string       `json:"topic"`
	Ended  bool         `json:"ended"`
	Origin store.Origin `json:"origin"`
	End    *event.End   `json:"end,omitempty"`
}

// AppendStream writes the document that a source exists, or the one with its end, and returns the document's ID.
func AppendStream(b []byte, o store.Origin, topic string, end *event.End) ([]byte, string, error) {
	source := o.StreamID()
	id := names.ShortID(source) + "." + topic
	if end != nil {
		id += ".end"
	}
	doc, err := json.Marshal(StreamRecord{Topic: topic, Ended: end != nil, Origin: o, End: end})
	if err != nil {
		return nil, "", err
	}
	b = append(append(append(b, `{"create":{"_id":"`...), id...), "\"}}\n{"...)
	b = append(appendOrigin(b, o, source), ',')
	return append(append(b, doc[1:]...), '\n'), id, nil
}

// AppendString writes text as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, text[from:i]...), `\ufffd`...)
				from = i + 1
			}
			i += n
			continue
		}
		if c < 0x20 || c == '"' || c == '\\' {
			b = append(b, text[from:i]...)
			if c == '"' || c == '\\' {
				b = append(b, '\\', c)
			} else {
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			from = i + 1
		}
		i++
	}
	return append(append(b, text[from:]...), '"')
}

// metricDoc and logDoc are samples and lines as they are read back.
type (
	metricDoc struct {
		Timestamp time.Time         `json:"@timestamp"`
		Seq       int64             `json:"seq"`
		Sub       int               `json:"sub"`
		Labels    map[string]string `json:"labels"`
		Exact     string            `json:"exact"`
		Metric    struct {
			Name    string   `json:"name"`
			Value   *float64 `json:"value"`
			Special string   `json:"special"`
			Unit    string   `json:"unit"`
			Step    *int64   `json:"step"`

			Direction string `json:"direction"`
		} `json:"metric"`
	}
	logDoc struct {
		Timestamp time.Time `json:"@timestamp"`
		Seq       int64     `json:"seq"`
		Message   string    `json:"message"`
		Exact     string    `json:"exact"`
		Log       struct {
			Error bool  `json:"error"`
			Cut   bool  `json:"cut"`
			Open  bool  `json:"open"`
			Raw   int64 `json:"raw"`
		} `json:"log"`
	}
)

// ReadSample returns the sample that a document of an Encoder has.
func ReadSample(b []byte) (v event.Sample, err error) {
	var d metricDoc
	if err := json.Unmarshal(b, &d); err != nil {
		return v, err
	}
	if d.Exact != "" {
		err := json.Unmarshal([]byte(d.Exact), &v)
		return v, err
	}
	m := d.Metric
	return event.Sample{
		Seq: d.Seq, Sub: d.Sub, Name: m.Name, Value: m.Value, Special: m.Special, Unit: m.Unit,
		Time: d.Timestamp.UnixNano(), Step: m.Step, Labels: d.Labels, Direction: m.Direction,
	}, nil
}

// ReadLine returns the line that a document of an Encoder has.
func ReadLine(b []byte) (l event.Line, err error) {
	var d logDoc
	if err := json.Unmarshal(b, &d); err != nil {
		return l, err
	}
	if d.Exact != "" {
		err := json.Unmarshal([]byte(d.Exact), &l)
		l.Text = d.Message
		return l, err
	}
	return event.Line{
		Seq: d.Seq, Stderr: d.Log.Error, Time: d.Timestamp.UnixNano(), Text: d.Message, Raw: d.Log.Raw,
		Truncated: d.Log.Cut, Unterminated: d.Log.Open,
	}, nil
}
