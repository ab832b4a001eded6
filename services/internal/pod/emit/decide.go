//go:build linux

package emit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

// Defaults of the environment's variables.
const (
	defaultFIFO = "/tmp/benchmark-ai/fifo"
	defaultWait = "10" // seconds
)

// errHelp says that help is asked for.
var errHelp = errors.New("help")

// emission is the content of a command line, as the members of a JSON object.
type emission struct {
	metrics, units, labels []string
	step, unit, time       string
}

// parseArgs reads a command line. The error describes its fault for the user, or is
// errHelp.
func parseArgs(args []string) (*emission, error) {
	e := &emission{}
	rest, err := e.options(args)
	if err != nil {
		return nil, err
	}
	for _, word := range rest {
		if err := e.metric(word); err != nil {
			return nil, err
		}
	}
	switch {
	case len(e.metrics) == 0:
		return nil, errors.New("NAME=NUMBER is wanted; bai-emit --help says more")
	case e.unit != "" && len(e.units) > 0:
		return nil, errors.New("--unit is for all: no other unit can be beside it")
	}
	return e, nil
}

// options takes the options and the metrics among them, and returns the arguments after
// --.
func (e *emission) options(args []string) (rest []string, err error) {
	for err == nil && len(args) > 0 {
		word := args[0]
		name, value, has := strings.Cut(word, "=")
		switch {
		case word == "--help", word == "-h":
			return nil, errHelp
		case word == "--":
			return args[1:], nil
		case !strings.HasPrefix(word, "--"), len(e.metrics) > 0 && !isOption(name):
			args, err = args[1:], e.metric(word)
			continue
		case !has && len(args) == 1:
			return nil, fmt.Errorf("%s: a value is wanted", name)
		case !has:
			value, args = args[1], args[1:]
		}
		args, err = args[1:], e.option(name, value)
	}
	return args, err
}

// isOption reports whether an option has a name. After a metric, an unknown name that
// begins with -- is a metric, too.
func isOption(name string) bool {
	return slices.Contains([]string{"--step", "--unit", "--label", "--time"}, name)
}

func (e *emission) option(name, value string) error {
	switch name {
	case "--step":
		rest, negative := strings.CutPrefix(value, "-")
		if !digits(rest) {
			return fmt.Errorf("--step: %q is no whole number", value)
		}
		e.step = sign(negative) + trimZeros(rest)
	case "--unit":
		if value == "" {
			return errors.New("--unit: a unit is wanted")
		}
		e.unit = jsonString(value)
	case "--label":
		key, label, ok := strings.Cut(value, "=")
		if !ok || key == "" {
			return fmt.Errorf("--label: NAME=TEXT is wanted, not %q", value)
		}
		e.labels = append(e.labels, jsonString(key)+": "+jsonString(label))
	case "--time":
		whole, fraction, ok := strings.Cut(value, ".")
		if !ok {
			fraction = "0"
		}
		if !digits(whole) || !digits(fraction) {
			return fmt.Errorf("--time: %q is no time in seconds since 1970", value)
		}
		e.time = trimZeros(whole) + "." + fraction
	default:
		return fmt.Errorf("there is no %s; bai-emit --help says what there is", name)
	}
	return nil
}

// metric takes NAME=NUMBER[:UNIT].
func (e *emission) metric(word string) error {
	at := strings.LastIndexByte(word, '=')
	if at < 1 || at == len(word)-1 {
		return fmt.Errorf("NAME=NUMBER is wanted, not %q", word)
	}
	name := jsonString(word[:at])
	value, unit, hasUnit := strings.Cut(word[at+1:], ":")
	n, ok := jsonNumber(value)
	switch {
	case !ok:
		return fmt.Errorf("%q of %q is no number", value, word)
	case hasUnit && unit == "":
		return fmt.Errorf("the unit of %q is empty", word)
	case hasUnit:
		e.units = append(e.units, name+": "+jsonString(unit))
	}
	e.metrics = append(e.metrics, name+": "+n)
	return nil
}

// line returns the line, with the time of now where now is not zero and the line
// does not say another.
func (e *emission) line(now time.Time) string {
	when := e.time
	if when == "" && !now.IsZero() {
		when = fmt.Sprintf("%d.%09d", now.Unix(), now.Nanosecond())
	}
	members := slices.Clip(e.metrics)
	for _, m := range []struct{ key, value string }{
		{"@step", e.step},
		{"@unit", cmp.Or(e.unit, jsonObject(e.units))},
		{"@labels", jsonObject(e.labels)},
		{"@time", when},
	} {
		if m.value != "" {
			members = append(members, jsonString(m.key)+": "+m.value)
		}
	}
	return jsonObject(members) + "\n"
}

// jsonObject returns members as an object; empty for none.
func jsonObject(members []string) string {
	if len(members) == 0 {
		return ""
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// jsonNumber returns a number as JSON writes it, or as Python writes numbers that JSON
// lacks, with the digits of its input.
func jsonNumber(s string) (string, bool) {
	if s == "true" || s == "false" {
		return s, true
	}
	minus := sign(strings.HasPrefix(s, "-"))
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	switch strings.ToLower(s) {
	case "nan":
		return "NaN", true
	case "inf", "infinity":
		return minus + "Infinity", true
	}
	exponent := ""
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		s, exponent = s[:at], s[at:]
		power := exponent[1:]
		if power != "" && (power[0] == '-' || power[0] == '+') {
			power = power[1:]
		}
		if !digits(power) {
			return "", false
		}
	}
	whole, fraction, hasPoint := strings.Cut(s, ".")
	if !digits(whole + fraction) {
		return "", false
	}
	n := minus + trimZeros(cmp.Or(whole, "0"))
	if hasPoint {
		n += "." + cmp.Or(fraction, "0")
	}
	return n + exponent, true
}

func sign(negative bool) string {
	if negative {
		return "-"
	}
	return ""
}

// digits reports whether s is some digits and nothing else.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// trimZeros returns digits without the zeros that lead.
func trimZeros(s string) string { return cmp.Or(strings.TrimLeft(s, "0"), "0") }

// jsonString returns s as a JSON string. Its bytes are passed on, but for those that
// JSON has escaped.
func jsonString(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c >= ' ' && c != 0x7f:
			b = append(b, c)
		default:
			b = append(b, escape(c)...)
		}
	}
	return string(append(b, '"'))
}

func escape(c byte) string {
	if short, ok := map[byte]string{'\n': `\n`, '\b': `\b`, '\t': `\t`, '\f': `\f`, '\r': `\r`}[c]; ok {
		return short
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// target a line goes: to standard output where there is neither file nor FIFO.
type target struct {
	file        string        // to be appended to
	fifo        string        // to be written to
	fifoTimeout time.Duration // that the FIFO is waited for
}

// targetFromEnv decides by the environment where lines go.
func targetFromEnv(env func(string) string) (w target, err error) {
	value, file := env(pod.EnvBackend), env(pod.EnvFile)
	backend := strings.ToLower(value)
	switch {
	case backend != "" && backend != "stdout" && backend != "fifo":
		return w, fmt.Errorf("%s: %q is none of stdout and fifo", pod.EnvBackend, value)
	case file != "" && backend != "stdout":
		w.file = file
	case backend == "fifo":
		w.fifo = cmp.Or(env(pod.EnvFIFO), defaultFIFO)
		w.fifoTimeout, err = parseSeconds(cmp.Or(env(pod.EnvFIFOWait), defaultWait))
	}
	return w, err
}

// parseSeconds reads how long the FIFO is waited for.
func parseSeconds(s string) (time.Duration, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	if digits(whole+fraction) && (fraction == "" || digits(fraction)) && len(trimZeros(whole)) <= 9 {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return time.Duration(f * float64(time.Second)), nil
		}
	}
	return 0, fmt.Errorf("%s: %q is no number of seconds", pod.EnvFIFOWait, s)
}
