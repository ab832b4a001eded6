package extract

import (
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/metrics-pusher/extract/prefilter"
)

// Bounds of a line that is a JSON object.
const (
	maxDepth   = 16
	maxMembers = 8 << 20 // bytes of all members, which repeat the names of the objects around them
)

// appendMembers appends the samples among the members of line if it is a JSON object. The samples of the line begin at index begin.
func (p *Patterns) appendMembers(dst []event.Sample, begin int, line Line, missed *Misses) []event.Sample {
	text := strings.TrimSpace(line.Text)
	if !strings.HasPrefix(text, "{") {
		return dst
	}
	o := object{}
	if line.Cut || !o.read(text) {
		missed.countUnreadable(text, line.Cut)
		return dst
	}
	missed.Members += o.left
	first := len(dst)
	for i := range p.members {
		dst = p.members[i].appendMembers(dst, o.members, missed)
	}
	for i := first; i < len(dst); i++ {
		s := &dst[i]
		s.Sub = i - begin
		if s.Step == nil {
			s.Step = o.step
		}
		if s.Time == 0 {
			if s.Time = o.time; s.Time == 0 && o.badTime {
				missed.Times++
			}
		}
	}
	return dst
}

// countUnreadable counts a line that cannot be read, if it has the form of an object.
func (m *Misses) countUnreadable(text string, cut bool) {
	if !strings.HasPrefix(strings.TrimLeft(text[1:], " \t"), `"`) {
		return
	}
	if cut {
		m.Cut++
		return
	}
	m.Objects++
}

// appendMembers appends the samples that members are, maxSamples at most, and counts the others.
func (p *pattern) appendMembers(dst []event.Sample, members []string, missed *Misses) []event.Sample {
	first := len(dst)
	for _, member := range members {
		if text := (prefilter.Text{Original: member}); !p.filter.MayMatch(&text) {
			continue
		}
		at := p.re.FindStringSubmatchIndex(member)
		if at == nil {
			continue
		}
		if len(dst)-first == maxSamples {
			missed.Members++
			continue
		}
		if s, found := p.number(member, at); missed.count(found) {
			dst = append(dst, s)
		}
	}
	return dst
}

// number is sample for a member. If the whole match is no number, the text after the first = is read as the number.
func (p *pattern) number(member string, at []int) (s event.Sample, found matchResult) {
	if p.value > 0 {
		p.extendExponent(member, at)
		return p.sample(member, at)
	}
	_, value, _ := strings.Cut(member, "=")
	v, ok := parseNumber(value)
	if !ok {
		return s, noNumber
	}
	s.Name, s.Unit, s.Direction = p.name, p.unit, p.direction
	s.Set(v)
	return s, p.applyGroups(&s, member, at)
}

// object is the content of a line that is a JSON object.
type object struct {
	members []string // path=value
	size    int      // bytes of these
	left    int      // how many members are left out, since they do not fit
	step    *int64
	time    int64
	badTime bool // its time cannot be read
}

// read reads an object, and reports whether the text is one. It accepts the numbers that Emitted accepts, such as NaN and Infinity, which
// are not valid JSON.
func (o *object) read(text string) bool {
	r := reader{rest: []byte(text)}
	return o.value(&r, "", 0) && r.atEnd()
}

// value reads the next value, which has the given path.
func (o *object) value(r *reader, path string, depth int) bool {
	switch {
	case depth > maxDepth:
		return false
	case r.take('{'):
		return o.nested(r, '}', path, depth)
	case r.take('['):
		return o.nested(r, ']', path, depth)
	case r.next('"'):
		text, err := r.text()
		o.addMember(path, text)
		return err == nil
	}
	b, err := r.value()
	if err != nil {
		return false
	}
	switch text := string(b); text {
	case "null":
	case "true":
		o.addMember(path, "1")
	case "false":
		o.addMember(path, "0")
	default:
		if _, ok := parseNumber(text); !ok {
			return false
		}
		o.addMember(path, text)
	}
	return true
}

// nested reads the content of an object or array, and its end.
func (o *object) nested(r *reader, end byte, path string, depth int) bool {
	if r.take(end) {
		return true
	}
	for n := 0; ; n++ {
		name, ok := strconv.Itoa(n), true
		if end == '}' {
			name, ok = r.key()
		}
		if path != "" {
			name = path + "." + name
		}
		if !ok || !o.value(r, name, depth+1) {
			return false
		}
		if !r.take(',') {
			return r.take(end)
		}
	}
}

// key reads the name of a member and the colon after it.
func (r *reader) key() (string, bool) {
	key, err := r.text()
	return key, err == nil && r.take(':')
}

// addMember adds a member.
func (o *object) addMember(path, value string) {
	switch path {
	case "step":
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			o.step = &n
		}
	case "time", "timestamp":
		t, ok := parseTime(value)
		if ok {
			o.time = t
		}
		o.badTime = o.badTime || !ok && value != ""
	}
	size := len(path) + len("=") + len(value)
	if o.size+size > maxMembers {
		o.left++
		return
	}
	o.members, o.size = append(o.members, path+"="+value), o.size+size
}
