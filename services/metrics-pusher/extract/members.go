package extract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Bounds of a line that is a JSON object; what is beyond them is not looked at.
const (
	maxDepth   = 16
	maxMembers = 1000
)

// appendMembers appends the samples among the members of line where that is a
// JSON object. Those of the line begin at begin.
func (p *Patterns) appendMembers(dst []event.Sample, begin int, line string) (samples []event.Sample, bad int) {
	text := strings.TrimSpace(line)
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		return dst, 0
	}
	o := object{}
	if !o.read(text) {
		return dst, 0
	}
	first := len(dst)
	for i := range p.members {
		var wrong int
		dst, wrong = p.members[i].among(dst, o.members)
		bad += wrong
	}
	for i := first; i < len(dst); i++ {
		s := &dst[i]
		s.Sub = i - begin
		if s.Step == nil {
			s.Step = o.step
		}
		if s.Time == 0 {
			s.Time = o.time
		}
	}
	return dst, bad
}

// among appends the samples that members are, and returns how many matches were
// of text that is no number.
func (p *pattern) among(dst []event.Sample, members []string) (samples []event.Sample, bad int) {
	for _, member := range members {
		if !p.literal.in(&folded{text: member}) {
			continue
		}
		at := p.re.FindStringSubmatchIndex(member)
		if at == nil {
			continue
		}
		s, found, ok := p.number(member, at)
		if ok {
			dst = append(dst, s)
		} else if found {
			bad++
		}
	}
	return dst, bad
}

// number is sample for a member, of which the whole match is no number: then what
// follows the first = is.
func (p *pattern) number(member string, at []int) (s event.Sample, found, ok bool) {
	if p.value > 0 {
		return p.sample(member, at)
	}
	_, value, _ := strings.Cut(member, "=")
	v, ok := Number(value)
	if !ok {
		return s, true, false
	}
	s.Name, s.Unit = p.name, p.unit
	s.Set(v)
	p.about(&s, member, at)
	return s, true, true
}

// object is what a line that is a JSON object holds.
type object struct {
	members []string // path=value
	step    *int64
	time    int64
}

// read reads an object, and reports whether the text is one.
func (o *object) read(text string) bool {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if !o.value(dec, "", 0) {
		return false
	}
	_, err := dec.Token()
	return errors.Is(err, io.EOF) // nothing follows
}

// value reads the next value, whose path is known.
func (o *object) value(dec *json.Decoder, path string, depth int) bool {
	t, err := dec.Token()
	if err != nil || depth > maxDepth {
		return false
	}
	switch t := t.(type) {
	case json.Delim:
		return o.nested(dec, t, path, depth)
	case bool:
		o.keep(path, map[bool]string{false: "0", true: "1"}[t])
	case json.Number:
		o.keep(path, t.String())
	case string:
		o.keep(path, t)
	}
	return true
}

// nested reads what an object or array holds, and its end.
func (o *object) nested(dec *json.Decoder, begin json.Delim, path string, depth int) bool {
	for n := 0; dec.More(); n++ {
		name := strconv.Itoa(n)
		if begin == '{' {
			t, err := dec.Token()
			key, ok := t.(string)
			if err != nil || !ok {
				return false
			}
			name = key
		}
		if path != "" {
			name = path + "." + name
		}
		if !o.value(dec, name, depth+1) {
			return false
		}
	}
	_, err := dec.Token()
	return err == nil
}

// keep keeps a member.
func (o *object) keep(path, value string) {
	switch path {
	case "step":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			o.step = &n
		}
	case "time", "timestamp":
		if t, ok := moment(value); ok {
			o.time = t
		}
	}
	if len(o.members) < maxMembers && len(path)+len(value) <= maxMember {
		o.members = append(o.members, fmt.Sprintf("%s=%s", path, value))
	}
}

// maxMember is how long a member may be.
const maxMember = 64 << 10
