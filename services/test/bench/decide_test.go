package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"
)

func TestABarIsReachedMissedOrNotMeasured(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		result result
		state  string
		missed string
	}{
		"reached":                          {atMost("a", 1, "s", 2, ""), "yes", ""},
		"missed, too much":                 {atMost("a", 3, "s", 2, ""), "NO", "not reached: a is 3 s, want <= 2"},
		"missed, too little":               {atLeast("a", 0.7, "ratio", 0.8, ""), "NO", "not reached: a is 0.7 ratio, want >= 0.8"},
		"not measured is never reached":    {unmeasured("a", "ratio", 0.8, "no server"), "not measured", ""},
		"a number without a bar is no bar": {reported("a", 3, "s", ""), "-", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, errText := tt.result.state(), fmt.Sprint(missed([]result{tt.result})); got != tt.state || errText != cmp.Or(tt.missed, "<nil>") {
				t.Errorf("%s, %q, want %s, %q", got, errText, tt.state, tt.missed)
			}
			if got, want := tt.result.Reached, tt.state == "yes"; got != want {
				t.Errorf("the JSON says reached: %t, want %t", got, want)
			}
			var out bytes.Buffer
			if err := table(&out, []result{tt.result}); err != nil || !strings.Contains(out.String(), tt.state) {
				t.Errorf("the table says %s, %v", out.String(), err)
			}
		})
	}
}
