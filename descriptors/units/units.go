// Package units converts numbers between the units that descriptors and tools write.
//
// Known are seconds (ns us µs ms s min h, with their long names), bytes and bits with the
// prefixes of SI (k M G T P) and of IEC (Ki Mi Gi Ti Pi), operations (op), rates of all
// these per second (/s or ps as in Gbps), hertz, and parts of one (1, ratio, %). The
// factors are those of the SI brochure and of IEC 80000-13.
package units

import "strings"

// Convert converts v from the unit from to the unit to. It returns v and from if one of the
// units is unknown, or if they do not measure the same. An empty to returns v and from, an
// empty from returns v and to.
func Convert(v float64, from, to string) (float64, string) {
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	if to == "" || from == to {
		return v, from
	}
	if from == "" {
		return v, to
	}
	a, b, ok := both(from, to)
	if !ok {
		return v, from
	}
	if a.factor >= b.factor {
		return v * (a.factor / b.factor), to
	}
	return v / (b.factor / a.factor), to // exact if the quotient is whole
}

// Convertible reports whether Convert converts numbers of one unit to the other.
func Convertible(from, to string) bool {
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	_, _, ok := both(from, to)
	return ok || from == to
}

// both returns two units that measure the same.
func both(from, to string) (a, b unit, ok bool) {
	a, okFrom := unitOf(from)
	b, okTo := unitOf(to)
	return a, b, okFrom && okTo && a.of == b.of
}

// IsRate reports whether a unit is an amount per time, as images/s or Gbps.
func IsRate(text string) bool {
	text = strings.TrimSpace(text)
	if u, ok := unitOf(text); ok {
		return strings.HasSuffix(u.of, "/s") || u.of == "Hz"
	}
	_, per, _ := strings.Cut(text, "/")
	u, ok := unitOf(per)
	return ok && u.of == "ns"
}

// unit is a multiple of a base unit. The base unit is the smallest known one, so that all factors are whole.
type unit struct {
	of     string
	factor float64
}

// unitOf returns the unit that text names.
func unitOf(text string) (unit, bool) {
	if base, ok := strings.CutSuffix(text, "/s"); ok {
		return rate(base)
	}
	if base, ok := strings.CutSuffix(text, "/sec"); ok {
		return rate(base)
	}
	if base, ok := strings.CutSuffix(text, "ps"); ok && len(base) > 0 && strings.ContainsAny(base[len(base)-1:], "bB") {
		return rate(base)
	}
	switch text {
	case "ns", "nanosecond", "nanoseconds":
		return unit{"ns", 1}, true
	case "us", "µs", "μs", "usec", "microsecond", "microseconds":
		return unit{"ns", 1e3}, true
	case "ms", "msec", "millisecond", "milliseconds":
		return unit{"ns", 1e6}, true
	case "s", "sec", "second", "seconds":
		return unit{"ns", 1e9}, true
	case "min", "minute", "minutes":
		return unit{"ns", 60e9}, true
	case "h", "hour", "hours":
		return unit{"ns", 3600e9}, true
	case "%", "percent":
		return unit{"%", 1}, true
	case "1", "ratio":
		return unit{"%", 100}, true
	case "op", "ops", "operations":
		return unit{"op", 1}, true
	}
	return prefixed(text)
}

func rate(text string) (unit, bool) {
	u, ok := unitOf(text)
	u.of += "/s"
	return u, ok
}

// prefixed returns the unit of bytes, bits or hertz that text names.
func prefixed(text string) (unit, bool) {
	for _, base := range []struct {
		name string
		unit unit
	}{
		{"Bytes", unit{"bit", 8}},
		{"bytes", unit{"bit", 8}},
		{"B", unit{"bit", 8}},
		{"bits", unit{"bit", 1}},
		{"bit", unit{"bit", 1}},
		{"b", unit{"bit", 1}},
		{"Hz", unit{"Hz", 1}},
	} {
		prefix, ok := strings.CutSuffix(text, base.name)
		if !ok {
			continue
		}
		if f, ok := factor(prefix); ok {
			return unit{base.unit.of, base.unit.factor * f}, true
		}
	}
	return unit{}, false
}

// factor returns the factor of a prefix.
func factor(prefix string) (float64, bool) {
	if prefix == "" {
		return 1, true
	}
	step, name := 1000.0, prefix
	if p, ok := strings.CutSuffix(prefix, "i"); ok {
		step, name = 1024, p
	}
	n := strings.Index("kMGTP", name)
	if name == "K" {
		n = 0
	}
	if n < 0 || len(name) != 1 {
		return 0, false
	}
	f := step
	for range n {
		f *= step
	}
	return f, true
}
