package extract_test

import (
	"cmp"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/metrics-pusher/extract"
)

// sampleCase is a sample in the table of the client libraries.
type sampleCase struct {
	Name   string            `json:"name"`
	Value  string            `json:"value"`
	Unit   string            `json:"unit"`
	Step   *int64            `json:"step"`
	Labels map[string]string `json:"labels"`
	Time   string            `json:"time"`
}

// table is that of the client libraries.
type table struct {
	Cases []struct {
		Name  string                `json:"name"`
		Line  string                `json:"line"`
		Shell struct{ Line string } `json:"shell"`
		Want  []sampleCase          `json:"samples"`
	} `json:"cases"`
	NoNumbers []struct{ Text, Line string } `json:"no_numbers"`
}

func conformance(t *testing.T) (all table) {
	t.Helper()
	b, err := os.ReadFile("../../../client-lib/emit/testdata/conformance.json")
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil || len(all.Cases) == 0 || len(all.NoNumbers) == 0 {
		t.Fatalf("the table has %d cases and %d texts: %v", len(all.Cases), len(all.NoNumbers), err)
	}
	return all
}

// The table has the same lines that the client libraries write, because their tests use it too.
func TestWhatTheClientLibrariesWriteIsRead(t *testing.T) {
	for _, tt := range conformance(t).Cases {
		for i := range tt.Want {
			tt.Want[i].Value = shortest(t, tt.Want[i].Value)
		}
		for _, line := range []string{tt.Line, cmp.Or(tt.Shell.Line, tt.Line)} {
			if line == "" {
				continue
			}
			t.Run(tt.Name, func(t *testing.T) {
				if diff := gocmp.Diff(tt.Want, parseSamples(t, line)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", line, diff)
				}
			})
		}
	}
}

func TestWhatIsNoNumberForTheClientLibrariesIsNoSample(t *testing.T) {
	for _, tt := range conformance(t).NoNumbers {
		t.Run(tt.Text, func(t *testing.T) {
			if samples, err := extract.Emitted([]byte(tt.Line)); err == nil || len(samples) > 0 {
				t.Errorf("%s: %+v, %v", tt.Line, samples, err)
			}
		})
	}
}

// shortest returns the shortest text that reads as the same number.
func shortest(t *testing.T, text string) string {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// parseSamples returns the samples in line as the table has them.
func parseSamples(t *testing.T, line string) (all []sampleCase) {
	t.Helper()
	samples, err := extract.Emitted([]byte(line))
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	for _, s := range samples {
		one := sampleCase{Name: s.Name, Value: strconv.FormatFloat(s.Float(), 'g', -1, 64), Unit: s.Unit, Step: s.Step, Labels: s.Labels}
		if s.Time != 0 {
			one.Time = strconv.FormatInt(s.Time, 10)
		}
		all = append(all, one)
	}
	return all
}
