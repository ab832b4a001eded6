package parser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

// hostile is the size of the texts: a quarter of a descriptor's limit shows times that
// grow faster than the text.
const hostile = parser.MaxSize / 4

// repeat is line over and over, with a number in place of its #, up to the size
// hostile.
func repeat(head, line, tail string) string {
	var s strings.Builder
	s.WriteString(head)
	for i := 0; s.Len()+len(line)+len(tail)+8 < hostile; i++ {
		s.WriteString(strings.ReplaceAll(line, "#", fmt.Sprint(i)))
	}
	return s.String() + tail
}

// Any user may send a descriptor: none may keep the gateway busy.
func TestNoTextTakesLong(t *testing.T) {
	tests := map[string]string{
		"unknown keys":            repeat("[ml]\n", "benchmark#=1\n", ""),
		"unknown tables":          repeat("", "[hardwar#]\n", ""),
		"tables in tables":        repeat("", "[a.b.c.d.e.f.g.h.i.j.k#]\n", ""),
		"dotted keys":             repeat("", "a.b.c.d.e.f.g.h#.i=1\n", ""),
		"lists in lists":          repeat("a=", "[", "") + repeat("", "]", ""),
		"open brackets":           repeat("a=", "[", ""),
		"open braces":             repeat("a=", "{a=", ""),
		"lines that are no TOML":  repeat("", "=\n", ""),
		"headers that are none":   repeat("", "[\n", ""),
		"labels":                  repeat("[info.labels]\n", "-#=''\n", ""),
		"patterns":                repeat("[output]\nmetrics=[\n", "{name='#',units='',pattern='x{1000}'},\n", "]\n"),
		"sources that are empty":  repeat("[data]\nsources=[", "{},", "]\n"),
		"sources in one another":  repeat("", "[[data.sources]]\nsrc='s3://b'\npath='/d"+strings.Repeat("/a", 2000)+"/#'\n", ""),
		"quotes":                  repeat("[ml]\nargs='", `"a" `, "'\n"),
		"one long key":            repeat("", "a", "=1\n"),
		"one long value":          repeat("[hardware]\nstrategy='", "a", "'\n"),
		"one long image":          repeat("[env]\ndocker_image='", "a/", "a'\n"),
		"one long schedule":       repeat("[info]\nscheduling='", "1,", "1 * * * *'\n"),
		"one long line":           repeat("a = [", "1,", "]"),
		"variables and secrets":   repeat("[env]\nvars={", "V#='',", "V=''}\n"),
		"an array of tables each": repeat("", "[[a#]]\n", ""),
	}
	const bound = time.Minute // some hundred times the usual time, for busy machines and the race detector
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, faults := parser.Parse("f.toml", []byte(text))
			if took := time.Since(start); took > bound {
				t.Errorf("%v", took)
			}
			t.Logf("%v, %d faults", time.Since(start), len(faults))
			if len(faults) == 0 {
				t.Error("no fault")
			}
		})
	}
}

func TestOverridesOfALongTextDoNotTakeLong(t *testing.T) {
	const bound = time.Minute
	long := repeat("[custom_params.hyper_params]\n", "key-# = [1, { a = 'b' }]\n", "")
	text := overridden + long[:1+strings.LastIndexByte(long[:hostile/4], '\n')]
	tests := map[string][]parser.Override{}
	for i := range parser.MaxOverrides {
		tests["keys"] = append(tests["keys"], parser.Override{Path: fmt.Sprintf("info.labels.x%d", i), Value: "y"})
		tests["lists in lists"] = append(tests["lists in lists"], parser.Override{Path: "a" + strings.Repeat("[0]", 20), Value: "1"})
		tests["a whole table and back"] = append(tests["a whole table and back"], parser.Override{Path: "custom_params.hyper_params", Value: "{ a = 1 }"})
		tests["paths"] = append(tests["paths"], parser.Override{Path: strings.Repeat("a.", 2000) + "b", Value: "1"})
		tests["values"] = append(tests["values"], parser.Override{Path: "ml.args", Value: strings.Repeat("[", 2000)})
	}
	for name, set := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			parser.ParseWith("f.toml", []byte(text), set)
			if took := time.Since(start); took > bound {
				t.Errorf("%v", took)
			}
			t.Log(time.Since(start))
		})
	}
}
