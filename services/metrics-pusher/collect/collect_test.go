package collect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

func stdoutRecord(text string) pod.Record { return pod.Record{Time: 1, Data: []byte(text)} }
func stderrRecord(text string) pod.Record { return pod.Record{Err: true, Time: 2, Data: []byte(text)} }

func TestLinesOfTheOutput(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := map[string]struct {
		records []pod.Record
		want    []string
	}{
		"a line":                                 {[]pod.Record{stdoutRecord("hello\n")}, []string{"19 hello"}},
		"several of one piece":                   {[]pod.Record{stdoutRecord("a\nb\n\nc\n")}, []string{"15 a", "17 b", "18 ", "20 c"}},
		"one of several pieces":                  {[]pod.Record{stdoutRecord("he"), stdoutRecord("ll"), stdoutRecord("o\nx\n")}, []string{"45 hello", "47 x"}},
		"standard output and error apart":        {[]pod.Record{stdoutRecord("he"), stderrRecord("oh no\n"), stdoutRecord("llo\n")}, []string{"34 oh no err", "51 hello"}},
		"a carriage return stays":                {[]pod.Record{stdoutRecord("a\r\nb\rc\n")}, []string{"16 a\r", "20 b\rc"}},
		"what is no UTF-8 is replaced":           {[]pod.Record{stdoutRecord("a\xff\xfeb\n")}, []string{"18 a\uFFFDb raw 4"}},
		"a character of two pieces is one":       {[]pod.Record{stdoutRecord("gr\xc3"), stdoutRecord("\xb6\xc3\x9fe\n")}, []string{"34 größe"}},
		"a line over the limit is cut":           {[]pod.Record{stdoutRecord(long + "\n")}, []string{"114 " + long[:50] + " raw 100 cut"}},
		"so is one of many pieces":               {[]pod.Record{stdoutRecord(long), stdoutRecord(long), stdoutRecord(long + "\ny\n")}, []string{"340 " + long[:50] + " raw 300 cut", "342 y"}},
		"a line at the limit is not":             {[]pod.Record{stdoutRecord(long[:50] + "\n")}, []string{"64 " + long[:50]}},
		"no character is cut apart":              {[]pod.Record{stdoutRecord(long[:49] + "ö" + "\n")}, []string{"65 " + long[:49] + " raw 51 cut"}},
		"the last line may have no line feed":    {[]pod.Record{stdoutRecord("a\nb")}, []string{"15 a", "17 b open"}},
		"so may those of both streams":           {[]pod.Record{stderrRecord("x"), stdoutRecord("a"), stderrRecord("y")}, []string{"43 a open", "44 xy err open"}},
		"an empty piece is nothing":              {[]pod.Record{stdoutRecord(""), stderrRecord("")}, nil},
		"NUL is a character":                     {[]pod.Record{stdoutRecord("a\x00b\n")}, []string{"17 a\x00b"}},
		"a benchmark that writes nothing at all": {nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVolume(t)
			v.record(t, tt.records...)
			v.exit(t, pod.Exit{})
			s := settings(v)
			s.MaxLine = 50
			store := newStore(t)
			collectAll(t, s, store)
			want(t, store.lines(), tt.want)
			store.complete(t)
		})
	}
}

func TestSamples(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("epoch 1 loss=0.5 loss=nan\n"), stderrRecord("loss=7\nacc=1"))
	v.append(t, pod.Metrics, `{"metric": 0.1}`+"\n"+`{"a": 1, "b": NaN, "@step": 3, "@time": 5}`+"\n\nnot JSON\n"+`{"c": 1, "d": null}`+"\n"+`{"open": 2}`)
	v.exit(t, pod.Exit{})
	s := settings(v)
	s.Metrics = []pod.Metric{{Name: "loss", Unit: "1", Pattern: `loss=(\S+)`}, {Name: "acc", Pattern: `acc=(\d+)`}}
	store := newStore(t)
	collectAll(t, s, store)
	want(t, store.samples(), []string{
		"metrics 16.0 metric=0.1", "metrics 59.0 a=1 step 3 at 5000000000", "metrics 59.1 b=NaN step 3 at 5000000000", "metrics 89.0 c=1", "metrics 101.0 open=2",
		"output 39.0 loss=0.5 1 at 1", "output 39.1 loss=NaN 1 at 1", "output 59.0 loss=7 1 at 2", "output 66.0 acc=1 at 2",
	})
	store.complete(t)
	want(t, store.end("metrics", event.TopicMetrics), event.End{
		Count: 5, Last: 101, Dropped: 2,
		Reason: `the line that ends at byte 69 is not a sample: want a JSON object, as {"metric": 0.1}, got "not JSON"`,
	})
}

func TestAnEmittedMetricHasTheUnitAndDirectionOfTheDescriptor(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("loss=0.5\n"))
	v.append(t, pod.Metrics, `{"loss": 0.1, "other": 2}`+"\n"+`{"loss": 0.2, "@unit": "%"}`+"\n")
	v.exit(t, pod.Exit{})
	s := settings(v)
	s.Metrics = []pod.Metric{{Name: "loss", Unit: "nat", Pattern: `loss=(\S+)`, Direction: event.Lower}}
	store := newStore(t)
	collectAll(t, s, store)
	want(t, store.samples(), []string{
		"metrics 26.0 loss=0.1 nat lower", "metrics 26.1 other=2", "metrics 54.0 loss=0.2 % lower", "output 22.0 loss=0.5 nat lower at 1",
	})
	store.complete(t)
}

func TestANumberWhereALineIsCutIsNoSampleAndCounted(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("loss=1 loss=23456\nloss=7\n"))
	v.exit(t, pod.Exit{})
	s := settings(v)
	s.MaxLine = 14 // which ends in the number
	s.Metrics = []pod.Metric{
		{Name: "loss", Pattern: `loss=(\d+)`}, {Name: "block", Pattern: `(\d+)`, Parser: extract.ParserBlocks, Block: pod.Block{Begin: "^loss"}},
	}
	store := newStore(t)
	collectAll(t, s, store)
	want(t, store.samples(), []string{"output 31.0 loss=1 at 1", "output 32.0 block=1 at 1", "output 38.0 loss=7 at 1", "output 39.0 block=7 at 1"})
	want(t, store.end("output", event.TopicMetrics), event.End{
		Count: 4, Last: 39, Dropped: 2,
		Reason: "a line is longer than 14 bytes, and the rest of it is not searched (write numbers in shorter lines) (first at seq 31 of the log)",
	})
}

func TestATimeThatCannotBeReadIsSaid(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("noon loss=1\n2026-01-02T03:04:05 loss=2\ntea loss=3\n"))
	s := settings(v)
	s.Metrics = []pod.Metric{{Name: "loss", Pattern: `(?P<time>\S+) loss=(\d)`}}
	store := newStore(t)
	collectUntil(t, s, store, func() bool { return len(store.samples()) == 3 && strings.Contains(v.saved(), `"untimed":2`) })
	v.exit(t, pod.Exit{})
	collectAll(t, s, store)
	want(t, store.samples(), []string{"output 25.0 loss=1 at 1", "output 52.0 loss=2", "output 63.0 loss=3 at 1"})
	want(t, store.statusMessages(), []string{
		"2 samples of output of benchmark-0 have the time at which the line was written: the time in the line cannot be read " +
			"(write seconds since 1970, RFC 3339, or 2006-01-02 15:04:05, in UTC)",
	})
}

func TestOfALogOverItsLimitBeginningAndEndAreKeptAndPatternsSeeAll(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("12345\n12345\n"))
	for i := range 100 {
		v.record(t, stdoutRecord(fmt.Sprintf("step=%d\n", i)))
	}
	v.record(t, stdoutRecord("lo"), pod.Record{Err: true, Time: 1, Data: []byte("err\n")}, stdoutRecord("ss=42\nend"))
	v.exit(t, pod.Exit{})
	s := settings(v)
	s.MaxLog = 34
	s.Metrics = []pod.Metric{{Name: "loss", Pattern: `(?:loss|step)=(\S+)`}}
	store := newStore(t)
	collectAll(t, s, store)
	var texts []string
	for _, l := range store.lines() {
		_, text, _ := strings.Cut(l, " ")
		texts = append(texts, text)
	}
	want(t, texts, []string{"12345", "12345", "err err", "loss=42", "end open"})
	want(t, len(store.samples()), 101)
	end := store.end("output", event.TopicLogs)
	want(t, end, event.End{Count: 5, Last: end.Last, Dropped: 100, Reason: "limits.max_log_size: the log is cut at 34 bytes, in the middle: 790 bytes are not stored"})
	want(t, store.end("output", event.TopicMetrics).Dropped, 0)
}

func TestTheEndOfALogIsKeptHoweverOftenItsReaderIsKilled(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.MaxLog = 2 << 20
	s.Metrics = []pod.Metric{{Name: "n", Pattern: `n=(\d+) `}}
	const lines, size = 20_000, 512
	text := func(i int) string { return fmt.Sprintf("%-*s\n", size-1, fmt.Sprintf("n=%d ", i)) }
	store := newStore(t)
	for part := range 4 {
		var all strings.Builder
		for i := part * lines / 4; i < (part+1)*lines/4; i++ {
			all.WriteString(text(i))
			if all.Len() > 60_000 {
				v.record(t, stdoutRecord(all.String()))
				all.Reset()
			}
		}
		v.record(t, stdoutRecord(all.String()))
		collectUntil(t, s, store, func() bool { return len(store.samples()) >= (part+1)*lines/4 })
	}
	info, err := os.Stat(filepath.Join(v.dir, pod.Output))
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Blocks*512 > 4<<20 {
		t.Errorf("of %d bytes of output too many lie on the disk: %+v", info.Size(), st)
	}
	v.exit(t, pod.Exit{})
	collectAll(t, s, store)
	got, end := store.lines(), store.end("output", event.TopicLogs)
	if kept := int64(len(got)); kept < s.MaxLog/size*9/10 || kept > s.MaxLog/size || end.Count != kept || end.Count+end.Dropped != lines {
		t.Errorf("%d lines are kept: %+v", kept, end)
	}
	if first, last := got[0], got[len(got)-1]; !strings.Contains(first, "n=0 ") || !strings.Contains(last, fmt.Sprintf("n=%d ", lines-1)) {
		t.Errorf("the first line is %q, the last %q", first, last)
	}
	want(t, len(store.samples()), lines)
}

func TestALabelThatIsTooLongRefusesItsSamplesAndCountsThem(t *testing.T) {
	v := newVolume(t)
	long := strings.Repeat("x", 300)
	v.append(t, pod.Metrics, `{"m": 1, "n": 2, "@labels": {"gpu": "0", "host": "`+long+`"}}`+"\n"+`{"m": 3, "@labels": {"gpu": "1"}}`+"\n")
	v.record(t, stdoutRecord("loss=1 host="+long+" \nloss=2 host=y \n"))
	v.exit(t, pod.Exit{})
	s := settings(v)
	s.Metrics = []pod.Metric{{Name: "loss", Pattern: `loss=(?P<value>\S+) host=(?P<host>\S+)`}}
	store := newStore(t)
	collectAll(t, s, store)
	want(t, store.end("metrics", event.TopicMetrics).Dropped, 2)
	end := store.end("output", event.TopicMetrics)
	want(t, []any{end.Count, end.Dropped, end.Reason}, []any{int64(1), int64(1), "a metric's pattern matched a label of more than 256 bytes (first at seq 327 of the log)"})
	labels := map[string]string{}
	store.each(func(_ string, sample event.Sample) { labels[sample.Name] = fmt.Sprint(sample.Labels) })
	want(t, labels, map[string]string{"m": "map[gpu:1]", "loss": "map[host:y]"})
}

func TestWhatTheWrapperDidNotRecordIsSaid(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("a\n"))
	v.exit(t, pod.Exit{Dropped: 77, DroppedLines: 3})
	store := newStore(t)
	collectAll(t, settings(v), store)
	want(t, store.end("output", event.TopicLogs), event.End{Count: 1, Last: 15, Dropped: 3, Reason: "the last 77 bytes of the output were not read in time (limits.max_log_size)"})
}

func TestADamagedRecordIsSaidAndWhatLiesBeforeIsKept(t *testing.T) {
	for name, tt := range map[string]struct{ damage, reason string }{
		"what is no record":      {strings.Repeat("?", 50), "the record of the output is damaged at byte 15, and is not read further"},
		"a record without end":   {"\x05\x00\x00\x00\x01", "the last 5 bytes of the record of the output are incomplete"},
		"data without their end": {string(pod.AppendRecord(nil, stdoutRecord("hello"))[:15]), "the last 15 bytes of the record of the output are incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVolume(t)
			v.record(t, stdoutRecord("a\n"))
			v.append(t, pod.Output, tt.damage)
			v.exit(t, pod.Exit{})
			store := newStore(t)
			collectAll(t, settings(v), store)
			want(t, store.lines(), []string{"15 a"})
			want(t, store.end("output", event.TopicLogs), event.End{Count: 1, Last: 15, Dropped: 1, Reason: tt.reason})
		})
	}
}

func TestWhatIsWrittenIsShippedWhileTheBenchmarkRuns(t *testing.T) {
	v := newVolume(t)
	store := newStore(t)
	done := start(t, settings(v), store)
	v.record(t, stdoutRecord("hel"))
	v.record(t, stdoutRecord("lo\n"))
	store.waitUntil(t, func() bool { return cmp.Equal(store.lines(), []string{"32 hello"}) })
	v.append(t, pod.Metrics, `{"a": 1}`+"\n")
	store.waitUntil(t, func() bool { return len(store.samples()) == 1 })
	v.record(t, stdoutRecord("bye\n"))
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, store.lines(), []string{"32 hello", "49 bye"})
	store.complete(t)
}

func TestSeveralWritersMayAppendToTheMetricsFile(t *testing.T) {
	const writers, each = 8, 300
	v := newVolume(t)
	store := newStore(t)
	done := start(t, settings(v), store)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				v.append(t, pod.Metrics, fmt.Sprintf(`{"w%d": %d}`+"\n", w, i))
			}
		})
	}
	wg.Wait()
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, store.end("metrics", event.TopicMetrics).Count, int64(writers*each))
	store.complete(t)
}

func TestTheFIFOHasWritersThatComeAndGo(t *testing.T) {
	v := newVolume(t)
	store := newStore(t)
	done := start(t, settings(v), store)
	path := filepath.Join(v.dir, pod.FIFO)
	store.waitUntil(t, func() bool { _, err := os.Stat(path); return err == nil })
	for i := range 5 {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(f, `{"metric": %d}`+"\n", i); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, store.end("fifo", event.TopicMetrics), event.End{Count: 5, Last: 70})
	store.complete(t)
}

func TestAWriterOfTheFIFODoesNotWaitForTheBrokers(t *testing.T) {
	v := newVolume(t)
	store := newStore(t)
	away := store.block()
	done := start(t, settings(v), store)
	path := filepath.Join(v.dir, pod.FIFO)
	store.waitUntil(t, func() bool { _, err := os.Stat(path); return err == nil })
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const lines = 20000 // more than a pipe can hold
	for i := range lines {
		if _, err := fmt.Fprintf(f, `{"metric": %d}`+"\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	v.exit(t, pod.Exit{})
	away()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, store.end("fifo", event.TopicMetrics).Count, lines)
	store.complete(t)
}

func TestAFileInPlaceOfTheFIFOKeepsNothingElseFromBeingShipped(t *testing.T) {
	v := newVolume(t)
	v.append(t, pod.FIFO, "not a pipe")
	v.record(t, stdoutRecord("a\n"))
	v.exit(t, pod.Exit{})
	store := newStore(t)
	collectAll(t, settings(v), store)
	want(t, store.lines(), []string{"15 a"})
}

func TestAMetricsFileThatIsCutShortIsReadFromItsBeginning(t *testing.T) {
	v := newVolume(t)
	store := newStore(t)
	done := start(t, settings(v), store)
	v.append(t, pod.Metrics, `{"before": 1, "the": 2, "cut": 3}`+"\n")
	store.waitUntil(t, func() bool { return len(store.samples()) == 3 })
	if err := os.WriteFile(filepath.Join(v.dir, pod.Metrics), []byte(`{"a": 1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store.waitUntil(t, func() bool { return len(store.samples()) == 4 })
	v.exit(t, pod.Exit{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want(t, store.end("metrics", event.TopicMetrics), event.End{Count: 4, Last: 43})
	store.complete(t)
}

func TestToldToStopItShipsWhatIsThere(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("a\nb"))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	store := newStore(t)
	if err := collector(t, settings(v), store).Run(ctx); err != nil {
		t.Fatal(err)
	}
	want(t, store.lines(), []string{"15 a", "17 b open"})
	store.complete(t)
}

func TestToldToStopItGivesUpAfterAWhile(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("a\n"))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	store := newStore(t)
	store.block()
	s := settings(v)
	s.Drain = 10 * time.Millisecond
	err := collector(t, s, store).Run(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "15 bytes of output could not be shipped within 10ms") {
		t.Errorf("Run: %v, want what was not shipped", err)
	}
}

func TestWhatHasEndedIsNotShippedAgain(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("a\n"))
	v.exit(t, pod.Exit{})
	collectAll(t, settings(v), newStore(t))
	again := newStore(t)
	collectAll(t, settings(v), again)
	want(t, again.events, nil)
}

func TestWhatTheBusCanNeverCarryIsCountedAndSaid(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("a\nb\n"))
	v.exit(t, pod.Exit{})
	store := newStore(t)
	store.refuse = func(ev event.Event) error {
		if l, ok := ev.(event.Logs); ok && len(l.Lines) > 0 {
			return fmt.Errorf("too large: %w", event.ErrPoison)
		}
		return nil
	}
	collectAll(t, settings(v), store)
	want(t, store.end("output", event.TopicLogs), event.End{Count: 0, Last: -1, Dropped: 2, Reason: "could not be shipped: too large: poison"})
}

// TestOneBatchThatTheBusCanNeverCarryTakesNoneWithIt: while the brokers are away,
// batches wait, and are published together when they are back.
func TestOneBatchThatTheBusCanNeverCarryTakesNoneWithIt(t *testing.T) {
	v := newVolume(t)
	v.record(t, stdoutRecord("a\n"))
	v.exit(t, pod.Exit{})
	flood(t, v, 5<<20, strings.Repeat("x", 99)+"\n")
	store := newStore(t)
	bad := int64(-1) // number of the first line of the batch that is refused
	store.refuse = func(ev event.Event) error {
		l, ok := ev.(event.Logs)
		if !ok || len(l.Lines) == 0 || l.Lines[0].Seq < 2<<20 || bad >= 0 && l.Lines[0].Seq != bad {
			return nil
		}
		bad = l.Lines[0].Seq
		return fmt.Errorf("too large: %w", event.ErrPoison)
	}
	collectAll(t, settings(v), store)
	end := store.end("output", event.TopicLogs)
	if all := int64(5<<20/100 + 2); end.Count+end.Dropped != all || end.Dropped == 0 || end.Dropped > all/5 || end.Count != int64(len(store.lines())) {
		t.Errorf("of %d lines there are %d, and the end says %+v", all, len(store.lines()), end)
	}
}

func TestSettingsThatCannotBeRightAreRefused(t *testing.T) {
	v := newVolume(t)
	for name, tt := range map[string]struct {
		change func(*collect.Settings)
		want   string
	}{
		"no run":          {func(s *collect.Settings) { s.Header.Run = "" }, "run: must not be empty"},
		"no pod":          {func(s *collect.Settings) { s.Pod = "" }, "source.pod: must not be empty"},
		"no such pattern": {func(s *collect.Settings) { s.Metrics = []pod.Metric{{Name: "loss", Pattern: "("}} }, `pattern of metric "loss"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings(v)
			tt.change(&s)
			if _, err := collect.New(s, newStore(t), zap.NewNop()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New: %v, want %q", err, tt.want)
			}
		})
	}
}

// volume is the volume of a pod, written as the entrypoint and the benchmark write it, and the collector's own volume.
type volume struct{ dir, state string }

func newVolume(tb testing.TB) volume {
	tb.Helper()
	v := volume{tb.TempDir(), tb.TempDir()}
	for _, dir := range []string{v.dir, v.state} {
		if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	return v
}

// withoutState returns the volume of a pod whose collector has no volume of its own.
func (v volume) withoutState() volume { return volume{dir: v.dir} }

// path returns the path of a file.
func (v volume) path(name string) string {
	if v.state != "" && slices.Contains([]string{pod.Cursor, pod.Series, pod.Spool, pod.Scraped, pod.OTLP}, name) {
		return filepath.Join(v.state, name)
	}
	return filepath.Join(v.dir, name)
}

func (v volume) append(tb testing.TB, name, text string) {
	tb.Helper()
	f, err := os.OpenFile(v.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		tb.Error(err)
		return
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		tb.Error(err)
	}
}

func (v volume) record(tb testing.TB, records ...pod.Record) {
	tb.Helper()
	var b []byte
	for _, r := range records {
		b = pod.AppendRecord(b, r)
	}
	v.append(tb, pod.Output, string(b))
}

func (v volume) exit(tb testing.TB, e pod.Exit) {
	tb.Helper()
	b, err := json.Marshal(e)
	path := filepath.Join(v.dir, pod.ExitFile)
	if err := errors.Join(err, os.WriteFile(path+".tmp", b, 0o600), os.Rename(path+".tmp", path)); err != nil {
		tb.Error(err)
	}
}

func settings(v volume) collect.Settings {
	return collect.Settings{
		Dir: v.dir, StateDir: v.state, Pod: "u1", Poll: time.Millisecond,
		Collect: pod.Collect{Header: event.NewHeader("m1", "r1", "pets", "ann", time.Unix(0, 0).UTC()), Role: "benchmark", Container: "benchmark"},
	}
}

func collector(tb testing.TB, s collect.Settings, bus collect.Publisher) *collect.Collector {
	tb.Helper()
	c, err := collect.New(s, bus, zap.NewNop())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// collectAll collects until the end.
func collectAll(tb testing.TB, s collect.Settings, bus collect.Publisher) {
	tb.Helper()
	if err := collector(tb, s, bus).Run(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// start collects beside the test.
func start(tb testing.TB, s collect.Settings, bus collect.Publisher) <-chan error {
	tb.Helper()
	c, done := collector(tb, s, bus), make(chan error, 1)
	go func() { done <- c.Run(tb.Context()) }()
	return done
}

func want[T any](tb testing.TB, got, want T) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhatIsNotShippedBecauseTheDiskIsFullIsCounted reserves more room than any disk has.
func TestWhatIsNotShippedBecauseTheDiskIsFullIsCounted(t *testing.T) {
	t.Parallel()
	v := newVolume(t)
	v.record(t, stdoutRecord("a\nb\n"), stdoutRecord("c=1"))
	v.exit(t, pod.Exit{Stopped: true})
	s := settings(v)
	s.Metrics = []pod.Metric{{Name: "c", Pattern: `c=(\d+)`}}
	s.Reserve, s.Drain = 1<<62, 2*time.Second // the collector waits half of Drain
	store := newStore(t)
	collectAll(t, s, store)
	want(t, store.lines(), nil)
	logs, samples := store.end(event.StreamOutput, event.TopicLogs), store.end(event.StreamOutput, event.TopicMetrics)
	if logs.Dropped != 3 || samples.Dropped != 1 || !strings.Contains(logs.Reason, "disk was full") {
		t.Errorf("of lines %+v, of samples %+v; want 3 and 1 dropped, and why", logs, samples)
	}
}
