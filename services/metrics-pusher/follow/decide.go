package follow

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// Bounds.
const (
	maxBatch   = 64 << 10 // bytes of lines that are shipped at once, about
	maxLine    = 64 << 10 // bytes of a line that are stored
	maxSamples = 500      // that are shipped at once
	maxTail    = 1 << 20  // bytes at the end of a log over its limit that are stored, in memory until the log ends
)

// target is a container whose log is followed.
type target struct {
	Engine  string      `json:"engine,omitempty"` // on which it runs; empty for the default one
	Ref     cluster.Ref `json:"ref"`
	Pod     string      `json:"pod"` // name
	UID     string      `json:"uid"`
	Role    string      `json:"role"`
	Index   int         `json:"index,omitempty"`
	Created time.Time   `json:"made"` // when the pod was
}

// targetState is a target and its state.
type targetState struct {
	target

	Started bool // there may be a log
	Ended   bool // the container writes no more
}

// targetsOf returns the containers of an attempt that run without the platform's entrypoint.
func targetsOf(s cluster.Snapshot) []targetState {
	var all []targetState
	for _, p := range s.Pods {
		if !cluster.RunsWithoutEntrypoint(p) {
			continue
		}
		t := targetState{target: target{
			Ref: s.Ref, Pod: p.Name, UID: string(p.UID), Role: cmp.Or(p.Labels[cluster.LabelRole], cluster.ContainerBenchmark),
			Created: p.CreationTimestamp.UTC(),
		}}
		t.Index, _ = strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation]) // 0 if there is no such annotation
		t.Ended = p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		for _, c := range p.Status.ContainerStatuses {
			if c.Name == cluster.ContainerBenchmark {
				t.Started = t.Started || c.State.Running != nil || c.State.Terminated != nil
				t.Ended = t.Ended || c.State.Terminated != nil
			}
		}
		all = append(all, t)
	}
	return all
}

// source returns the stream of the lines of a target.
func (t target) source() event.Stream {
	return event.Stream{Role: t.Role, Index: t.Index, Pod: t.UID, Container: cluster.ContainerBenchmark, Kind: event.StreamLog}
}

// progress is how far a log is shipped.
type progress struct {
	target

	Time      int64     `json:"time"` // ns since 1970 of the last line
	Seq       int64     `json:"seq"`  // of the last line; 0 for none
	HeadBytes int64     `json:"kept"` // bytes of lines of the beginning
	Lines     shipCount `json:"lines"`
	Samples   shipCount `json:"samples"`
	Untimed   int64     `json:"untimed,omitempty"` // samples whose time cannot be read

	Cut extract.LogOverflow `json:"cut,omitzero"` // of the lines behind the beginning of a log over its limit

	Block  int64   `json:"block,omitempty"`  // ns since 1970 of the first line of a block that has not ended; 0 for none
	Closed []int64 `json:"closed,omitempty"` // extract.Blocks.Closed
}

// lostBlock is the reason for missing samples of a block.
const lostBlock = "the pod was gone before a block of its log was read to the end"

// noteBlocks stores how to meet the blocks again that have not ended.
func (p *progress) noteBlocks(b *extract.Blocks) {
	if p.Block = b.ResumeOffset(math.MaxInt64); p.Block == math.MaxInt64 {
		p.Block = 0
	}
	p.Closed = b.Closed()
}

// shipCount is how many lines or samples were shipped.
type shipCount struct {
	Count   int64  `json:"count"`
	Last    int64  `json:"last"`
	Dropped int64  `json:"dropped,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func (c *shipCount) ship(n int, seq int64) { c.Count, c.Last = c.Count+int64(n), seq }

// drop counts n lines or samples that are not shipped, with the reason. Only the first reason is stored.
func (c *shipCount) drop(n int64, reason string) {
	c.Dropped += n
	c.Reason = cmp.Or(c.Reason, reason)
}

func (c shipCount) end() *event.End {
	e := &event.End{Count: c.Count, Last: c.Last, Dropped: c.Dropped, Reason: c.Reason}
	if c.Count == 0 {
		e.Last = -1
	}
	return e
}

// since returns the time from which the log is read: the beginning of the second of the last line, or of the first line of a block that has
// not ended, so that the lines of that second get the same numbers again. For a log over its limit it is the time of the first mark:
// only the reader that was interrupted had the end of the log in memory.
func (p progress) since() time.Time {
	from := p.Time
	if len(p.Cut.Marks) > 0 {
		from = p.Cut.Marks[0].From
	}
	if p.Block != 0 {
		from = min(from, p.Block)
	}
	if from == 0 {
		return time.Time{}
	}
	return time.Unix(0, from).UTC().Truncate(time.Second)
}

// tailBuffer holds the last lines of a log over its limit, at most maxBytes of them.
type tailBuffer struct {
	maxBytes int64
	bytes    int64
	lines    []event.Line
}

func sizeOf(l event.Line) int64 { return int64(len(l.Text)) + 1 }

// add appends a line, and drops the first ones that are too many.
func (e *tailBuffer) add(l event.Line) {
	e.lines, e.bytes = append(e.lines, l), e.bytes+sizeOf(l)
	n := 0
	for ; e.bytes > e.maxBytes; n++ {
		e.bytes -= sizeOf(e.lines[n])
		e.lines[n] = event.Line{} // its text may go
	}
	e.lines = e.lines[n:]
}

// nextSeq returns the sequence number of a line that was written at a time, after
// one with the number before.
func nextSeq(created time.Time, at, before int64) int64 { return max(before+1, at-created.UnixNano()) }

// cutTimestamp cuts the time off the beginning of a line. It is false for a line without a time, which no container wrote.
func cutTimestamp(line []byte) (at int64, text []byte, ok bool) {
	stamp, text, ok := bytes.Cut(line, []byte(" "))
	if !ok { // an empty line may have lost its space
		stamp, text = line, nil
	}
	t, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return 0, line, false
	}
	return t.UnixNano(), text, true
}

// lineOf returns a line of length bytes that begins with text, as it is shipped.
func lineOf(text []byte, length, seq, at int64, open bool) event.Line {
	l := event.Line{Seq: seq, Time: at, Unterminated: open}
	l.Text, l.Raw, l.Truncated = extract.LineText(text, length, maxLine)
	return l
}

// metricsOf returns the metrics that are searched in the lines of a role, and how many bytes of the lines are stored; 0 is no limit.
func metricsOf(d *descriptors.Descriptor, role string, limit int64) ([]pod.Metric, int64) {
	if d.Limits.MaxLogSize > 0 {
		limit = d.Limits.MaxLogSize
	}
	out := d.Output
	if role == "server" && d.Hardware.Strategy != descriptors.OwnRoles {
		if out = nil; d.Server != nil {
			out = d.Server.Output
		}
	}
	if out == nil {
		return nil, limit
	}
	var all []pod.Metric
	for _, m := range out.Metrics {
		metric := pod.Metric{Name: m.Name, Unit: m.Units, Pattern: m.Pattern, Parser: m.Parser, Direction: string(m.Direction)}
		if m.Parser == descriptors.BlockParser {
			metric.Block = pod.Block{Begin: m.Block, Lines: m.BlockLines, Within: m.BlockTime}
		}
		all = append(all, metric)
	}
	return all, limit
}

// seriesOf returns how many series in the output of a role's pod are stored, half of the pod's: the pod's collector has the other half.
func seriesOf(d *descriptors.Descriptor, role string) int {
	ends := d.Hardware.Strategy != descriptors.OwnRoles && slices.Contains(d.Ending(), role)
	return max(1, pod.SeriesLimit(ends, d.Pods()-1)/2)
}
