package scrape_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/collect/scrape"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// show returns samples as "name{labels} value unit", with the time in ms if it is not 1000.
func show(samples []event.Sample) []string {
	var all []string
	for _, s := range samples {
		text := s.Name
		if s.Labels != nil {
			var labels []string
			for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
				labels = append(labels, k+"="+s.Labels[k])
			}
			text += "{" + strings.Join(labels, ",") + "}"
		}
		text += fmt.Sprint(" ", s.Float())
		if s.Unit != "" {
			text += " " + s.Unit
		}
		if s.Time != 1e9 {
			text += fmt.Sprint(" at ", s.Time/1e6)
		}
		all = append(all, text)
	}
	return all
}

func TestSamplesOfAPage(t *testing.T) {
	tests := map[string]struct {
		page, names string
		want        []string
	}{
		"an empty page has none":          {"", "", nil},
		"a counter":                       {"# TYPE a_total counter\na_total 3\n", "", []string{"a_total 3"}},
		"a gauge with labels":             {"# TYPE a gauge\na{x=\"1\",y=\"z\"} -2.5\n", "", []string{"a{x=1,y=z} -2.5"}},
		"one that says no type":           {"a 1e3\n", "", []string{"a 1000"}},
		"specials are values":             {"a NaN\nb +Inf\nc -Inf\n", "", []string{"a NaN", "b +Inf", "c -Inf"}},
		"a time of its own":               {"a 1 5000\n", "", []string{"a 1 at 5000"}},
		"in order of names":               {"b 1\na 2\n", "", []string{"a 2", "b 1"}},
		"names choose":                    {"aa 1\nab 2\nba 3\n", "^a", []string{"aa 1", "ab 2"}},
		"units are those of names":        {"a_seconds 1\nb_bytes_total 2\nc_ratio 3\nseconds 4\n", "", []string{"a_seconds 1 s", "b_bytes_total 2 B", "c_ratio 3 1", "seconds 4"}},
		"names of UTF-8":                  {"{\"größe.x\", \"l.1\"=\"v\"} 1\n", "", []string{"größe.x{l.1=v} 1"}},
		"of a histogram what is stored":   {"# TYPE d_seconds histogram\nd_seconds_bucket{le=\"0.1\"} 1\nd_seconds_bucket{le=\"5\"} 2\nd_seconds_bucket{le=\"+Inf\"} 3\nd_seconds_sum 8\nd_seconds_count 3\n", "", []string{"d_seconds_bucket{le=0.1} 1 1", "d_seconds_bucket{le=5.0} 2 1", "d_seconds_bucket{le=+Inf} 3 1", "d_seconds_sum 8 s", "d_seconds_count 3 1"}},
		"names choose those of histogram": {"# TYPE d histogram\nd_bucket{le=\"+Inf\"} 3\nd_sum 8\nd_count 3\n", "_(sum|count)$", []string{"d_sum 8", "d_count 3 1"}},
		"of a summary what is stored":     {"# TYPE d_seconds summary\nd_seconds{quantile=\"0.5\"} 1\nd_seconds_sum 8\nd_seconds_count 3\n", "", []string{"d_seconds{quantile=0.5} 1 s", "d_seconds_sum 8 s", "d_seconds_count 3 1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var names *regexp.Regexp
			if tt.names != "" {
				names = regexp.MustCompile(tt.names)
			}
			got, _, err := scrape.Samples([]byte(tt.page), time.Unix(1, 0), names, "")
			if diff := cmp.Diff(tt.want, show(got)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestGoodLinesOfAPageCountAndTheBadOneIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		page string
		want []string
		why  []string
	}{
		"in the middle":       {"# TYPE a counter\na 1\nbroken line here\nb 2\n", []string{"a 1", "b 2"}, []string{`line 3: "broken line here" is not in the text format: `}},
		"two of them":         {"one two\na 1\nb{x} 1\nc 3\n", []string{"a 1", "c 3"}, []string{`line 1: "one two" is`, `line 3: "b{x} 1" is`}},
		"at the end":          {"a 1\nb", []string{"a 1"}, []string{`line 2: "b" is`}},
		"within a histogram":  {"# TYPE d histogram\nd_bucket{le=\"1\"} 1\nd_bucket oops\nd_bucket{le=\"+Inf\"} 3\nd_count 3\n", []string{"d_bucket{le=1.0} 1 1", "d_bucket{le=+Inf} 3 1", "d_count 3 1"}, []string{`line 3: "d_bucket oops" is`}},
		"a type that is none": {"# TYPE a thing\na 1\n", []string{"a 1"}, []string{`line 1: "# TYPE a thing" is`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, refused, err := scrape.Samples([]byte(tt.page), time.Unix(1, 0), nil, "")
			if diff := cmp.Diff(tt.want, show(got)); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			same := slices.EqualFunc(refused, tt.why, func(r scrape.Rejection, why string) bool { return r.Count == 1 && strings.HasPrefix(r.Reason, why) })
			if !same {
				t.Errorf("refused %+v, want %q", refused, tt.why)
			}
		})
	}
}

func TestASampleHasAllItsLabelsOrIsRefused(t *testing.T) {
	long := strings.Repeat("y", 300)
	got, refused, err := scrape.Samples([]byte("a{x=\""+long+"\",gpu=\"0\"} 1\na{x=\""+long+"\",gpu=\"1\"} 2\nb{x=\"y\"} 3\n"), time.Unix(1, 0), nil, "")
	if diff := cmp.Diff([]string{"b{x=y} 3"}, show(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]scrape.Rejection{{Count: 2, Reason: "a has more than 32 labels, or one of more than 256 bytes"}}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestASampleOfOneOfSeveralPagesSaysWhichUnlessThePageDoes(t *testing.T) {
	got, _, err := scrape.Samples([]byte("a 1\nb{instance=\"mine\"} 2\n# TYPE c summary\nc{quantile=\"0.5\"} 3\nc_sum 4\nc_count 5\n"), time.Unix(1, 0), nil, "127.0.0.1:9090")
	want := []string{
		"a{instance=127.0.0.1:9090} 1", "b{instance=mine} 2",
		"c{instance=127.0.0.1:9090,quantile=0.5} 3", "c_sum{instance=127.0.0.1:9090} 4", "c_count{instance=127.0.0.1:9090} 5 1",
	}
	if diff := cmp.Diff(want, show(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestPagesAreToldApartByWhereTheyAre(t *testing.T) {
	for name, tt := range map[string]struct{ urls, want []string }{
		"one alone is by itself": {[]string{"http://127.0.0.1:1/metrics"}, []string{""}},
		"several":                {[]string{"http://127.0.0.1:1/metrics", "http://u:secret@localhost:2"}, []string{"127.0.0.1:1", "localhost:2"}},
		"several of one place": {
			[]string{"http://127.0.0.1:1/a", "http://u:secret@127.0.0.1:1/b", "http://localhost/a"}, []string{"http://127.0.0.1:1/a", "http://127.0.0.1:1/b", "localhost"},
		},
	} {
		if diff := cmp.Diff(tt.want, scrape.Instances(tt.urls)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAPageThatIsNoneHasNothing(t *testing.T) {
	for _, page := range []string{"{}", "<html>", "a{x} 1\n", "a one\n", "\x00", "a 1\n" + strings.Repeat("no line\n", 11)} {
		got, _, err := scrape.Samples([]byte(page), time.Unix(1, 0), nil, "")
		if err == nil || got != nil {
			t.Errorf("%q: %v, %q", page, err, show(got))
		}
	}
}

func FuzzSamples(f *testing.F) {
	f.Add([]byte("# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 2\n"))
	f.Add([]byte("{}"))
	f.Add([]byte("{\"@dropped\"} 1\n"))
	f.Add([]byte("# TYPE s summary\ns{quantile=\"0.5\"} 1 99\n"))
	f.Fuzz(func(t *testing.T, page []byte) {
		got, _, err := scrape.Samples(page, time.Unix(1, 0), nil, "")
		if err != nil && got != nil {
			t.Errorf("%v, and %q", err, show(got))
		}
		for i := range got {
			if len(got[i].Labels) > extract.MaxLabels || got[i].Time < 0 {
				continue // the collector drops these
			}
			read, err := extract.Emitted(extract.AppendLine(nil, &got[i]))
			if err != nil || len(read) != 1 || read[0].Name != got[i].Name {
				t.Errorf("%+v is written, and %+v is read: %v", got[i], read, err)
			}
		}
	})
}
