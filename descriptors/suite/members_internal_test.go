package suite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

const base = `spec_version = "1.0"
[info]
description = "one"
[hardware]
cpus = 2
[env]
docker_image = "alpine:3"
[ml]
benchmark_code = "run {{a}} {{b}}"
`

// numbers are whole numbers from 0 on, with commas between them.
func numbers(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "%d,", i)
	}
	return all.String()
}

// swept is a descriptor with n×100 combinations, of which exclude leaves 100.
func swept(n int) string {
	var rows strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&rows, "{a=%d},", i+1)
	}
	return base + fmt.Sprintf("[sweep]\nexclude = [%s]\n[sweep.product]\na = [%s]\nb = [%s]\n", rows.String(), numbers(n), numbers(100))
}

// readEntries reads a suite with one descriptor and 1000 entries, with values that differ where they are to.
func readEntries(t *testing.T, descriptor string, differ bool) *members {
	t.Helper()
	var text strings.Builder
	text.WriteString("[suite]\nname = 'a'\n")
	for i := range MaxEntries {
		fmt.Fprintf(&text, "[[suite.entries]]\nname = 'e%d'\ndescriptor = 'd.toml'\n", i)
		if differ {
			fmt.Fprintf(&text, "[suite.entries.values]\n'hardware.cpus' = %d\n", i+1)
		}
	}
	full, faults := Embed("suite.toml", []byte(text.String()), []Source{{Name: "d.toml", File: "d.toml", Text: []byte(descriptor)}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	doc, faults := read("suite.toml", full)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	m := newMembers(parser.Parser{}, doc)
	m.read()
	return m
}

// TestASuiteIsBoundedByTheWorkThatReadingItTakes counts the readings of descriptors, not their time.
func TestASuiteIsBoundedByTheWorkThatReadingItTakes(t *testing.T) {
	plain := strings.NewReplacer(" {{a}}", "", " {{b}}", "").Replace(base)
	for name, tt := range map[string]struct {
		descriptor string
		differ     bool
		least      int // readings
		most       int
		fault      string // its beginning; empty for none
	}{
		"one descriptor":             {plain, false, 1, 1, ""},
		"one with a costly sweep":    {swept(300), false, 1, 1, ""},
		"different values":           {plain, true, 1000, 1000, ""},
		"costly sweeps that differ":  {swept(900), true, 1, 2, "d.toml:10:2: sweep: with its exclude and the entries before it the suite has more combinations than are compared"},
		"long texts that differ":     {plain + strings.Repeat("#\n", 100<<10), true, 50, 150, "suite.toml:"},
		"more runs than may be":      {base + "[sweep.product]\na = [" + numbers(300) + "]\nb = [" + numbers(300) + "]\n", true, 1, 2, "suite.toml:3:9: suite.entries: has more than 100000 runs"},
		"one reading of many faults": {plain + "speed = 1\n", false, 1, 1, "d.toml:10:1: ml.speed: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := readEntries(t, tt.descriptor, tt.differ)
			if n := len(m.readings); n < tt.least || n > tt.most {
				t.Errorf("%d readings, want %d to %d", n, tt.least, tt.most)
			}
			if len(m.faults) > 1 || (len(m.faults) == 1) != (tt.fault != "") || tt.fault != "" && !strings.HasPrefix(m.faults[0].String(), tt.fault) {
				t.Errorf("%v, want %s", m.faults, tt.fault)
			}
		})
	}
}
