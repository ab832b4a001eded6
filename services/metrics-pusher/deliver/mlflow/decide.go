package mlflow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver"
)

// The limits of MLflow's server.
const (
	maxMetrics = 1000    // of one request, and of metrics, params and tags together
	maxPairs   = 100     // params of one request, and tags
	maxBody    = 900_000 // bytes of one request; the server takes 1,000,000
	maxKey     = 250     // bytes of a name
	maxParam   = 6000    // characters of a param's value
	maxTag     = 5000    // characters of a tag's value; MLflow 3.17 takes 8000, and older servers less
)

// The tags by which a run of MLflow is found again.
const (
	tagRun         = "bai.run"
	tagDestination = "bai.destination"
)

// metric is a point of a metric.
type metric struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"` // in ms
	Step      int64   `json:"step"`
}

// pair is a param or a tag.
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// record is a run of MLflow.
type record struct {
	ID     string `json:"run_id"`
	Status string `json:"status"`
}

// running is the status of a run whose rows are not all there.
const running = "RUNNING"

func (r record) complete() bool { return r.Status != running }

// statusOf is the status of a run whose rows are all there.
func statusOf(o event.Outcome) string {
	switch o {
	case event.Failed:
		return "FAILED"
	case event.Canceled:
		return "KILLED"
	case event.Succeeded:
	}
	return "FINISHED"
}

// tagsOf are the tags of a run, which it has from the first.
func tagsOf(destination string, d deliver.Delivery) []pair {
	a := d.About
	all := map[string]string{
		tagRun: d.Run, tagDestination: destination, "bai.namespace": a.Namespace, "bai.task": a.Labels["task_name"],
		"bai.outcome": string(a.Outcome),
		"bai.set":     a.Set, "bai.cell": a.Cell, "mlflow.user": a.Owner, "mlflow.source.name": a.File, "mlflow.source.type": "JOB",
	}
	if a.Attempt > 0 {
		all["bai.attempt"] = strconv.Itoa(a.Attempt)
	}
	return pairs(all, maxTag)
}

// pairs are the texts that are not empty, by key, with keys and values that MLflow takes.
func pairs(all map[string]string, most int) []pair {
	var out []pair
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if all[key] != "" {
			out = append(out, pair{Key: keyOf(key), Value: valueOf(all[key], most)})
		}
	}
	return out
}

// valueOf is a text of at most so many characters that each database stores.
func valueOf(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// keyOf is a name as MLflow takes it: letters, digits, spaces, and four signs. Each other byte is a colon and two hexadecimal digits.
// MLflow refuses names that are not clean paths: their slashes and dots are such bytes, too. A name that is too long is cut, and ends in a
// part of its digest.
func keyOf(name string) string {
	clean := name == path.Clean(name) && name != "." && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "..")
	var b strings.Builder
	for _, c := range []byte(name) {
		if isPlain(c) || clean && (c == '/' || c == '.') {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, ":%02X", c)
	}
	key := b.String()
	if len(key) <= maxKey {
		return key
	}
	digest := sha256.Sum256([]byte(name))
	end := " " + hex.EncodeToString(digest[:8])
	return strings.TrimRight(key[:maxKey-len(end)], "/.") + end
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_- ", c) >= 0
}

// reader makes points, params and units of rows.
type reader struct {
	columns []deliver.Column
	end     int64 // the time of points without one

	params map[string]string // by key
	units  map[string]string // of metrics, by key
	steps  map[string]int64  // points of each key without a step
}

func newReader(d deliver.Delivery) *reader {
	r := &reader{
		columns: d.Columns, end: max(0, cmp.Or(d.About.Ended, d.About.Started, time.Unix(0, 0)).UnixMilli()),
		params: make(map[string]string), units: make(map[string]string), steps: make(map[string]int64),
	}
	maps.Copy(r.params, d.About.Labels)
	return r
}

// points returns the points of a row: one for each of its numbers but those of the run. The point of a sample has the name of the metric,
// that of a summary the column's name after it and a dot, and that of a metric.NAME.FIELD the column's name alone. Labels follow the
// metric's name. A point without a step has the number of the points of its name before it.
func (r *reader) points(row []any) []metric {
	about := r.about(row)
	base, unit, at, step := about.name(), about.text("unit"), r.timeOf(about.text("time")), about.number("step")
	var all []metric
	for i, c := range r.columns {
		value, isNumber := row[i].(float64)
		if !isNumber || c.Value.Field == "step" || isOfRun(c.Value) {
			continue
		}
		m := metric{Key: nameOf(base, c), Value: value, Timestamp: at}
		if unit != "" {
			r.units[m.Key] = unit
		}
		m.Key = keyOf(m.Key)
		if step != nil {
			m.Step = int64(*step)
		} else {
			m.Step = r.steps[m.Key]
			r.steps[m.Key]++
		}
		all = append(all, m)
	}
	return all
}

// nameOf is the name of a column's point in a row about a metric, "" if the row does not say which.
func nameOf(metric string, c deliver.Column) string {
	switch {
	case metric == "":
		return c.Name
	case c.Value.From == descriptors.FromSummary:
		return metric + "." + c.Name
	}
	return metric
}

func isOfRun(v descriptors.ColumnValue) bool {
	return v.From == descriptors.FromRun || v.From == descriptors.FromLabel
}

// rowFields are the values of a row that are about its points, by field.
type rowFields map[string]any

// about returns those of a row, and keeps the values of the run as params.
func (r *reader) about(row []any) rowFields {
	f := rowFields{}
	for i, c := range r.columns {
		switch {
		case isOfRun(c.Value), c.Value.From == descriptors.FromMetric && !c.Number:
			if row[i] != nil {
				r.params[c.Name] = fmt.Sprint(row[i])
			}
		case c.Value.From != descriptors.FromMetric:
			f[c.Value.Field] = row[i]
		}
	}
	return f
}

func (f rowFields) text(field string) string {
	text, _ := f[field].(string)
	return text
}

func (f rowFields) number(field string) *float64 {
	if x, ok := f[field].(float64); ok {
		return &x
	}
	return nil
}

// name is the name of the metric, with its labels as a JSON object.
func (f rowFields) name() string {
	name, labels := f.text("metric"), f.text("labels")
	if name == "" || labels == "" {
		return name
	}
	return name + " " + labels
}

// timeOf is the time of a point in ms; without one it is the end of the run.
func (r *reader) timeOf(text string) int64 {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return r.end
	}
	return max(0, t.UnixMilli())
}
