package fio

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/parsers/internal/document"
	"github.com/benchmark-ai/bai/services/parsers/report"
)

// all is the job of sums.
const all = "all"

// output is what fio prints: jobs of its own, or those that servers ran for it.
type output struct {
	Version string  `json:"fio version"`
	Jobs    []entry `json:"jobs"`
	Clients []entry `json:"client_stats"`
}

func (d *output) entries() []*entry {
	var all []*entry
	for _, list := range [][]entry{d.Jobs, d.Clients} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// entry is one job, or several with group_reporting.
type entry struct {
	Name      string          `json:"jobname"`
	Group     document.Number `json:"groupid"`
	Error     document.Number `json:"error"`
	Errors    document.Number `json:"total_err"`
	Host      string          `json:"hostname"`
	Port      document.Number `json:"port"`
	UserCPU   document.Number `json:"usr_cpu"`
	SystemCPU document.Number `json:"sys_cpu"`
	Read      transfer        `json:"read"`
	Write     transfer        `json:"write"`
	Trim      transfer        `json:"trim"`
	Mixed     transfer        `json:"mixed"`
	Sync      transfer        `json:"sync"`
}

// transfer is one direction of a job.
type transfer struct {
	Bytes     document.Number `json:"io_bytes"`
	KBytes    document.Number `json:"io_kbytes"`
	BW        document.Number `json:"bw"` // KiB/s
	BWBytes   document.Number `json:"bw_bytes"`
	IOPS      document.Number `json:"iops"`
	Runtime   document.Number `json:"runtime"` // ms
	IOs       document.Number `json:"total_ios"`
	Lat       latency         `json:"lat_ns"`
	Clat      latency         `json:"clat_ns"`
	Slat      latency         `json:"slat_ns"`
	MicroLat  latency         `json:"lat"`
	MicroClat latency         `json:"clat"`
	MicroSlat latency         `json:"slat"`
}

// latency is a distribution in nanoseconds, in fio 2 in microseconds.
type latency struct {
	Min        document.Number            `json:"min"`
	Max        document.Number            `json:"max"`
	Mean       document.Number            `json:"mean"`
	Stddev     document.Number            `json:"stddev"`
	N          document.Number            `json:"N"`
	Percentile map[string]document.Number `json:"percentile"`
}

// operation is one direction of a job, with its name.
type operation struct {
	name string
	of   *transfer
}

// operations returns the directions that were used, in the order of the document, and sync.
func (e *entry) operations() (used []operation) {
	for _, o := range []operation{{"read", &e.Read}, {"write", &e.Write}, {"trim", &e.Trim}, {"mixed", &e.Mixed}, {"sync", &e.Sync}} {
		n, _ := o.of.IOs.Times(0)
		bytes, _ := o.of.Bytes.Times(0)
		syncs, _ := o.of.Lat.N.Times(0)
		if n > 0 || bytes > 0 || o.name == "sync" && syncs > 0 {
			used = append(used, o)
		}
	}
	return used
}

// bandwidth returns the rate in bytes a second.
func (t *transfer) bandwidth() (float64, bool) {
	if v, ok := t.BWBytes.Times(0); ok {
		return v, true
	}
	v, ok := t.BW.Times(0)
	return v * 1024, ok
}

// bytes returns what was transferred. The io_bytes of fio 2, which has no number of KiB beside it, are KiB.
func (t *transfer) bytes() (float64, bool) {
	v, ok := t.Bytes.Times(0)
	if t.KBytes == "" && t.BWBytes == "" {
		v *= 1024
	}
	return v, ok
}

// writer collects metrics.
type writer struct {
	metrics []report.Metric
	missing string
}

// put adds a metric, if there is a value, and it is finite.
func (w *writer) put(name, unit string, d report.Direction, labels map[string]string, v float64, ok bool) {
	if ok && !math.IsInf(v, 0) {
		w.metrics = append(w.metrics, report.Metric{Name: name, Value: v, Unit: unit, Direction: d, Labels: labels})
	}
}

// output adds the metrics of all jobs, and of their sums. It returns which sum is missing.
func (w *writer) output(d *output) (missing string) {
	jobs, total := d.entries(), (*entry)(nil)
	w.metrics = make([]report.Metric, 0, 64*len(jobs))
	if n := len(jobs); len(d.Jobs) == 0 && n > 1 && jobs[n-1].Name == "All clients" {
		jobs, total = jobs[:n-1], jobs[n-1]
	}
	labels := labelsOf(jobs, len(d.Clients) > 0)
	for i, e := range jobs {
		w.entry(e, labels[i])
	}
	switch {
	case total != nil:
		w.entry(total, map[string]string{labelJob: all})
	case len(d.Clients) > 1:
		return fmt.Sprintf("no sum of all clients: fio has the results of %d jobs, and has not got the others", len(jobs))
	default:
		w.groups(jobs)
	}
	return ""
}

// labelsOf returns labels that tell jobs apart.
func labelsOf(jobs []*entry, remote bool) []map[string]string {
	labels, count := make([]map[string]string, len(jobs)), make(map[string]int)
	for _, e := range jobs {
		count[fmt.Sprint(e.Name, "\n", e.Host, e.Port)]++
	}
	seen := make(map[string]int)
	for i, e := range jobs {
		labels[i] = map[string]string{labelJob: e.Name}
		if remote {
			labels[i][labelHost] = e.Host + ":" + string(e.Port)
		}
		id := fmt.Sprint(e.Name, "\n", e.Host, e.Port)
		if seen[id]++; count[id] > 1 || e.Name == all {
			labels[i][labelIndex] = strconv.Itoa(seen[id])
		}
	}
	return labels
}

// with returns labels and one more.
func with(labels map[string]string, name, value string) map[string]string {
	labels = maps.Clone(labels)
	labels[name] = value
	return labels
}

// entry adds the metrics of a job.
func (w *writer) entry(e *entry, labels map[string]string) {
	used := e.operations()
	for _, o := range used {
		t, l := o.of, with(labels, labelOp, o.name)
		if o.name != "sync" {
			w.rates(e.Name, t, l)
		}
		w.latency("lat", &t.Lat, -9, l)
		w.latency("lat", &t.MicroLat, -6, l)
		w.latency("clat", &t.Clat, -9, l)
		w.latency("clat", &t.MicroClat, -6, l)
		w.latency("slat", &t.Slat, -9, l)
		w.latency("slat", &t.MicroSlat, -6, l)
	}
	v, ok := e.UserCPU.Times(-2)
	w.put("usr_cpu", report.Ratio, "", labels, v, ok && len(used) > 0)
	v, ok = e.SystemCPU.Times(-2)
	w.put("sys_cpu", report.Ratio, "", labels, v, ok && len(used) > 0)
	v, ok = e.Errors.Times(0)
	w.put("total_err", report.Count, report.Lower, labels, v, ok)
}

// rates adds what a transfer has apart from its latencies.
func (w *writer) rates(job string, t *transfer, labels map[string]string) {
	v, ok := t.bandwidth()
	ok = ok && !math.IsInf(v, 0)
	w.put("bandwidth", report.BytesPerSecond, report.Higher, labels, v, ok)
	v, ok1 := t.IOPS.Times(0)
	w.put("iops", report.PerSecond, report.Higher, labels, v, ok1)
	if !ok || !ok1 {
		w.missing = fmt.Sprintf("no bandwidth or iops of job %s", job)
	}
	v, ok = t.bytes()
	w.put("io_bytes", report.Bytes, "", labels, v, ok)
	v, ok = t.IOs.Times(0)
	w.put("total_ios", report.Count, "", labels, v, ok)
	v, ok = t.Runtime.Times(-3)
	w.put("runtime", report.Seconds, "", labels, v, ok)
}

// latency adds a distribution, unless it is one of nothing.
func (w *writer) latency(name string, l *latency, exponent int, labels map[string]string) {
	if top, ok := l.Max.Times(0); !ok || top <= 0 {
		return
	}
	for _, part := range []struct {
		suffix string
		of     document.Number
	}{{"_mean", l.Mean}, {"_stddev", l.Stddev}, {"_min", l.Min}, {"_max", l.Max}} {
		v, ok := part.of.Times(exponent)
		w.put(name+part.suffix, report.Seconds, report.Lower, labels, v, ok)
	}
	for _, p := range percentiles(l.Percentile) {
		v, ok := l.Percentile[p].Times(exponent)
		w.put(name+"_percentile", report.Seconds, report.Lower, with(labels, labelPercentile, short(p)), v, ok)
	}
}

// percentiles returns the keys of percentiles in their order. Two of one value, and those that are no percentage, are left out: fio 2 fills
// its list with 0.00.
func percentiles(of map[string]document.Number) []string {
	value := func(key string) float64 { v, _ := report.Number(key); return v }
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(of)), func(key string) bool {
		v := value(key)
		return v <= 0 || v > 100
	})
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(value(a), value(b)), strings.Compare(a, b)) })
	return slices.CompactFunc(keys, func(a, b string) bool { return value(a) == value(b) })
}

// short writes a percentage without the zeros at its end.
func short(percentile string) string {
	v, _ := report.Number(percentile)
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// groups adds a sum of each group of jobs that ran at once.
func (w *writer) groups(jobs []*entry) {
	var groups []document.Number
	for _, e := range jobs {
		if !slices.Contains(groups, e.Group) {
			groups = append(groups, e.Group)
		}
	}
	for _, g := range groups {
		labels := map[string]string{labelJob: all}
		if len(groups) > 1 {
			labels[labelGroup] = string(g)
		}
		w.sum(slices.DeleteFunc(slices.Clone(jobs), func(e *entry) bool { return e.Group != g }), labels)
	}
}

// sum adds the sums of jobs. Their mean latency is that of all operations.
func (w *writer) sum(jobs []*entry, labels map[string]string) {
	for _, op := range []string{"read", "write", "trim", "mixed"} {
		s, l := sumOf(jobs, op), with(labels, labelOp, op)
		if s.n == 0 {
			continue
		}
		bandwidth, iops, ok := s.rates()
		w.put("bandwidth", report.BytesPerSecond, report.Higher, l, bandwidth, ok)
		w.put("iops", report.PerSecond, report.Higher, l, iops, ok)
		w.put("lat_mean", report.Seconds, report.Lower, l, s.mean(), s.timed == s.n && s.ios > 0)
		w.put("lat_min", report.Seconds, report.Lower, l, s.least, s.timed == s.n)
		w.put("lat_max", report.Seconds, report.Lower, l, s.most, s.timed == s.n)
		if !ok && w.missing == "" {
			w.missing = "no sum of the jobs: io_bytes, total_ios or runtime is missing"
		}
	}
}

// sumOf returns the sums of one direction of jobs.
func sumOf(jobs []*entry, op string) sums {
	s := sums{least: math.Inf(1)}
	for _, e := range jobs {
		for _, o := range e.operations() {
			if o.name == op {
				s.add(o.of)
			}
		}
	}
	return s
}

// sums are those of one direction of several jobs.
type sums struct {
	n, moved, timed              int // jobs, those whose amounts and time are known, and those with latencies
	one                          *transfer
	bytes, operations, longest   float64 // the longest runtime in seconds
	ios, time, only, least, most float64
}

func (s *sums) add(t *transfer) {
	s.n, s.one = s.n+1, t
	ios, ok := t.IOs.Times(0)
	bytes, ok1 := t.bytes()
	runtime, ok2 := t.Runtime.Times(-3)
	if ok && ok1 && ok2 {
		s.moved++
		s.bytes, s.operations, s.longest = s.bytes+bytes, s.operations+ios, max(s.longest, runtime)
	}
	l, exponent := &t.Lat, -9
	if l.Mean == "" {
		l, exponent = &t.MicroLat, -6
	}
	mean, ok1 := l.Mean.Times(exponent)
	least, ok2 := l.Min.Times(exponent)
	most, ok3 := l.Max.Times(exponent)
	if ok && ok1 && ok2 && ok3 && most > 0 {
		s.timed++
		s.ios, s.time, s.only = s.ios+ios, s.time+ios*mean, mean
		s.least, s.most = min(s.least, least), max(s.most, most)
	}
}

// rates returns the rates of one job as the tool prints them, and those of several as it sums up a group: all that they did over the
// longest runtime, since the rates of jobs that ran for different times have no sum. Without any runtime they are 0, as the tool has it.
func (s *sums) rates() (bandwidth, iops float64, ok bool) {
	switch {
	case s.n == 1:
		bandwidth, ok = s.one.bandwidth()
		iops, also := s.one.IOPS.Times(0)
		return bandwidth, iops, ok && also
	case s.moved < s.n:
		return 0, 0, false
	case s.longest == 0:
		return 0, 0, true
	}
	return s.bytes / s.longest, s.operations / s.longest, true
}

// mean returns the mean latency; of one job it is that which the tool prints, to the last digit.
func (s *sums) mean() float64 {
	if s.timed == 1 {
		return s.only
	}
	return s.time / s.ios
}

// isSum reports whether a metric is that of the sum of jobs.
func isSum(m report.Metric) bool {
	_, one := m.Labels[labelIndex]
	return m.Labels[labelJob] == all && !one
}

// headlines marks the rates of the sums: those of reading and writing, or all if there is neither.
func (w *writer) headlines() {
	var rates, of []*report.Metric
	for i := range w.metrics {
		m := &w.metrics[i]
		if m.Name != "bandwidth" && m.Name != "iops" || !isSum(*m) {
			continue
		}
		rates = append(rates, m)
		if op := m.Labels[labelOp]; op == "read" || op == "write" {
			of = append(of, m)
		}
	}
	if len(of) == 0 {
		of = rates
	}
	for _, m := range of {
		m.Headline = true
	}
}
