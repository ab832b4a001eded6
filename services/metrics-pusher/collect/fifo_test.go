package collect_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// feed writes text to the FIFO of a volume once it exists, and returns when all of it is written.
func (v volume) feed(t *testing.T, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(v.dir, pod.FIFO), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func (v volume) text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(v.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhatComesThroughTheFIFOBeyondTheLimitIsReadAndCounted(t *testing.T) {
	const over = "limits.max_log_size: only the first 24 bytes of the FIFO are kept"
	line := func(n int) string { return fmt.Sprintf("{\"a\": %d}\n", n) } // of 9 bytes
	for name, tt := range map[string]struct {
		before string // in the file
		fed    string
		kept   string
		lost   int64
	}{
		"all that there is room for":        {"", line(1) + line(2), line(1) + line(2), 0},
		"whole lines":                       {"", line(1) + line(2) + line(3) + line(4), line(1) + line(2), 2},
		"nor the last, which has no end":    {"", line(1) + line(2) + line(3) + `{"a": 4}`, line(1) + line(2), 2},
		"a long line":                       {"", strings.Repeat("x", 50) + "\n" + line(1), "", 2},
		"more than a pipe holds":            {"", strings.Repeat(line(1), 100_000), line(1) + line(1), 99_998},
		"what was kept before a restart":    {line(1), line(2) + line(3), line(1) + line(2), 1},
		"a line that a kill tore stays one": {`{"a": 1`, "2}\n" + line(3), "{\"a\": 1\n2}\n" + line(3), 0},
		"a file that is full":               {line(1) + line(2) + line(3), line(4), line(1) + line(2) + line(3), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVolume(t)
			if tt.before != "" {
				v.append(t, pod.Spool, tt.before)
			}
			s := settings(v)
			s.MaxLog, s.Drain = 24, time.Minute
			end := collect.ForwardFIFO(s, time.Minute)
			v.feed(t, tt.fed)
			lost, reason := end()
			want(t, v.text(t, pod.Spool), tt.kept)
			want(t, lost, tt.lost)
			want(t, reason, map[bool]string{true: over}[tt.lost > 0])
		})
	}
}

func TestALineOfWhichTheFileHasTheBeginningIsNotLostTwice(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.MaxLog = 24
	end := collect.ForwardFIFO(s, time.Minute)
	v.feed(t, `{"a": 1, "b"`)
	for begun := time.Now(); v.text(t, pod.Spool) == ""; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("it is not carried")
		}
	}
	v.feed(t, `: 2, "c": 3}`+"\n{}\n")
	lost, _ := end()
	want(t, v.text(t, pod.Spool), `{"a": 1, "b"`) // one line, which is no sample: the collector counts it
	want(t, lost, 1)
}

func TestADiskThatIsFullKeepsNobodyFromEnding(t *testing.T) {
	v := newVolume(t)
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := collect.ForwardFIFOInto(settings(v), 50*time.Millisecond, full)
	v.feed(t, "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}")
	lost, reason := end()
	want(t, lost, 3)
	want(t, reason, "what came last through the pipe of the original client library could not be written to the disk: no space left on device")
}

func TestWhatIsLostOfTheFIFOIsCountedOnceAlsoAfterARestart(t *testing.T) {
	v := newVolume(t)
	s := settings(v)
	s.MaxLog = 10
	store := newStore(t)
	ran := false
	collectUntil(t, s, store, func() bool {
		if _, err := os.Stat(filepath.Join(v.dir, pod.FIFO)); err == nil && !ran {
			v.feed(t, strings.Repeat("{\"a\": 1}\n", 5))
			ran = true
		}
		return strings.Contains(v.saved(), `"dropped":4`)
	})
	v.exit(t, pod.Exit{})
	collectAll(t, s, store)
	want(t, store.end("fifo", event.TopicMetrics), event.End{
		Count: 1, Last: 9, Dropped: 4, Reason: "limits.max_log_size: only the first 10 bytes of the FIFO are kept",
	})
}

// saved returns the text of the cursor file.
func (v volume) saved() string {
	b, _ := os.ReadFile(v.path(pod.Cursor)) // there may be no cursor yet
	return string(b)
}

// FuzzFIFO writes to the FIFO in pieces that the input chooses, by several writers in turn, and compares the shipped samples with the
// lines.
func FuzzFIFO(f *testing.F) {
	f.Add([]byte(`{"a": 1}`+"\n"+`{"b": NaN, "@step": 2}`+"\n"), []byte{3, 200})
	f.Add([]byte("{\"a\": 1\xff}\n\n\x00{\n{\"open\": 2}"), []byte{1})
	f.Add(bytes.Repeat([]byte(`{"long": 1`), 10000), []byte{255, 255})
	f.Fuzz(func(t *testing.T, text, cuts []byte) {
		if len(text) > 600<<10 {
			return
		}
		v := newVolume(t)
		store := newStore(t)
		done := start(t, settings(v), store)
		path := filepath.Join(v.dir, pod.FIFO)
		store.waitUntil(t, func() bool { _, err := os.Stat(path); return err == nil })
		writeFIFO(t, path, text, cuts)
		v.exit(t, pod.Exit{})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		store.complete(t)
		var got []event.Sample
		for _, ev := range store.events {
			if m, ok := ev.(event.Metrics); ok && m.Stream.Kind == event.StreamFIFO {
				got = append(got, m.Samples...)
			}
		}
		checkEmitted(t, text, got)
	})
}

// writeFIFO writes text in pieces; after a cut with an odd number a new writer opens the FIFO.
func writeFIFO(t *testing.T, path string, text, cuts []byte) {
	t.Helper()
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	to, least := open(), len(text)/300+1
	for i := 0; len(text) > 0; i++ {
		n := len(text)
		if len(cuts) > 0 {
			cut := cuts[i%len(cuts)]
			if n = min(n, least+int(cut)*int(cut)); cut%2 == 1 {
				_ = to.Close()
				to = open()
			}
		}
		if _, err := to.Write(text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkEmitted compares samples with the lines of text.
func checkEmitted(t *testing.T, text []byte, got []event.Sample) {
	t.Helper()
	var want []string
	at := int64(0)
	for line := range bytes.Lines(text) {
		at += int64(len(line))
		seq := at
		if !bytes.HasSuffix(line, []byte("\n")) {
			seq++
		}
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 256<<10 {
			continue
		}
		samples, _ := extract.Emitted(line)
		for _, s := range samples {
			s.Seq = seq
			want = append(want, describe(s))
		}
	}
	var described []string
	for _, s := range got {
		if s.Time > 1e15 {
			s.Time = 0 // the time of reading, or that of the line
		}
		described = append(described, describe(s))
	}
	for i := range want {
		if i < len(described) && want[i] != described[i] && withoutTime(want[i]) == withoutTime(described[i]) {
			described[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, described); diff != "" {
		t.Errorf("%q: (-want +got):\n%s", text, diff)
	}
}

// withoutTime returns a description without its time.
func withoutTime(text string) string {
	before, _, _ := bytes.Cut([]byte(text), []byte(" at "))
	return string(before)
}
