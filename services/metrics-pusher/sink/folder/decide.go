package folder

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/sink"
)

// row is one sample, with the fields of its source.
type row struct {
	Run       string            `json:"run" parquet:"run,dict"`
	Namespace string            `json:"namespace" parquet:"namespace,dict"`
	Owner     string            `json:"owner" parquet:"owner,dict"`
	Attempt   int               `json:"attempt" parquet:"attempt"`
	Set       string            `json:"set,omitempty" parquet:"set,dict"`
	Cell      string            `json:"cell,omitempty" parquet:"cell,dict"`
	Role      string            `json:"role" parquet:"role,dict"`
	Index     int               `json:"index" parquet:"index"`
	Container string            `json:"container" parquet:"container,dict"`
	Stream    string            `json:"stream" parquet:"stream,dict"`
	Seq       int64             `json:"seq" parquet:"seq,delta"`
	Sub       int               `json:"sub" parquet:"sub"`
	Time      int64             `json:"time,string" parquet:"time,delta,timestamp(nanosecond)"` // ns since 1970
	Metric    string            `json:"metric" parquet:"metric,dict"`
	Value     *float64          `json:"value" parquet:"value,optional"`           // null where Special is set
	Special   string            `json:"special,omitempty" parquet:"special,dict"` // NaN, +Inf or -Inf
	Unit      string            `json:"unit,omitempty" parquet:"unit,dict"`
	Step      *int64            `json:"step,omitempty" parquet:"step,optional"`
	Labels    map[string]string `json:"labels,omitempty" parquet:"labels"`
	Direction string            `json:"direction,omitempty" parquet:"direction,dict"` // which values are better: higher or lower
}

func rowOf(b *event.Metrics, v *event.Sample) row {
	return row{
		Run: b.Run, Namespace: b.Namespace, Owner: b.Owner, Attempt: b.Attempt, Set: b.Set, Cell: b.Cell,
		Role: b.Stream.Role, Index: b.Stream.Index, Container: b.Stream.Container, Stream: b.Stream.Kind,
		Seq: v.Seq, Sub: v.Sub, Time: v.Time, Metric: v.Name, Value: v.Value, Special: v.Special, Unit: v.Unit, Step: v.Step,
		Labels: v.Labels, Direction: v.Direction,
	}
}

// sourcePath returns the path of the file for a batch's source, without extension.
func sourcePath(b *event.Metrics) string {
	clean := func(text string) string {
		text = sink.SanitizeName(text, func(r rune) bool { return sink.Word(r) || r == '-' })
		if text[0] == '_' && len(text) > 1 && text[1] >= '0' && text[1] <= '9' {
			text = text[1:] // a file may begin with a digit
		}
		return text[:min(len(text), 64)]
	}
	name := fmt.Sprintf("%d-%s-%d-%s-%s", b.Attempt, clean(b.Stream.Role), b.Stream.Index, clean(b.Stream.Kind),
		b.Stream.ID(b.Run, b.Attempt)[:12])
	return filepath.Join(clean(b.Run), name)
}

// identity tells a sample of a source from all others of it.
type identity struct {
	seq  int64
	sub  int
	name string // as escapeNewlines writes it
}

func identityOf(v *event.Sample) identity { return identity{v.Seq, v.Sub, escapeNewlines(v.Name)} }

// tail is the state of a file: its end, the largest sequence number and ordinal of its samples, and the names of the metrics that the file
// has at that position. The samples of a source do not come in the order of their sequence numbers: those of a block of lines come once the
// block has ended, with the number of its last line. So a sample behind the largest position is new, and one before it is looked up in the
// file.
type tail struct {
	size        int64 // bytes of whole lines
	noDirection bool  // it is CSV without columnDirection
	hasSamples  bool  // the file has a sample
	seq         int64
	sub         int
	names       map[string]bool
	samples     map[identity]bool // all samples of the file; nil until one is looked up
}

// isNew reports whether a sample lies behind all samples of the file. One that does not may be new all the same.
func (t *tail) isNew(v *event.Sample) bool {
	if !t.hasSamples || v.Seq != t.seq {
		return !t.hasSamples || v.Seq > t.seq
	}
	return v.Sub > t.sub || v.Sub == t.sub && !t.names[escapeNewlines(v.Name)]
}

// add records that a sample is in the file.
func (t *tail) add(v *event.Sample) {
	id := identityOf(v)
	if t.samples != nil {
		t.samples[id] = true
	}
	switch {
	case !t.hasSamples, v.Seq > t.seq, v.Seq == t.seq && v.Sub > t.sub:
		t.hasSamples, t.seq, t.sub, t.names = true, v.Seq, v.Sub, map[string]bool{id.name: true}
	case v.Seq == t.seq && v.Sub == t.sub:
		t.names[id.name] = true
	}
}

// escapeNewlines returns text without line feeds: they are written as \n.
func escapeNewlines(text string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(text)
}

// columns are those of CSV, in order.
func columns() []string {
	return []string{
		"seq", "sub", "time_ns", "metric", "value", "unit", "step", "run", "namespace", "owner", "attempt", "set", "cell",
		"role", "index", "container", "stream", "labels", columnDirection,
	}
}

// columnDirection is the last column. Files that an older version began do not have it.
const columnDirection = "direction"

// record returns a row in the order of columns, without line feeds. Without wide it has no columnDirection.
func record(r row, labels string, wide bool) []string {
	value, step := r.Special, ""
	if r.Value != nil {
		value = strconv.FormatFloat(*r.Value, 'g', -1, 64)
	}
	if r.Step != nil {
		step = strconv.FormatInt(*r.Step, 10)
	}
	fields := []string{
		strconv.FormatInt(r.Seq, 10), strconv.Itoa(r.Sub), strconv.FormatInt(r.Time, 10), escapeNewlines(r.Metric), value,
		escapeNewlines(r.Unit), step,
		r.Run, r.Namespace, escapeNewlines(r.Owner), strconv.Itoa(r.Attempt), r.Set, r.Cell, r.Role, strconv.Itoa(r.Index), r.Container,
		r.Stream, labels, r.Direction,
	}
	if !wide {
		fields = fields[:len(fields)-1]
	}
	return fields
}
