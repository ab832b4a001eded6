package types

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors/cron"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/quantity"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// zones are the names of the IANA database, one on each line: a descriptor is
// read alike on every machine, whatever database it has.
//
//go:embed zones.txt
var zones string

// SingleRun is the schedule of a single run.
const SingleRun = "single_run"

func times() decode.ValueTypes {
	return decode.ValueTypes{
		"spec version": specVersion(),
		"schedule":     text("`single_run`, or a cron expression", schedule),
		"time zone":    text("a name of the IANA database, as `Europe/Berlin`", zone),
		"moment":       text("a date, or a date and a time, as `2026-12-01`, `2026-12-01T03:00` or `2026-12-01T03:00:00Z`", timestamp),
		"duration": {
			Type: "string", Rule: "numbers with `d`, `h`, `m`, `s`: `90s`, `1h30m`, `2d`; a second at least, a year at most",
			Read: func(v decode.Value) any {
				if d, ok := Duration(v); ok {
					return d
				}
				return nil
			},
		},
		"every": {
			Type: "bool or string", Rule: "`true`, `false`, or numbers with `d`, `h`, `m`, `s`: `5s`, `1m`; a second at least",
			Read: interval,
		},
	}
}

// interval is how often something is done: true is every second, and false, which is
// 0, never.
func interval(v decode.Value) any {
	switch {
	case v.Kind == syntax.Bool && v.Text == "true":
		return time.Second
	case v.Kind == syntax.Bool:
		return time.Duration(0)
	case v.Kind != syntax.String:
		v.WrongType("true, false or a time such as \"5s\"")
		return nil
	}
	if d, ok := Duration(v); ok {
		return d
	}
	return nil
}

// specVersion is a text: a number would lose the zero of 1.0.
func specVersion() decode.ValueType {
	k := text("`0.1.0` or `1.0`", version)
	read := k.Read
	k.Read = func(v decode.Value) any {
		if v.Kind == syntax.Integer {
			v.Fault(fault.WrongType, fmt.Sprintf("must be %s, not %s", syntax.String, v.Kind), `write "1.0"`)
			return nil
		}
		return read(v)
	}
	return k
}

// version takes the versions that there are: 0.1, of the system that this one
// replaces, whose files mean the same here, and 1.0.
func version(v decode.Value, s string) any {
	var major, minor, patch uint16
	n, _ := fmt.Sscanf(s+".0", "%d.%d.%d", &major, &minor, &patch) // n says how much of it is one
	switch {
	case n < 3 || strings.Count(s, ".") > 2 || !all(s, func(c byte) bool { return isDigit(c) || c == '.' }):
		v.Fault(fault.Version, fmt.Sprintf("%q is not a version", s), `write "1.0"`)
	case major == 0 && minor == 1, major == 1 && minor == 0:
		return s
	case major >= 1:
		v.Fault(fault.Version, fmt.Sprintf("version %s is newer than this program, which knows 1.0", s),
			`use a newer program, or write "1.0" if the file has nothing newer`)
	default:
		v.Fault(fault.Version, fmt.Sprintf("there is no version %s", s), `write "1.0"`)
	}
	return nil
}

func schedule(v decode.Value, s string) any {
	if s == SingleRun {
		return s
	}
	parsed, err := cron.Parse(s)
	if e, ok := errors.AsType[*cron.Error](err); ok {
		remedy := e.Remedy
		if suggest.Find(s, []string{SingleRun}) != "" || s == "single" || s == "once" {
			remedy = `did you mean "single_run"?`
		}
		v.FaultAt(v.Inside(e.Offset), fault.BadSchedule, e.Message, remedy)
		return nil
	}
	if parsed.Never() {
		v.Fault(fault.NeverFires, "no month has such a day: it would never run", "")
		return nil
	}
	return s
}

func zone(v decode.Value, s string) any {
	if s != "" && !strings.Contains(s, "\n") && strings.Contains("\n"+zones, "\n"+s+"\n") {
		return s
	}
	remedy := "write a name of the IANA database, as Europe/Berlin or UTC"
	if suggestion := suggest.Find(s, strings.Fields(zones)); suggestion != "" {
		remedy = fmt.Sprintf("did you mean %q?", suggestion)
	}
	v.Fault(fault.TimeZone, fmt.Sprintf("%q is not a time zone", s), remedy)
	return nil
}

// ParseTimestamp is the time of a timestamp, in zone if it names none. It is false for an
// invalid one.
func ParseTimestamp(text string, zone *time.Location) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

func timestamp(v decode.Value, s string) any {
	if _, ok := ParseTimestamp(strings.Replace(s, " ", "T", 1), time.UTC); ok {
		return strings.Replace(s, " ", "T", 1)
	}
	v.Fault(fault.BadTimestamp, fmt.Sprintf("%q is not a time", s),
		`write "2026-12-01", "2026-12-01T03:00" or, with a zone, "2026-12-01T03:00:00Z"`)
	return nil
}

// Duration is the span of time that v says. It is false, and reported, where it
// says none.
func Duration(v decode.Value) (time.Duration, bool) {
	if v.Kind == syntax.Integer {
		v.Fault(fault.WrongType, "must be a string with a unit, not a whole number", fmt.Sprintf(`write "%ss"`, v.Text))
		return 0, false
	}
	s, ok := v.String()
	if !ok {
		return 0, false
	}
	const year = 365 * 24 * time.Hour
	d, err := quantity.Duration(s)
	switch {
	case err != nil:
		remedy := `write numbers with units, as "90s", "1h30m" or "2d"`
		if n, err := strconv.Atoi(s); err == nil {
			remedy = fmt.Sprintf(`write a unit, as "%ds"`, n)
		}
		v.Fault(fault.BadTime, fmt.Sprintf("%q is not a span of time", s), remedy)
	case d < time.Second:
		v.Fault(fault.BadTime, fmt.Sprintf("%q is less than a second", s), "leave the key out for no limit of your own")
	case d > year:
		v.Fault(fault.BadTime, fmt.Sprintf("%q is more than a year", s), "")
	default:
		return d, true
	}
	return 0, false
}
