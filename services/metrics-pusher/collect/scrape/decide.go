package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// parsePage returns the samples of a page in Prometheus' text format, version 0.0.4, whose names match names, all where names is nil. They
// are the samples that Prometheus would store, in order of their names: for a histogram its buckets (NAME_bucket, with the label le),
// NAME_sum and NAME_count, for a summary its quantiles (NAME, with the label quantile), NAME_sum and NAME_count. Their time is that on the
// page, else at.
//
// Units follow from the names, by Prometheus' own conventions: NAME_seconds, NAME_bytes, NAME_ratio and so on, before _total, _sum and
// _bucket. NAME_count and NAME_bucket are counts, and have the unit 1.
//
// If instance is not empty, samples have it as the label instance, as in Prometheus, unless the page sets that label itself.
//
// Samples without a name are left out, and those whose name begins with @ or has more than 256 bytes. Samples with too many labels or a
// label that is too long are refused, as are up to 10 lines of a page that are not in the format. For a page that cannot be parsed,
// parsePage returns an error and no samples.
func parsePage(page []byte, at time.Time, names *regexp.Regexp, instance string) ([]event.Sample, []rejection, error) {
	families, refused, err := parseLenient(page)
	if err != nil {
		return nil, nil, fmt.Errorf("read the text format of Prometheus: %w", err)
	}
	r := conversion{at: at.UnixNano(), names: names, instance: instance}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, m := range families[name].GetMetric() {
			r.metric(name, m)
		}
	}
	if r.refused.Count > 0 {
		refused = append(refused, r.refused)
	}
	return r.samples, refused, nil
}

// maxBad is how many lines of a page may be bad: for each the page is read once
// more.
const maxBad = 10

// parseLenient parses a page without those of its lines that are not in the format.
func parseLenient(page []byte) (families map[string]*dto.MetricFamily, refused []rejection, err error) {
	for {
		families, err = parse(page)
		bad, ok := errors.AsType[expfmt.ParseError](err)
		if !ok {
			break
		}
		text, rest, found := commentLine(page, bad.Line)
		if !found || len(refused) == maxBad {
			break
		}
		refused, page = append(refused,
			rejection{Count: 1, Reason: fmt.Sprintf("line %d: %.100q is not in the text format: %s", bad.Line, text, bad.Msg)}), rest
	}
	if err == nil && len(families) == 0 && len(refused) > 0 {
		err = errors.New(refused[0].Reason)
	}
	if err != nil {
		return nil, nil, err
	}
	return families, refused, nil
}

// commentLine returns a line of a page, by its number from 1, and the page with a comment in place of the line, so that the other lines
// keep their numbers.
func commentLine(page []byte, number int) (line, rest []byte, ok bool) {
	begin := 0
	for range number - 1 {
		i := bytes.IndexByte(page[begin:], '\n')
		if i < 0 {
			return nil, nil, false
		}
		begin += i + 1
	}
	end := len(page)
	if i := bytes.IndexByte(page[begin:], '\n'); i >= 0 {
		end = begin + i
	}
	line = page[begin:end]
	if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' && len(line) == 1 {
		return nil, nil, false
	}
	return line, slices.Concat(page[:begin], []byte("#"), page[min(end, len(page)):], missingNewline(page)), true
}

// missingNewline is the end of a line that a page lacks.
func missingNewline(page []byte) []byte {
	if bytes.HasSuffix(page, []byte("\n")) {
		return nil
	}
	return []byte("\n")
}

// rejection is how many samples or lines of a page are not stored, and why.
type rejection struct {
	Count  int64
	Reason string
}

// parse parses a page. The parser panics on some invalid pages, such as "{}": parse returns an error for these, too.
func parse(page []byte) (families map[string]*dto.MetricFamily, err error) {
	defer func() {
		if why := recover(); why != nil {
			families, err = nil, fmt.Errorf("it cannot be parsed: %v", why)
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(page))
}

// conversion collects the samples of one page.
type conversion struct {
	at       int64
	names    *regexp.Regexp
	instance string
	samples  []event.Sample
	refused  rejection
}

// LabelInstance names the page of a sample if there are several.
const LabelInstance = "instance"

func (r *conversion) metric(name string, m *dto.Metric) {
	switch {
	case m.GetCounter() != nil:
		r.add(m, name, unitOf(name), m.GetCounter().GetValue(), "", "")
	case m.GetGauge() != nil:
		r.add(m, name, unitOf(name), m.GetGauge().GetValue(), "", "")
	case m.GetUntyped() != nil:
		r.add(m, name, unitOf(name), m.GetUntyped().GetValue(), "", "")
	case m.GetSummary() != nil:
		s := m.GetSummary()
		for _, q := range s.GetQuantile() {
			r.add(m, name, unitOf(name), q.GetValue(), "quantile", number(q.GetQuantile()))
		}
		r.totals(m, name, s.SampleSum, s.SampleCount)
	case m.GetHistogram() != nil:
		h := m.GetHistogram()
		for _, b := range h.GetBucket() {
			r.add(m, name+"_bucket", "1", float64(b.GetCumulativeCount()), "le", number(b.GetUpperBound()))
		}
		r.totals(m, name, h.SampleSum, h.SampleCount)
	}
}

// totals adds the sum and the count of a metric, as far as the page has them.
func (r *conversion) totals(m *dto.Metric, name string, sum *float64, count *uint64) {
	if sum != nil {
		r.add(m, name+"_sum", unitOf(name), *sum, "", "")
	}
	if count != nil {
		r.add(m, name+"_count", "1", float64(*count), "", "")
	}
}

// add adds a sample, with one more label if key is not empty.
func (r *conversion) add(m *dto.Metric, name, unit string, v float64, key, value string) {
	if name == "" || name[0] == '@' || len(name) > maxName || r.names != nil && !r.names.MatchString(name) {
		return
	}
	s := event.Sample{Name: name, Unit: unit, Time: r.at}
	if m.TimestampMs != nil && m.GetTimestampMs() > 0 {
		s.Time = m.GetTimestampMs() * int64(time.Millisecond)
	}
	s.Set(v)
	if n := len(m.GetLabel()); n > 0 || key != "" || r.instance != "" {
		s.Labels = make(map[string]string, n+2)
	}
	if r.instance != "" {
		s.Labels[LabelInstance] = r.instance
	}
	for _, l := range m.GetLabel() {
		s.Labels[l.GetName()] = l.GetValue()
	}
	if key != "" {
		s.Labels[key] = value
	}
	if !fits(s.Labels) {
		if r.refused.Count++; r.refused.Count == 1 {
			r.refused.Reason = fmt.Sprintf("%s has more than %d labels, or one of more than 256 bytes", name, extract.MaxLabels)
		}
		return
	}
	r.samples = append(r.samples, s)
}

// fits reports whether a sample may have these labels. Dropping one would put the sample into another series.
func fits(labels map[string]string) bool {
	for name, value := range labels {
		if !extract.Fits(name) || !extract.Fits(value) {
			return false
		}
	}
	return len(labels) <= extract.MaxLabels
}

// maxName is how many bytes the name of a metric has at most.
const maxName = 256

// number returns the value of a label that is a number, as Prometheus writes it.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if text == "+Inf" || strings.ContainsAny(text, ".eN") {
		return text
	}
	return text + ".0"
}

// instances returns the label instance for each URL: host and port, or the whole URL if several have the same host and port. For a single
// URL it is empty.
func instances(urls []string) []string {
	short, long, count := make([]string, len(urls)), make([]string, len(urls)), make(map[string]int)
	if len(urls) < 2 {
		return short
	}
	for i, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			u = &url.URL{Host: text} // a descriptor has no such URL
		}
		u.User = nil // the label must not show credentials
		short[i], long[i] = u.Host, u.String()
		count[u.Host]++
	}
	for i := range short {
		if count[short[i]] > 1 {
			short[i] = long[i]
		}
	}
	return short
}

// unitOf returns the unit in the name of a metric, empty if there is none. See https://prometheus.io/docs/practices/naming.
func unitOf(name string) string {
	for _, kind := range []string{"_total", "_created", "_info"} {
		name = strings.TrimSuffix(name, kind)
	}
	last := name[strings.LastIndexByte(name, '_')+1:]
	if last == name {
		return ""
	}
	return map[string]string{
		"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns", "minutes": "min", "hours": "h",
		"bytes": "B", "bits": "bit", "ratio": "1", "percent": "%", "hertz": "Hz",
		"celsius": "°C", "meters": "m", "grams": "g", "joules": "J", "watts": "W", "volts": "V", "amperes": "A",
	}[last]
}
