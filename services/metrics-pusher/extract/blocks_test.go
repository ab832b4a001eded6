package extract_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// blocks returns a joiner for metrics whose blocks begin with "epoch".
func blocks(tb testing.TB, b pod.Block, patterns ...string) *extract.Blocks {
	tb.Helper()
	var metrics []pod.Metric
	for i, p := range patterns {
		metrics = append(metrics, pod.Metric{Name: fmt.Sprint("m", i), Parser: extract.ParserBlocks, Pattern: p, Block: b})
	}
	p, err := extract.Compile(metrics)
	if err != nil {
		tb.Fatal(err)
	}
	return p.Blocks()
}

func TestNoMatchInABlockReachesAcrossWhereALineIsCut(t *testing.T) {
	b := blocks(t, pod.Block{Begin: "^epoch"}, `loss=(\d+)`, `(?s)acc=(\d+).*end`)
	for i, p := range []extract.Line{{Text: "epoch loss=1", Cut: true}, {Text: "acc=2 end"}, {Text: "acc=3"}, {Text: "loss=4 acc=5", Cut: true}, {Text: "end"}} {
		p.Seq = int64(i+1) * 10
		_, _ = b.Append(nil, p)
	}
	got, missed := b.End(nil)
	if diff := cmp.Diff([]string{"51.0 m0=4"}, formatSamples(got)); diff != "" || missed != (extract.Misses{Cut: 2}) {
		t.Errorf("missed %+v (-want +got):\n%s", missed, diff)
	}
	_, _ = b.Append(nil, extract.Line{Text: "epoch loss=7"})
	if again, missed := b.End(nil); len(again) != 1 || missed != (extract.Misses{}) {
		t.Errorf("the next block has %v, missed %+v", formatSamples(again), missed)
	}
}

// formatSamples returns samples as "sequence.sub name=value".
func formatSamples(samples []event.Sample) []string {
	var all []string
	for _, s := range samples {
		all = append(all, fmt.Sprintf("%d.%d %s=%v", s.Seq, s.Sub, s.Name, s.Float()))
	}
	return all
}

func TestABlockOfLinesIsOneText(t *testing.T) {
	const pattern = `(?s)^epoch.*loss=(\S+)`
	long := strings.Repeat("x", 30<<10)
	tests := map[string]struct {
		block pod.Block
		lines []string // line n has the sequence number 10 n and is written n seconds after 1970
		want  []string // samples that lines complete, then those that the end completes
		ended []string
	}{
		"it ends before the next":             {pod.Block{}, []string{"epoch 1", "loss=1", "epoch 2", "loss=2"}, []string{"21.0 m0=1"}, []string{"41.0 m0=2"}},
		"one line may be all of it":           {pod.Block{}, []string{"epoch 1 loss=1", "epoch 2 loss=2"}, []string{"11.0 m0=1"}, []string{"21.0 m0=2"}},
		"lines before the first are in none":  {pod.Block{}, []string{"loss=0", "epoch 1", "loss=1"}, nil, []string{"31.0 m0=1"}},
		"it ends with so many lines":          {pod.Block{Lines: 2}, []string{"epoch 1", "x", "loss=1", "epoch 2", "loss=2", "x"}, []string{"51.0 m0=2"}, nil},
		"it ends when no line comes in time":  {pod.Block{Within: time.Second / 2}, []string{"epoch 1 loss=1", "loss=2"}, []string{"11.0 m0=1"}, nil},
		"a line in time is in it":             {pod.Block{Within: time.Second}, []string{"epoch 1", "loss=2"}, nil, []string{"21.0 m0=2"}},
		"it ends before it is too large":      {pod.Block{}, []string{"epoch loss=1", long, long, "loss=3", long, "loss=2"}, []string{"41.0 m0=3"}, nil},
		"what is no number is counted":        {pod.Block{}, []string{"epoch", "loss=one", "epoch"}, nil, nil},
		"a block without a match has nothing": {pod.Block{}, []string{"epoch", "epoch"}, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.block.Begin = "^epoch"
			b := blocks(t, tt.block, pattern)
			var got []event.Sample
			for i, line := range tt.lines {
				got, _ = b.Append(got, extract.Line{Text: line, Seq: int64(i+1) * 10, Time: int64(i+1) * 1e9, From: int64(i)})
			}
			if diff := cmp.Diff(tt.want, formatSamples(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			ended, _ := b.End(nil)
			if diff := cmp.Diff(tt.ended, formatSamples(ended)); diff != "" {
				t.Errorf("at the end (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABlockIsDueWhenNoLineHasFollowedItForItsTime(t *testing.T) {
	b := blocks(t, pod.Block{Begin: "^epoch", Within: 5 * time.Second}, `(?m)^loss=(\d)`, `acc=(\d)`)
	lines := []string{"epoch", "loss=1", "acc=2", "loss=3"}
	for i, text := range lines {
		if got, _ := b.Append(nil, extract.Line{Text: text, Seq: int64(i), Time: int64(i) * 1e9, From: 7}); got != nil {
			t.Errorf("after line %d: %v", i, formatSamples(got))
		}
	}
	if got, _ := b.Expire(nil, 8e9); got != nil || b.ResumeOffset(100) != 7 {
		t.Errorf("in time: %v, from %d", formatSamples(got), b.ResumeOffset(100))
	}
	got, _ := b.Expire(nil, 8e9+1)
	if diff := cmp.Diff([]string{"4.0 m0=1", "4.1 m0=3", "4.2 m1=2"}, formatSamples(got)); diff != "" || got[0].Time != 3e9 {
		t.Errorf("at %d (-want +got):\n%s", got[0].Time, diff)
	}
	if again, _ := b.Expire(nil, 1e18); again != nil || b.ResumeOffset(100) != 100 {
		t.Errorf("once more: %v, from %d", formatSamples(again), b.ResumeOffset(100))
	}
}

func TestAReaderThatMeetsLinesAgainEndsBlocksWhereTheyExpired(t *testing.T) {
	rule := pod.Block{Begin: "^epoch", Within: time.Second}
	lines := []extract.Line{{Text: "epoch 1", Seq: 10}, {Text: "loss=1", Seq: 20}}
	first, second := blocks(t, rule, `loss=(\d)`), blocks(t, rule, `loss=(\d)`)
	for _, line := range lines {
		_, _ = first.Append(nil, line)
	}
	if got, _ := first.Expire(nil, 2e9); len(got) != 1 {
		t.Fatalf("the first reader found %v", formatSamples(got))
	}
	second.RestoreClosed(first.Closed())
	var again []event.Sample
	for _, line := range append(lines, extract.Line{Text: "loss=2", Seq: 30, Time: 1}) {
		again, _ = second.Append(again, line)
	}
	if diff := cmp.Diff([]string{"21.0 m0=1"}, formatSamples(again)); diff != "" || second.ResumeOffset(100) != 100 {
		t.Errorf("a block is open from %d (-want +got):\n%s", second.ResumeOffset(100), diff)
	}
}

func TestBlocksThatAreClearedAreForgotten(t *testing.T) {
	b := blocks(t, pod.Block{Begin: "^epoch"}, `loss=(\d)`)
	_, _ = b.Append(nil, extract.Line{Text: "epoch loss=1", Seq: 1})
	b.Clear()
	if got, _ := b.End(nil); got != nil {
		t.Errorf("%v", formatSamples(got))
	}
}

func TestAMetricOfBlocksThatNobodyCanFindIsRefused(t *testing.T) {
	for name, begin := range map[string]string{"no pattern": "(", "none at all": ""} {
		_, err := extract.Compile([]pod.Metric{{Name: "m", Pattern: "x", Parser: extract.ParserBlocks, Block: pod.Block{Begin: begin}}})
		if err == nil || !strings.Contains(err.Error(), `blocks of metric "m"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var many []pod.Metric
	for i := range 33 {
		many = append(many, pod.Metric{Name: fmt.Sprint(i), Pattern: "x", Parser: extract.ParserBlocks, Block: pod.Block{Begin: fmt.Sprint("^", i)}})
	}
	if _, err := extract.Compile(many); err == nil || !strings.Contains(err.Error(), "32") {
		t.Errorf("33 kinds of blocks: %v", err)
	}
	if _, err := extract.Compile(many[1:]); err != nil {
		t.Errorf("32: %v", err)
	}
}

// FuzzBlocks compares the samples of blocks with those of a plain search: the text split at the lines that begin blocks. A reader that
// stops anywhere and resumes at ResumeOffset finds the same.
func FuzzBlocks(f *testing.F) {
	f.Add("epoch 1\nloss=1\nepoch 2\nloss=2\nx", byte(2))
	f.Add("loss=3\n\nepoch loss=x\nepoch\nepoch\nloss=9", byte(200))
	f.Fuzz(func(t *testing.T, text string, cut byte) {
		lines := strings.Split(text, "\n")
		if len(text) > 32<<10 || len(lines) > 1000 {
			return
		}
		if want, got := referenceBlocks(t, lines), formatSamples(readInterrupted(t, lines, int(cut))); !cmp.Equal(want, got) {
			t.Errorf("%q: (-want +got):\n%s", text, cmp.Diff(want, got))
		}
	})
}

// readInterrupted returns the samples in the blocks of lines if another reader continues before line number cut.
func readInterrupted(t *testing.T, lines []string, cut int) (got []event.Sample) {
	t.Helper()
	piece := func(i int) extract.Line { return extract.Line{Text: lines[i], Seq: int64(i) * 2, From: int64(i)} }
	b := blocks(t, pod.Block{Begin: "^epoch"}, `loss=(\d+)`)
	for i := range lines {
		if i == cut {
			from := int(b.ResumeOffset(int64(i)))
			b = blocks(t, pod.Block{Begin: "^epoch"}, `loss=(\d+)`)
			for j := from; j < i; j++ {
				if again, _ := b.Append(nil, piece(j)); again != nil {
					t.Fatalf("found again: %v", formatSamples(again))
				}
			}
		}
		got, _ = b.Append(got, piece(i))
	}
	got, _ = b.End(got)
	return got
}

// referenceBlocks returns the samples in the blocks of lines.
func referenceBlocks(t *testing.T, lines []string) []string {
	t.Helper()
	p, err := extract.Compile([]pod.Metric{{Name: "m0", Pattern: `loss=(\d+)`}})
	if err != nil {
		t.Fatal(err)
	}
	var all []event.Sample
	first := -1
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && !strings.HasPrefix(lines[i], "epoch") {
			continue
		}
		if first >= 0 {
			begin := len(all)
			all, _ = p.Append(all, extract.Line{Text: strings.Join(lines[first:i], "\n")})
			for j := begin; j < len(all); j++ {
				all[j].Seq = int64(i-1)*2 + 1
			}
		}
		first = i
	}
	return formatSamples(all)
}
