package extract_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

func TestSamplesOfALine(t *testing.T) {
	tests := map[string]struct {
		pattern, unit string
		line          string
		want          []string // value and unit
		bad           int
	}{
		"the group called value is the number":         {`(\w+)=(?P<value>\d+)`, "s", "a=5", []string{"5 s"}, 0},
		"else the first group is":                      {`a=(\d+)/(\d+)`, "", "a=3/4", []string{"3 "}, 0},
		"else the whole match is":                      {`\d+`, "", "a=17", []string{"17 "}, 0},
		"the group of the unit is never the number":    {`(?P<unit>[a-z]+) (\d+)`, "", "ms 5", []string{"5 ms"}, 0},
		"every match is a sample":                      {`a=(\d)`, "", "a=1 a=2", []string{"1 ", "2 "}, 0},
		"no match is none":                             {`a=(\d)`, "", "b=1", nil, 0},
		"a sign is part of the number":                 {`accuracy=(\S+)`, "", "accuracy=-5", []string{"-5 "}, 0},
		"so are fraction and exponent":                 {`accuracy=(\S+)`, "", "accuracy=+1.25e3 accuracy=1e-3 accuracy=.5 accuracy=5.", []string{"1250 ", "0.001 ", "0.5 ", "5 "}, 0},
		"NaN and infinities are numbers":               {`loss=(\S+)`, "", "loss=nan loss=NaN loss=inf loss=-Infinity", []string{"NaN ", "NaN ", "+Inf ", "-Inf "}, 0},
		"what is out of range is infinite":             {`loss=(\S+)`, "", "loss=1e999 loss=-1e999", []string{"+Inf ", "-Inf "}, 0},
		"other notations are no numbers":               {`v=(\S+)`, "", "v=0x10 v=1_000 v=abc v=1,5", nil, 4},
		"a group that took no part is no sample":       {`a(?:=(\d+))?`, "", "a a=3", []string{"3 "}, 0},
		"a captured unit is converted to the metric's": {`t=(?P<value>[\d.]+) ?(?P<unit>\w+)`, "ms", "t=1.5 s t=500us", []string{"1500 ms", "0.5 ms"}, 0},
		"a captured unit of something else is kept":    {`t=(?P<value>[\d.]+) ?(?P<unit>\w+)`, "ms", "t=3 cats", []string{"3 cats"}, 0},
		"the sample of the original's pattern":         {`accuracy=([-+]?\d*\.\d+|\d+)`, "", "epoch 1 accuracy=0.95 ok", []string{"0.95 "}, 0},
		"an exponent that the pattern forgot is read":  {`accuracy=([-+]?\d*\.\d+|\d+)`, "", "accuracy=+1.25e3 accuracy=1e-3 accuracy=2E+2s", []string{"1250 ", "0.001 ", "200 "}, 0},
		"what only looks like an exponent is left":     {`v=(\d+)`, "", "v=12e4f v=1em v=3e v=4e-", []string{"12 ", "1 ", "3 ", "4 "}, 0},
		"digits of an exponent are no second number":   {`\d+`, "", "1e-3 4", []string{"0.001 ", "4 "}, 0},
		"a pattern that goes on says where it ends":    {`(\d+)e(?:-?\d+)`, "", "5e-3", []string{"5 "}, 0},
		"a case that does not matter needs no literal": {`(?i)LOSS=(\d+)`, "", "Loss=4", []string{"4 "}, 0},
		"either of two needs no literal":               {`(?:foo|bar)=(\d+)`, "", "bar=4", []string{"4 "}, 0},
		"an optional text is no literal":               {`(?:speed )?v=(\d+)`, "", "v=4", []string{"4 "}, 0},
		"a repeated text is a literal":                 {`(?:ab){2}=(\d+)`, "", "abab=4", []string{"4 "}, 0},
		"a text split by a group is one literal":       {`sp(ee)d=(?P<value>\d+)`, "", "speed=4", []string{"4 "}, 0},
		"letters beyond ASCII are fine":                {`größe=(\d+)`, "", "die größe=4 ist", []string{"4 "}, 0},
		"an empty match is no sample":                  {`\d*`, "", "a1b", []string{"1 "}, 0},
		"line ends are those of the line":              {`^(\d+)$`, "", "12", []string{"12 "}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := extract.Compile([]pod.Metric{{Name: "m", Unit: tt.unit, Pattern: tt.pattern}})
			if err != nil {
				t.Fatal(err)
			}
			samples, missed := p.Append(nil, extract.Line{Text: tt.line})
			if diff := cmp.Diff(tt.want, show(samples)); diff != "" || missed != (extract.Misses{Numbers: tt.bad}) {
				t.Errorf("missed %+v, want %d numbers; (-want +got):\n%s", missed, tt.bad, diff)
			}
		})
	}
}

// TestWhatEndsWhereALineIsCutIsNoSample: the number may go on behind the cut.
func TestWhatEndsWhereALineIsCutIsNoSample(t *testing.T) {
	for name, tt := range map[string]struct {
		pattern, line string
		want          []string
		missed        extract.Misses
	}{
		"a number at the cut":                  {`loss=(\S+)`, "loss=1 loss=12", []string{"1 "}, extract.Misses{Cut: 1}},
		"a match that goes on to it":           {`loss=(\d+).*`, "loss=1 and so on", nil, extract.Misses{Cut: 1}},
		"the end of the line, which it is not": {`^loss=(\d+)$`, "loss=12", nil, extract.Misses{Cut: 1}},
		"what is no number there":              {`loss=(\S+)`, "loss=1.2.", nil, extract.Misses{Cut: 1}},
		"a match before it is a sample":        {`loss=(\d+)`, "loss=12 ", []string{"12 "}, extract.Misses{}},
		"nothing at the cut":                   {`\d*$`, "x", nil, extract.Misses{}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := extract.Compile([]pod.Metric{{Name: "m", Pattern: tt.pattern}})
			if err != nil {
				t.Fatal(err)
			}
			samples, missed := p.Append(nil, extract.Line{Text: tt.line, Cut: true})
			if diff := cmp.Diff(tt.want, show(samples)); diff != "" || missed != tt.missed {
				t.Errorf("missed %+v, want %+v; (-want +got):\n%s", missed, tt.missed, diff)
			}
		})
	}
}

func TestTheCarriageReturnOfALineEndIsNoPartOfTheLine(t *testing.T) {
	p, err := extract.Compile([]pod.Metric{{Name: "m", Pattern: `loss=(\d+)$`}})
	if err != nil {
		t.Fatal(err)
	}
	samples, _ := p.Append(nil, extract.Line{Text: "loss=12\r"})
	if diff := cmp.Diff([]string{"12 "}, show(samples)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsMissedIsSaid(t *testing.T) {
	var reasons []string
	extract.Misses{Numbers: 1, Cut: 2, Objects: 3, Times: 4, Members: 5}.Report(7, 100, func(n int64, reason string) { reasons = append(reasons, fmt.Sprint(n, " ", reason)) })
	want := []string{
		"1 a metric's pattern matched text that is not a number (first at seq 7 of the log)",
		"2 a line is longer than 100 bytes, and the rest of it is not searched (write numbers in shorter lines) (first at seq 7 of the log)",
		"3 a line begins as a JSON object and cannot be read as one (first at seq 7 of the log)",
		"5 a line's JSON object has more than 1000 samples of a metric, or too large a part of it are names (write several lines) (first at seq 7 of the log)",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func show(samples []event.Sample) []string {
	var out []string
	for _, s := range samples {
		out = append(out, fmt.Sprint(s.Float(), " ", s.Unit))
	}
	return out
}

func TestSeveralMetricsOfALineAreNumbered(t *testing.T) {
	p, err := extract.Compile([]pod.Metric{{Name: "loss", Pattern: `loss=(\S+)`}, {Name: "acc", Pattern: `acc=(\S+)`}})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := p.Append(make([]event.Sample, 3), extract.Line{Text: "acc=1 loss=2 acc=3"})
	var names []string
	for _, s := range got[3:] {
		names = append(names, fmt.Sprint(s.Sub, s.Name, s.Float()))
	}
	if diff := cmp.Diff([]string{"0loss2", "1acc1", "2acc3"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPatternThatIsNoneIsNamed(t *testing.T) {
	_, err := extract.Compile([]pod.Metric{{Name: "loss", Pattern: `(?=x)`}})
	if err == nil || !strings.Contains(err.Error(), `pattern of metric "loss"`) {
		t.Errorf("Compile: %v, want the metric", err)
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, " -2.5 ": -2.5, "+1e3": 1000, "NaN": math.NaN(), "-nan": math.NaN(), "+NaN": math.NaN(), "-inf": math.Inf(-1), "1e-400": 0} {
		if got, ok := extract.Number(text); !ok || (got != want && !(math.IsNaN(got) && math.IsNaN(want))) {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "1 2", "0x1p4", "1e", "١", "null", "--nan", "nano", "-nan(0x1)"} {
		if v, ok := extract.Number(text); ok {
			t.Errorf("%q: %v, want none", text, v)
		}
	}
}

// FuzzAppend checks that filtering lines first loses no match: no filter knows that no text matches \b\B, so that an alternative takes the
// filter away from a pattern.
func FuzzAppend(f *testing.F) {
	f.Add("INFO train_loss=1e-3 Accuracy=5 SPEED: 7 samples/sec Epoch[1] elapsed 5 ms throughput : 6")
	f.Add("tra\u0131n_lo\u017fs=5 ta\u212a=1")
	var quick, plain []pod.Metric
	for _, m := range eight() {
		for _, flags := range []string{"", "(?i)"} {
			quick = append(quick, pod.Metric{Name: m.Name, Unit: m.Unit, Pattern: flags + m.Pattern})
			plain = append(plain, pod.Metric{Name: m.Name, Unit: m.Unit, Pattern: flags + "(?:" + m.Pattern + `|\b\B)`})
		}
	}
	a, err := extract.Compile(quick)
	if err != nil {
		f.Fatal(err)
	}
	b, err := extract.Compile(plain)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, cut := range []bool{false, true} {
			got, missed := a.Append(nil, extract.Line{Text: line, Cut: cut})
			want, wantMissed := b.Append(nil, extract.Line{Text: line, Cut: cut})
			if diff := cmp.Diff(want, got); diff != "" || missed != wantMissed {
				t.Errorf("missed %+v, want %+v; (-want +got):\n%s", missed, wantMissed, diff)
			}
		}
	})
}

// eight are patterns as descriptors have them, with a literal each.
func eight() []pod.Metric {
	return []pod.Metric{
		{Name: "loss", Pattern: `train_loss=([-+]?[\d.]+(?:e[-+]?\d+)?)`},
		{Name: "accuracy", Pattern: `accuracy=(\S+)`},
		{Name: "speed", Pattern: `Speed: (?P<value>[\d.]+) samples/sec`},
		{Name: "epoch", Pattern: `Epoch\[(\d+)\]`},
		{Name: "elapsed", Pattern: `elapsed (?P<value>[\d.]+) ?(?P<unit>ms|s)`, Unit: "ms"},
		{Name: "throughput", Pattern: `throughput\s*[:=]\s*([\d.]+)`},
		{Name: "p99", Pattern: `p99=([\d.]+)us`},
		{Name: "bandwidth", Pattern: `bandwidth (\S+) MB/s`},
	}
}

func BenchmarkAppend(b *testing.B) {
	hits := []string{
		"2026-01-02 03:04:05,678 INFO worker-3 step 1200 of 90000 train_loss=2.3456e-01 lr=0.001 grad_norm=1.25",
		"2026-01-02 03:04:05,678 INFO worker-3 validation after step 1200 of 90000: accuracy=0.9534 top5=0.991",
		"INFO:root:Epoch[12] Batch [120] Speed: 1234.56 samples/sec accuracy of the batch is not shown here at all",
		"request 123456 of 9999999 to http://127.0.0.1:8080/predict took: elapsed 12.5 ms, status 200, 512 bytes",
	}
	misses := make([]string, len(hits))
	for i, h := range hits {
		misses[i] = strings.Map(func(r rune) rune {
			if r == '=' || r == ':' || r == '[' {
				return ' '
			}
			return r
		}, strings.ReplaceAll(h, "elapsed", "needed"))
	}
	folded, bare := eight(), eight()
	for i := range bare {
		folded[i].Pattern = "(?i)" + folded[i].Pattern
		bare[i].Pattern = "(?:" + bare[i].Pattern + "|@@@)"
	}
	for _, bb := range []struct {
		name    string
		metrics []pod.Metric
		lines   []string
	}{
		{"literals/miss", eight(), misses},
		{"literals/hit", eight(), hits},
		{"case-does-not-matter/miss", folded, misses},
		{"case-does-not-matter/hit", folded, hits},
		{"no-literals/miss", bare, misses},
		{"no-literals/hit", bare, hits},
	} {
		b.Run(bb.name, func(b *testing.B) { run(b, bb.metrics, bb.lines) })
	}
}

func run(b *testing.B, metrics []pod.Metric, lines []string) {
	b.Helper()
	p, err := extract.Compile(metrics)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(strings.Join(lines, "\n")) + 1))
	b.ReportAllocs()
	var samples []event.Sample
	for b.Loop() {
		for _, l := range lines {
			samples, _ = p.Append(samples[:0], extract.Line{Text: l})
		}
	}
}

func TestGroupsSayStepTimeAndLabels(t *testing.T) {
	three := int64(3)
	at := event.Sample{Name: "loss", Time: 1767323045250000000}
	in := func(pattern string) pod.Metric { return pod.Metric{Name: "loss", Pattern: pattern} }
	for name, tt := range map[string]struct {
		metric pod.Metric
		line   string
		want   event.Sample
		missed extract.Misses
	}{
		"step, time and a label": {
			pod.Metric{Name: "loss", Pattern: `^(?P<time>\S+ \S+) gpu(?P<gpu>\d) step (?P<step>\d+) loss=(\S+)`},
			"2026-01-02 03:04:05,250 gpu1 step 3 loss=0.5",
			event.Sample{Name: "loss", Step: &three, Time: 1767323045250000000, Labels: map[string]string{"gpu": "1"}},
			extract.Misses{},
		},
		"a time in seconds":                                  {in(`t=(?P<time>\S+) (?P<value>\S+)`), "t=1767323045.25 0.5", at, extract.Misses{}},
		"a time of RFC 3339":                                 {in(`(?P<time>\S+) (\S+)`), "2026-01-02T05:04:05.25+02:00 0.5", at, extract.Misses{}},
		"a time without a zone is of UTC":                    {in(`(?P<time>\S+) (\S+)`), "2026-01-02T03:04:05.250000 0.5", at, extract.Misses{}},
		"what is no time and no step is left out":            {in(`(?P<time>\S+) (?P<step>\S+) (?P<value>\S+)`), "now 1.5 0.5", event.Sample{Name: "loss"}, extract.Misses{Times: 1}},
		"the only group is the number whatever it is called": {in(`(?P<loss>\d\S+)`), "0.5", event.Sample{Name: "loss"}, extract.Misses{}},
		"a label that takes no part is left out":             {in(`(?:gpu(?P<gpu>\d) )?loss (?P<value>\S+)`), "loss 0.5", event.Sample{Name: "loss"}, extract.Misses{}},
		"a time that takes no part is none to read":          {in(`(?:(?P<time>\d+) )?loss (?P<value>\S+)`), "loss 0.5", event.Sample{Name: "loss"}, extract.Misses{}},
		"a member of an object": {
			pod.Metric{Name: "loss", Parser: extract.ParserJSON, Pattern: `^train\.loss=`},
			` {"train": {"loss": 0.5, "lr": 1}, "step": 3, "timestamp": 1767323045.25} `,
			event.Sample{Name: "loss", Step: &three, Time: 1767323045250000000},
			extract.Misses{},
		},
		"a member of an object with a time that is none": {
			pod.Metric{Name: "loss", Parser: extract.ParserJSON, Pattern: `^loss=`}, `{"loss": 0.5, "time": "noon"}`, event.Sample{Name: "loss"}, extract.Misses{Times: 1},
		},
		"a member beside what Python writes and JSON does not know": {
			pod.Metric{Name: "loss", Parser: extract.ParserJSON, Pattern: `^loss=`},
			`{"grad": NaN, "most": [Infinity, -Infinity], "loss": 0.5}`,
			event.Sample{Name: "loss"},
			extract.Misses{},
		},
		"a text in an array, with a label": {
			pod.Metric{Name: "loss", Parser: extract.ParserJSON, Pattern: `^gpus\.(?P<gpu>\d+)\.loss=(.*)`},
			`{"gpus": [{"x": null}, {"loss": "0.5"}]}`,
			event.Sample{Name: "loss", Labels: map[string]string{"gpu": "1"}},
			extract.Misses{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := extract.Compile([]pod.Metric{tt.metric})
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Set(0.5)
			got, missed := p.Append(nil, extract.Line{Text: tt.line})
			if diff := cmp.Diff([]event.Sample{tt.want}, got); diff != "" || missed != tt.missed {
				t.Errorf("missed %+v, want %+v; (-want +got):\n%s", missed, tt.missed, diff)
			}
		})
	}
}

func TestWhatIsNoObjectHasNoMembers(t *testing.T) {
	p, err := extract.Compile([]pod.Metric{{Name: "x", Parser: extract.ParserJSON, Pattern: "x="}})
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"x":`, 100) + "1" + strings.Repeat("}", 100)
	for line, missed := range map[string]extract.Misses{
		"": {}, "x=1": {}, "{": {}, "{}": {}, "{x}": {}, `{"y": 1}`: {}, `[{"x": 1}]`: {},
		`{"x": 1`: {Objects: 1}, `{"x": 1}}`: {Objects: 1}, `{"x": 1} {"x": 2}`: {Objects: 1}, `{ "x": one}`: {Objects: 1}, `{"x": 1,}`: {Objects: 1}, deep: {Objects: 1},
		`{"x": "much"}`: {Numbers: 1},
	} {
		if got, m := p.Append(nil, extract.Line{Text: line}); len(got) > 0 || m != missed {
			t.Errorf("%q: %v, missed %+v, want %+v", line, got, m, missed)
		}
	}
	if got, m := p.Append(nil, extract.Line{Text: `{"x": 1}`, Cut: true}); len(got) > 0 || m != (extract.Misses{Cut: 1}) {
		t.Errorf("a line that is cut: %v, missed %+v", got, m)
	}
	if _, err := extract.Compile([]pod.Metric{{Name: "x", Parser: "xml", Pattern: "x"}}); err == nil {
		t.Error("a parser that there is not is taken")
	}
}

func TestMembersBehindManyOthersAreFoundOrCounted(t *testing.T) {
	p, err := extract.Compile([]pod.Metric{{Name: "x", Parser: extract.ParserJSON, Pattern: "^x="}, {Name: "list", Parser: extract.ParserJSON, Pattern: `^list\.\d+=`}})
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }
	for name, tt := range map[string]struct {
		line    string
		samples int
		missed  extract.Misses
	}{
		"one behind an array that no pattern names": {`{"other": [` + numbers(2000) + `], "x": 1}`, 1, extract.Misses{}},
		"as many samples as a line may have":        {`{"list": [` + numbers(1000) + `], "x": 1}`, 1001, extract.Misses{}},
		"more samples than that":                    {`{"list": [` + numbers(1003) + `], "x": 1}`, 1001, extract.Misses{Members: 3}},
		"names that are too long to be repeated":    {`{"x": 1, "` + strings.Repeat("n", 1<<20) + `": [` + numbers(9) + `]}`, 1, extract.Misses{Members: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			got, missed := p.Append(nil, extract.Line{Text: tt.line})
			if len(got) != tt.samples || missed != tt.missed {
				t.Errorf("%d samples, missed %+v, want %d and %+v", len(got), missed, tt.samples, tt.missed)
			}
		})
	}
}

// FuzzMembers checks that no line of JSON, and no other, does harm.
func FuzzMembers(f *testing.F) {
	f.Add(`{"a": {"b": [1, "2", true, null]}, "step": 1, "time": "2026-01-02T03:04:05Z"}`)
	p, err := extract.Compile([]pod.Metric{{Name: "all", Parser: extract.ParserJSON, Pattern: `=`}, {Name: "b", Parser: extract.ParserJSON, Pattern: `b\.(?P<n>\d+)=(?P<value>.*)`}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		samples, _ := p.Append(nil, extract.Line{Text: line})
		for i, s := range samples {
			if s.Sub != i || s.Name == "" || s.Time < 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}
