package points_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/points"
)

const header = "series,time,value,higher_is_better\n"

// minute returns the time of a minute of the fixture's hour, in Unix nanoseconds.
func minute(n int) int64 {
	return time.Date(2026, 3, 1, 2, n, 0, 0, time.UTC).UnixNano()
}

// row returns a row of a series at a minute.
func row(series string, n int, rest string) string {
	return fmt.Sprintf("%s,2026-03-01T02:%02d:00Z,%s\n", series, n, rest)
}

func TestTextThatIsRight(t *testing.T) {
	nan := math.NaN()
	one := []*points.TimeSeries{{Name: "s", Times: []int64{minute(0), minute(1)}, Values: []float64{1.5, -2}}}
	short := "series,time,value\n"
	for name, tt := range map[string]struct {
		text string
		want []*points.TimeSeries
	}{
		"two rows":                         {short + row("s", 0, "1.5") + row("s", 1, "-2"), one},
		"a mark of UTF-8 at the beginning": {"\ufeff" + short + row("s", 0, "1.5") + row("s", 1, "-2"), one},
		"line ends of Windows":             {strings.ReplaceAll(short+row("s", 0, "1.5")+row("s", 1, "-2"), "\n", "\r\n"), one},
		"no line end at the end":           {strings.TrimRight(short+row("s", 0, "1.5")+row("s", 1, "-2"), "\n"), one},
		"empty lines between":              {"\n" + short + "\n" + row("s", 0, "1.5") + "\r\n\n" + row("s", 1, "-2"), one},
		"quotes around everything":         {"\"series\",\"time\",\"value\"\n\"s\",\"2026-03-01T02:00:00Z\",\"1.5\"\n" + row("s", 1, "-2"), one},
		"columns in another order":         {"value,series,time\n1.5,s,2026-03-01T02:00:00Z\n-2,s,2026-03-01T02:01:00Z\n", one},
		"times of another zone":            {short + "s,2026-03-01T04:00:00+02:00,1.5\ns,2026-02-28T21:01:00-05:00,-2\n", one},
		"a header alone has no series":     {short, nil},
		"rows of several series alternate, and the first row of each makes the order": {
			short + row("b", 5, "1") + row("a", 0, "2") + row("b", 6, "3") + row("a", 1, "4"),
			[]*points.TimeSeries{
				{Name: "b", Times: []int64{minute(5), minute(6)}, Values: []float64{1, 3}},
				{Name: "a", Times: []int64{minute(0), minute(1)}, Values: []float64{2, 4}},
			},
		},
		"empty, NaN and infinite values are rows without a result": {
			short + row("s", 0, "") + row("s", 1, "NaN") + row("s", 2, "inf") + row("s", 3, "-Infinity") + row("s", 4, "1e-400"),
			[]*points.TimeSeries{{
				Name: "s", Times: []int64{minute(0), minute(1), minute(2), minute(3), minute(4)}, Values: []float64{nan, nan, nan, nan, 0}, Missing: 4,
			}},
		},
		"two rows at one time are in order": {
			short + row("s", 1, "1") + row("s", 1, "2"),
			[]*points.TimeSeries{{Name: "s", Times: []int64{minute(1), minute(1)}, Values: []float64{1, 2}}},
		},
		"each series has its direction, also where only some rows give it": {
			header + row("a", 0, "1,true") + row("b", 0, "1,false") + row("c", 0, "1,") +
				row("a", 1, "2,") + row("b", 1, "2,false") + row("a", 2, "3,true"),
			[]*points.TimeSeries{
				{Name: "a", Better: points.Higher, Times: []int64{minute(0), minute(1), minute(2)}, Values: []float64{1, 2, 3}},
				{Name: "b", Better: points.Lower, Times: []int64{minute(0), minute(1)}, Values: []float64{1, 2}},
				{Name: "c", Times: []int64{minute(0)}, Values: []float64{1}},
			},
		},
		"names with commas, quotes, line feeds and other scripts": {
			short + "\"a,\"\"b\"\"\nc\",2026-03-01T02:00:00Z,1\n训练,2026-03-01T02:00:00Z,2\n",
			[]*points.TimeSeries{
				{Name: "a,\"b\"\nc", Times: []int64{minute(0)}, Values: []float64{1}},
				{Name: "训练", Times: []int64{minute(0)}, Values: []float64{2}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := points.Read(iotest.OneByteReader(strings.NewReader(tt.text)))
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateNaNs()); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestTextThatIsWrongIsRefusedWithPlaceAndRemedy(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"an empty file":         {"", "1:1: the file is empty (begin with the line series,time,value)"},
		"a file of empty lines": {"\n\r\n", "1:1: the file is empty (begin with the line series,time,value)"},
		"a file without a header": {
			row("s", 0, "1"),
			`1:1: unknown column "s" (the columns are series, time, value and, if you want, higher_is_better)`,
		},
		"an unknown column": {
			"series,time,value,unit\n",
			`1:19: unknown column "unit" (the columns are series, time, value and, if you want, higher_is_better)`,
		},
		"a missing column": {"series,value\n", `1:1: the header has no column "time" (begin with the line series,time,value)`},
		"a column twice":   {"series,time,value,time\n", `1:19: column "time" is there twice (keep one of them)`},
		"semicolons": {
			"series;time;value\n",
			`1:1: the header is one column, "series;time;value" (put commas between the columns)`,
		},
		"UTF-16":                   {"\xff\xfes\x00", "1:1: the text is UTF-16 (save the file as UTF-8)"},
		"a name that is not UTF-8": {header + row("\xff", 0, "1,"), "2:1: the name of the series is not UTF-8 (save the file as UTF-8)"},
		"a series without a name":  {header + row("", 0, "1,"), "2:1: the series has no name (name it)"},
		"two headers":              {header + row("s", 0, "1,") + header, "3:1: the header is there again (remove the line)"},
		"a row with too few fields": {
			header + row("s", 0, "1"),
			"2:1: the row has 3 fields, and the header has 4 (write a field for each column)",
		},
		"a row with too many fields": {
			header + row("s", 0, "1,,"),
			"2:1: the row has 5 fields, and the header has 4 (write a field for each column)",
		},
		"a value that is not a number": {
			header + row("s", 0, "1 ms,"),
			`2:24: value "1 ms" is not a number (write it as 1234.5, or leave it empty in a row without a result)`,
		},
		"a value that is too large": {header + row("s", 0, "-1e999,"), `2:24: value "-1e999" is too large (use a larger unit)`},
		"a date alone": {
			header + "s,2026-03-01,1,\n",
			`2:3: time "2026-03-01" is not RFC 3339 (write it as 2026-01-31T15:04:05Z)`,
		},
		"no time": {header + "s,,1,\n", `2:3: time "" is not RFC 3339 (write it as 2026-01-31T15:04:05Z)`},
		"a year that is out of range": {
			header + "s,0001-01-01T00:00:00Z,1,\n",
			`2:3: time "0001-01-01T00:00:00Z" is out of range (use years from 1678 to 2261)`,
		},
		"an unknown word for the better": {
			header + row("s", 0, "1,yes"),
			`2:26: unknown word "yes" in higher_is_better (use true or false, or leave it empty)`,
		},
		"a direction that changes": {
			header + row("s", 0, "1,true") + row("t", 0, "1,false") + row("s", 1, "1,") + row("s", 2, "1,false"),
			`5:26: higher_is_better changes to false within series "s" (give all rows of a series the same)`,
		},
		"a time that goes back in its series": {
			header + row("s", 5, "1,") + row("t", 1, "1,") + row("s", 4, "1,"),
			`4:3: time "2026-03-01T02:04:00Z" is before 2026-03-01T02:05:00Z,` +
				` the time of the row above it in series "s" (sort the rows of a series by time)`,
		},
		"a quote within a field": {
			header + row("s", 0, "1,") + "s\",2026-03-01T02:01:00Z,1,\n",
			"3:2: a quote is wrong (put the whole field in quotes, write each quote in it twice, and close it)",
		},
		"quotes without an end": {
			header + "\"s,2026-03-01T02:01:00Z,1,\n" + row("s", 0, "1,"),
			"3:27: a quote is wrong in the row that begins on line 2 (put the whole field in quotes, write each quote in it twice, and close it)",
		},
		"a long text is cut": {
			header + row("s", 0, strings.Repeat("x", 100)+","),
			`2:24: value "` + strings.Repeat("x", 60) + `"… is not a number (write it as 1234.5, or leave it empty in a row without a result)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := points.Read(strings.NewReader(tt.text))
			fault, ok := errors.AsType[*points.FaultError](err)
			if !ok {
				t.Fatalf("%v, %v", got, err)
			}
			if diff := cmp.Diff(tt.want, fault.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// repeated is a text again and again.
type repeated struct {
	text string
	n    int // times; < 0 is forever
	rest string
	read int // bytes
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n--
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	r.read += n
	return n, nil
}

func TestQuotesWithoutAnEndDoNotTakeTheWholeFile(t *testing.T) {
	for name, begin := range map[string]string{
		"in the header":         "\"series,",
		"in a row":              header + row("s", 0, "1,") + "\"s,",
		"without any line feed": header + row("s", 0, "1,"),
	} {
		t.Run(name, func(t *testing.T) {
			endless := &repeated{text: "x,2026-03-01T02:00:00Z,1,\n", n: -1}
			if name == "without any line feed" {
				endless.text = "x,"
			}
			_, err := points.Read(io.MultiReader(strings.NewReader(begin), endless))
			fault, ok := errors.AsType[*points.FaultError](err)
			if !ok || fault.Line != strings.Count(begin, "\n")+1 || fault.Message != "the row is longer than 1 MiB" {
				t.Errorf("%v", err)
			}
			if endless.read > 2*points.MaxRow {
				t.Errorf("%d bytes were read", endless.read)
			}
		})
	}
}

func TestAReaderThatFailsIsNoFaultOfTheText(t *testing.T) {
	broken := errors.New("input/output error")
	for _, begin := range []string{"", "series,time", header, header + row("s", 0, "1,") + "s,2026"} {
		_, err := points.Read(io.MultiReader(strings.NewReader(begin), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Errorf("after %q: %v", begin, err)
		}
	}
}

func TestAMillionRowsAreKeptIn16BytesEach(t *testing.T) {
	const rows = 1_000_000
	s, err := points.Read(io.MultiReader(strings.NewReader(header), &repeated{text: row("throughput", 0, "1234.5,true"), n: rows}))
	if err != nil || len(s) != 1 || len(s[0].Values) != rows || len(s[0].Times) != rows {
		t.Fatalf("%d series, %v", len(s), err)
	}
	if most := cap(s[0].Values) + cap(s[0].Times); most > 2*rows*5/4 {
		t.Errorf("room for %d numbers", most)
	}
}

func BenchmarkRead(b *testing.B) {
	const rows = 1_000_000
	for name, series := range map[string]int{"one series": 1, "100 series in turn": 100} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			for i := range series {
				text.WriteString(row(fmt.Sprintf("throughput/%d", i), 0, "1234.5,true"))
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := points.Read(io.MultiReader(strings.NewReader(header), &repeated{text: text.String(), n: rows / series})); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
