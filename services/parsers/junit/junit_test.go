package junit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/parsers/junit"
	"github.com/benchmark-ai/bai/services/parsers/report"
	"github.com/benchmark-ai/bai/services/parsers/report/reporttest"
)

func parse(tb testing.TB, text string) report.Report {
	tb.Helper()
	return reporttest.Parse(tb, junit.Kind(), text)
}

func capture(tb testing.TB, name string) string {
	tb.Helper()
	return reporttest.Capture(tb, name+".xml")
}

// summary returns the state of a report and its numbers of the whole; a "*" follows a headline.
func summary(r report.Report) string {
	all := reporttest.State(r)
	for _, m := range r.Metrics {
		if m.Name == "test_duration" {
			continue
		}
		all += fmt.Sprintf(" %s=%.9g", m.Name, m.Value)
		if m.Headline {
			all += "*"
		}
	}
	return all
}

// durations returns a line for each test.
func durations(r report.Report) []string {
	var all []string
	for _, m := range r.Metrics {
		if m.Name == "test_duration" {
			all = append(all, fmt.Sprintf("%s %s %.9g", m.Labels["class"], m.Labels["name"], m.Value))
		}
	}
	return all
}

func TestNumbersAreThoseOfTheTools(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"pytest":    "ok tests=7 failures=1* errors=1 skipped=1 duration=0.434*",
		"gotestsum": "ok tests=6 failures=1* errors=0 skipped=1 duration=0.014139*",
		"surefire":  "ok tests=4 failures=1* errors=1 skipped=1 duration=0.152*",
	} {
		if got := summary(parse(t, capture(t, name))); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestTestsThatWereRunHaveDurations(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"pytest": {
			"test_sample test_passes 0.058", "test_sample test_with_parameters[1] 0.007", "test_sample test_with_parameters[2] 0.001",
			"test_sample test_fails 0.011", "test_sample test_errors 0.001", "test_sample.TestGroup test_prints 0.02",
		},
		"gotestsum": {"sample TestFails 0", "sample TestPasses 0.01", "sample TestTable/a 0", "sample TestTable/b 0", "sample TestTable 0"},
		"surefire":  {"sample.SampleTest errors 0.012", "sample.SampleTest passes 0.024", "sample.SampleTest fails 0"},
	} {
		if diff := cmp.Diff(want, durations(parse(t, capture(t, name)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDialectsAreRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"a suite alone, and its name as class": {
			`<testsuite name="s" time="3"><testcase name='a' time="1"/></testsuite>`,
			"ok tests=1 failures=0* errors=0 skipped=0 duration=3* [s a 1]",
		},
		"suites in suites": {
			`<testsuites><testsuite name="o" tests="9"><testsuite name="i" time="2"><testcase name="a"/></testsuite>` +
				`<testcase name="b" time="1"/></testsuite></testsuites>`,
			"ok tests=2 failures=0* errors=0 skipped=0 duration=3* [o b 1]",
		},
		"numbers without tests": {
			`<testsuites><testsuite tests="5" failures="2" errors="1" skips="1"/></testsuites>`, "ok tests=5 failures=2* errors=1 skipped=1 []",
		},
		"no test at all": {`<testsuites></testsuites>`, "ok tests=0 failures=0* errors=0 skipped=0 []"},
		"the sum of durations": {
			`<testsuite><testcase name="a" time="1"/><testcase name="b" time="2.5"/></testsuite>`,
			"ok tests=2 failures=0* errors=0 skipped=0 duration=3.5* [ a 1  b 2.5]",
		},
		"groups of digits": {`<testsuite time="1,234.5"/>`, "ok tests=0 failures=0* errors=0 skipped=0 duration=1234.5* []"},
		"entities": {
			`<testsuite><testcase classname="a&lt;b&gt;" name="&quot;&amp;&apos;&#65;&#x42;&nbsp;&" time="1"/></testsuite>`,
			`ok tests=1 failures=0* errors=0 skipped=0 duration=1* [a<b> "&'AB&nbsp;& 1]`,
		},
		"output is skipped": {
			`<testsuite><testcase name="a" time="1"><system-out><![CDATA[<testcase name="x" time="9"></testsuite>]]></system-out></testcase>` +
				`<!-- <testcase/> --></testsuite>`,
			"ok tests=1 failures=0* errors=0 skipped=0 duration=1* [ a 1]",
		},
		"greater in attributes": {
			`<testsuite><testcase name="a > b" time="1"><failure message="1 > 2"/></testcase></testsuite>`,
			"ok tests=1 failures=1* errors=0 skipped=0 duration=1* [ a > b 1]",
		},
		"run twice": {
			`<testsuite><testcase name="a" time="1"/><testcase name="a" time="2"/></testsuite>`,
			"ok tests=2 failures=0* errors=0 skipped=0 duration=3* [ a 2]",
		},
		"failed, then broke": {
			`<testsuite><testcase name="a"><failure/><error/></testcase></testsuite>`,
			"ok tests=1 failures=1* errors=0 skipped=0 []",
		},
		"text around": {
			"building...\n<?xml version=\"1.0\"?>\n<testsuite time=\"1\"></testsuite>\n[INFO] <done>\n",
			"ok tests=0 failures=0* errors=0 skipped=0 duration=1* []",
		},
		"a document type": {
			`<!DOCTYPE testsuite [ <!ELEMENT testsuite ANY> ]><testsuite time="1"/>`,
			"ok tests=0 failures=0* errors=0 skipped=0 duration=1* []",
		},
		"the last of two": {`<testsuite time="1"/><testsuite time="2"/>`, "ok tests=0 failures=0* errors=0 skipped=0 duration=2* []"},
		"the first of one and a half": {
			`<testsuite time="1"/><testsuite time="2">`,
			"partial the last document ends early, the one before counts tests=0 failures=0* errors=0 skipped=0 duration=1* []",
		},
		"a time that is none": {`<testsuite time="soon"/>`, `partial "soon" is no time tests=0 failures=0* errors=0 skipped=0 []`},
	} {
		r := parse(t, tt.text)
		if got := fmt.Sprintf("%s %s", summary(r), durations(r)); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
}

func TestWhatIsNoResultIsSaid(t *testing.T) {
	t.Parallel()
	bomb := `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;">]><testsuites name="&lol2;"/>`
	for name, tt := range map[string]struct{ text, want string }{
		"entities of its own": {bomb, "failed the XML declares entities, and is not read"},
		"elements too deep": {
			"<testsuites>" + strings.Repeat("<testsuite>", 100_000),
			"failed the XML has elements too deep in one another, and is not read",
		},
		"another text": {"hello <world> & <testsuite", "empty no test suite in the text"},
		"another XML":  {"<html><body/></html>", "empty no test suite in the text"},
		"nothing":      {"", "empty no test suite in the text"},
	} {
		if got := reporttest.State(parse(t, tt.text)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestOfManyTestsTheFirst10000HaveDurations(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("<testsuite>")
	for i := range 10_002 {
		fmt.Fprintf(&text, `<testcase name="%d" time="1"/>`, i)
	}
	text.WriteString("</testsuite>")
	r := parse(t, text.String())
	const want = "partial the durations of 2 of 10002 tests are left out tests=10002 failures=0* errors=0 skipped=0 duration=10002*"
	if got := summary(r); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOnlySuitesLookLikeIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{capture(t, "pytest"), capture(t, "gotestsum"), capture(t, "surefire"), "<!-- x --> <testsuite>"} {
		if !junit.Kind().Looks([]byte(text)) {
			t.Errorf("%.40q does not look like it", text)
		}
	}
	for _, text := range []string{"", "<", "<testsuite", "<testsuitex>", "<html/>", "text <testsuite>", "<?xml"} {
		if junit.Kind().Looks([]byte(text)) {
			t.Errorf("%.40q looks like it", text)
		}
	}
}

func TestParserOfJUnitPassesTheSuite(t *testing.T) {
	reporttest.Suite{
		Kind: junit.Kind(),
		Own:  []string{"pytest.xml", "gotestsum.xml", "surefire.xml"},
		Open: `<testsuites><testsuite name="a"><testcase name="`,
		Cuts: []reporttest.Cut{
			{File: "pytest.xml", End: ">", NoHeadline: true, Bytes: true},
			{File: "gotestsum.xml", End: ">", NoHeadline: true, Bytes: true},
			{File: "surefire.xml", End: ">", NoHeadline: true, Bytes: true},
		},
	}.Run(t)
}

func FuzzParse(f *testing.F) {
	reporttest.Fuzz(f, junit.Kind(), `<!DOCTYPE a [<!ENTITY b "c">]><testsuites a='>'><![CDATA[]]><?x?><!--y--></testsuites>`)
}

func BenchmarkParse(b *testing.B) {
	text := "<testsuites>" + strings.Repeat(capture(b, "gotestsum")[len(`<?xml version="1.0" encoding="UTF-8"?>`):], 1000) + "</testsuites>"
	reporttest.Benchmark(b, junit.Kind(), text)
}
