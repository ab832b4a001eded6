package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/units"
)

// parsers checks the parsers of the output at a path.
func (c rules) parsers(at string, out *descriptors.Output) {
	type input struct{ kind, command, path, stream, role string }
	first := map[input]int{}
	for i, p := range out.Parsers {
		path := fmt.Sprintf("%s.parsers[%d]", at, i)
		if p.Kind == "" || c.r.HasErrorBelow(path) {
			continue
		}
		in := input{p.Kind, p.Command, p.Path, p.Stream, p.Role}
		if j, twice := first[in]; twice {
			c.r.Fault(path, fault.SameParser, fmt.Sprintf("reads what %s.parsers[%d] reads", at, j), "leave one of the two out")
		} else {
			first[in] = i
		}
		c.parserKeys(path, p)
	}
}

// parserKeys finds keys that the parser at a path does not read.
func (c rules) parserKeys(at string, p descriptors.Parser) {
	if p.Path != "" && c.r.Has(at+".stream") {
		c.r.Warn(at+".stream", fault.NotRead, "the parser reads the file at path", "leave one of the two out")
	}
	switch {
	case p.Kind != descriptors.CommandParser:
		for _, key := range c.given(at, "command", "deadline", "memory") {
			c.r.Warn(at+"."+key, fault.NotRead, fmt.Sprintf("kind %s is no command", p.Kind), `write kind = "command", or leave it out`)
		}
	case strings.TrimSpace(p.Command) == "" && !c.damaged:
		c.r.Fault(at, fault.NoParserCommand, "kind command has no command", `add command = "python3 parse.py"`)
	}
	if c.r.Has(at+".metrics") && !slices.Contains([]string{"json", "csv"}, p.Kind) {
		c.r.Warn(at+".metrics", fault.NotRead, fmt.Sprintf("kind %s knows its metrics", p.Kind),
			`write kind = "json" or "csv", or leave it out`)
	}
	if !c.r.Has(at + ".role") {
		return
	}
	if c.d.Hardware.Strategy != descriptors.OwnRoles {
		c.r.Warn(at+".role", fault.NotRead, "only a file with [[roles]] has output of several roles", "leave it out")
		return
	}
	c.role(at+".role", p.Role)
}

// parsedUnits finds metrics whose units are no units of the numbers that a parser finds.
func (c rules) parsedUnits(at string, out *descriptors.Output) {
	kinds := map[string]bool{}
	for _, p := range out.Parsers {
		kinds[p.Kind] = true
	}
	for _, parsed := range descriptors.ParsedMetrics() {
		if !kinds[parsed.Kind] || parsed.Unit == "*" {
			continue
		}
		for i, m := range out.Metrics {
			path := fmt.Sprintf("%s.metrics[%d].units", at, i)
			if m.Name == parsed.Name && c.r.IsValid(path) && !units.Convertible(parsed.Unit, m.Units) {
				c.r.Fault(path, fault.OtherUnits,
					fmt.Sprintf("the metric %s of %s is in %s, which cannot be converted to %q", m.Name, parsed.Kind, parsed.Unit, m.Units),
					"write "+parsed.Unit+", or a multiple of it")
			}
		}
	}
}

// withoutPattern finds keys that a metric without a pattern does not read.
func (c rules) withoutPattern(at string, metrics []descriptors.Metric) {
	for i := range metrics {
		path := fmt.Sprintf("%s[%d]", at, i)
		for _, key := range c.given(path, "parser", "block", "block_lines", "block_time") {
			if !c.r.Has(path+".pattern") && !c.damaged {
				c.r.Warn(path+"."+key, fault.NotRead, "a metric without a pattern is not looked for in lines",
					"add pattern, or leave this out")
			}
		}
	}
}
