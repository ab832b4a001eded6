package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

func TestComplete(t *testing.T) {
	for name, tt := range map[string]struct {
		phase      event.Phase
		collectors []string
		streams    []store.Stream
		want       store.Completeness
	}{
		"a run that ended before it had a pod is complete": {
			want: store.Completeness{Complete: true},
		},
		"a run whose sources have all ended and brought what they said is complete": {
			collectors: []string{"p"}, streams: endedStreams("p", 5, 3),
			want: store.Completeness{Complete: true, Lines: 5, Samples: 3},
		},
		"a run that goes on is not": {
			phase: event.PhaseRunning, collectors: []string{"p"}, streams: endedStreams("p", 5, 3),
			want: store.Completeness{Lines: 5, Samples: 3},
		},
		"a pod of which nothing has come is awaited": {
			collectors: []string{"p"},
			want: store.Completeness{Awaited: []string{
				"the end of the lines of output of pod p", "the end of the samples of output of pod p", "the end of the samples of metrics of pod p", "the end of the samples of fifo of pod p",
			}},
		},
		"a source that has not ended is awaited, however much it brought": {
			collectors: []string{"p"}, streams: change(endedStreams("p", 5, 3), 0, func(s *store.Stream) { s.End = nil }),
			want: store.Completeness{Lines: 5, Samples: 3, Awaited: []string{"the end of the lines of output of pod p"}},
		},
		"the pods of all attempts are awaited": {
			collectors: []string{"p", "q"}, streams: append(endedStreams("p", 5, 3), endedStreams("q", 1, 1)[:3]...),
			want: store.Completeness{Lines: 6, Samples: 4, Awaited: []string{"the end of the samples of fifo of pod q"}},
		},
		"lines and samples that were sent and are not there are missing": {
			collectors: []string{"p"}, streams: change(change(endedStreams("p", 5, 3), 0, func(s *store.Stream) { s.Stored = 2 }), 1, func(s *store.Stream) { s.Stored = 1 }),
			want: store.Completeness{Lines: 2, Samples: 1, Missing: 5, Awaited: []string{"3 lines of output of pod p", "2 samples of output of pod p"}},
		},
		"what is missing of a pod that nobody awaits is missing all the same": {
			streams: change(endedStreams("p", 5, 3), 0, func(s *store.Stream) { s.Stored = 4 }),
			want:    store.Completeness{Lines: 4, Samples: 3, Missing: 1, Awaited: []string{"1 line of output of pod p"}},
		},
		"who follows a pod's log from outside is awaited beside its collector": {
			collectors: []string{"p", event.LogFollower("p")}, streams: endedStreams("p", 5, 3),
			want: store.Completeness{Lines: 5, Samples: 3, Awaited: []string{"the end of the lines of log of pod p", "the end of the samples of log of pod p"}},
		},
		"what the platform measured itself is told apart": {
			collectors: []string{"p"}, streams: append(endedStreams("p", 5, 3), store.Stream{Origin: store.Origin{Stream: event.Stream{Pod: "p", Kind: event.StreamSystem}}, Topic: event.TopicMetrics, Stored: 20}),
			want: store.Completeness{Complete: true, Lines: 5, Samples: 23, System: 20},
		},
		"why something was kept out is said": {
			collectors: []string{"p"}, streams: change(endedStreams("p", 5, 3), 1, func(s *store.Stream) { s.Origin.Role, s.End.Dropped, s.End.Reason = "worker", 7, "no number" }),
			want: store.Completeness{Complete: true, Lines: 5, Samples: 3, Notes: []string{"worker-0, output: 7 dropped: no number"}},
		},
		"data that may be missing are named without a number": {
			collectors: []string{"p"}, streams: change(endedStreams("p", 5, 3), 0, func(s *store.Stream) { s.Origin.Role, s.End.Reason = "worker", "the pod was gone" }),
			want: store.Completeness{Complete: true, Lines: 5, Samples: 3, Notes: []string{"worker-0, output: the pod was gone"}},
		},
		"lines that a limit kept out are not missing": {
			collectors: []string{"p"}, streams: change(endedStreams("p", 5, 3), 0, func(s *store.Stream) { s.End.Dropped = 7 }),
			want: store.Completeness{Complete: true, Lines: 5, Samples: 3, Dropped: 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.phase == "" {
				tt.phase = event.PhaseFinished
			}
			got := store.Complete(store.Run{Phase: tt.phase, Collectors: tt.collectors}, tt.streams)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// endedStreams returns the sources of a pod that wrote the given numbers of lines, and of samples in its output, and have ended.
func endedStreams(pod string, lines, samples int64) []store.Stream {
	of := func(stream, topic string, n int64) store.Stream {
		return store.Stream{Origin: store.Origin{Run: "r", Attempt: 1, Stream: event.Stream{Pod: pod, Kind: stream}}, Topic: topic, Stored: n, End: &event.End{Count: n}}
	}
	return []store.Stream{
		of(event.StreamOutput, event.TopicLogs, lines), of(event.StreamOutput, event.TopicMetrics, samples),
		of(event.StreamMetrics, event.TopicMetrics, 0), of(event.StreamFIFO, event.TopicMetrics, 0),
	}
}

func change(streams []store.Stream, i int, how func(*store.Stream)) []store.Stream {
	how(&streams[i])
	return streams
}
