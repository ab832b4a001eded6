// Package cron parses schedules. It is the only package that knows their grammar.
//
// A schedule has five fields, parted by blanks:
//
//	minute        0–59
//	hour          0–23
//	day of month  1–31
//	month         1–12 or jan–dec
//	day of week   0–7 or sun–sat; 0 and 7 are Sunday
//
// A field is * or a list, parted by commas, of numbers and ranges a-b; a step /n takes
// every nth of a range, of *, or from a number on. Names may be upper or lower case. If
// both days are given, a date matches with either. Or the schedule is one of the words
// @hourly, @daily, @weekly, @monthly and @yearly.
package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// A Schedule says at which minutes something is done. The zero Schedule never
// does it.
type Schedule struct {
	minute, hour, day, month, weekday uint64 // bit n stands for n
	anyDay, anyWeekday                bool
	everyInterval                     bool // minute or hour begins with *
}

// An Error describes the fault of a schedule.
type Error struct {
	Offset  int // of the byte where it is
	Message string
	Remedy  string // "" where no line says it
}

// Error is the message with the remedy.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + " (" + e.Remedy + ")"
}

// A field is the range of numbers of one of the five.
type field struct {
	name      string
	low, high int
	names     []string // of low and the following numbers
}

func fields() [5]field {
	return [5]field{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day of month", 1, 31, nil},
		{"month", 1, 12, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
		{"day of week", 0, 7, strings.Fields("sun mon tue wed thu fri sat")},
	}
}

// Parse reads a schedule. Its error is an *Error.
func Parse(s string) (Schedule, error) {
	if word := strings.TrimSpace(s); strings.HasPrefix(word, "@") {
		return macro(word)
	}
	words, offsets := split(s)
	if err := checkFieldCount(words, offsets, len(s)); err != nil {
		return Schedule{}, err
	}
	var sets [5]uint64
	for i, f := range fields() {
		set, err := f.list(words[i], offsets[i])
		if err != nil {
			return Schedule{}, err
		}
		sets[i] = set
	}
	if sets[4]&(1<<7) != 0 {
		sets[4] = sets[4]&^(1<<7) | 1
	}
	return Schedule{
		sets[0], sets[1], sets[2], sets[3], sets[4],
		strings.HasPrefix(words[2], "*"), strings.HasPrefix(words[4], "*"),
		strings.HasPrefix(words[0], "*") || strings.HasPrefix(words[1], "*"),
	}, nil
}

// Never reports whether no date is one of s, as for February 30.
func (s Schedule) Never() bool {
	if !s.anyDay && !s.anyWeekday {
		return false
	}
	longest := [...]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for month := 1; month <= 12; month++ {
		if s.month&(1<<month) != 0 && bits.TrailingZeros64(s.day) <= longest[month] {
			return false
		}
	}
	return true
}

func macro(word string) (Schedule, error) {
	meaning := map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0",
		"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
	}
	if s, ok := meaning[word]; ok {
		return Parse(s)
	}
	return Schedule{}, &Error{
		Message: fmt.Sprintf("%s is no schedule here", word),
		Remedy:  "write @hourly, @daily, @weekly, @monthly or @yearly, or five fields",
	}
}

// split gives the words of s and their offsets.
func split(s string) (words []string, offsets []int) {
	words = strings.Fields(s)
	at := 0
	for _, w := range words {
		at += strings.Index(s[at:], w)
		offsets = append(offsets, at)
		at += len(w)
	}
	return words, offsets
}

func checkFieldCount(words []string, offsets []int, end int) error {
	const want = "write five fields: minute, hour, day of month, month, day of week"
	switch {
	case len(words) > 0 && strings.Contains(words[0], "="):
		return &Error{offsets[0], words[0] + " is no part of a schedule", "name the zone in info.timezone"}
	case len(words) == 6:
		return &Error{offsets[5], "six fields; there are no seconds and no years", want}
	case len(words) > 6:
		return &Error{offsets[5], fmt.Sprintf("%d fields", len(words)), want}
	case len(words) == 0:
		return &Error{0, "an empty schedule", want}
	case len(words) < 5:
		return &Error{end, fmt.Sprintf("%d of five fields", len(words)), want}
	}
	return nil
}

// list reads a field whose offset is at.
func (f field) list(s string, at int) (uint64, error) {
	var set uint64
	for item := range strings.SplitSeq(s, ",") {
		more, err := f.item(item, at)
		if err != nil {
			return 0, err
		}
		set |= more
		at += len(item) + 1
	}
	return set, nil
}

func (f field) item(s string, at int) (uint64, error) {
	span, step, stepped := strings.Cut(s, "/")
	low, high, err := f.span(span, stepped, at)
	if err != nil {
		return 0, err
	}
	by := 1
	if stepped {
		by, err = strconv.Atoi(step)
		if err != nil || by < 1 || by > f.high {
			return 0, &Error{
				at + len(span) + 1, fmt.Sprintf("%q is no step for the %s", step, f.name),
				fmt.Sprintf("write a number from 1 to %d", f.high),
			}
		}
	}
	var set uint64
	for n := low; n <= high; n += by {
		set |= 1 << n
	}
	return set, nil
}

// span reads * or a or a-b. With a step, a alone is the beginning of the rest.
func (f field) span(s string, stepped bool, at int) (low, high int, err error) {
	if s == "*" {
		return f.low, f.top(), nil
	}
	from, to, ranged := strings.Cut(s, "-")
	if low, err = f.number(from, at); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		if high, err = f.number(to, at+len(from)+1); err != nil {
			return 0, 0, err
		}
	case stepped:
		high = f.top()
	default:
		high = low
	}
	if f.high == 7 && low == 7 && high < 7 {
		low = 0 // 7-2 is sun-tue
	}
	if f.high == 7 && high == 0 && low > 0 {
		high = 7 // fri-sun
	}
	if high < low {
		return 0, 0, &Error{at, fmt.Sprintf("the range %q runs backwards", s), fmt.Sprintf("write %s-%d,%d-%s", from, f.top(), f.low, to)}
	}
	return low, high, nil
}

// top is the last number that * stands for.
func (f field) top() int {
	if f.high == 7 {
		return 6
	}
	return f.high
}

func (f field) number(s string, at int) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(s, name) {
			return f.low + i, nil
		}
	}
	n, err := strconv.Atoi(s)
	if err == nil && n >= f.low && n <= f.high && s[0] != '+' && s[0] != '-' {
		return n, nil
	}
	remedy := fmt.Sprintf("write a number from %d to %d", f.low, f.high)
	if f.names != nil {
		remedy += fmt.Sprintf(", or a name such as %s", f.names[1])
	}
	if strings.Contains(s, "?") {
		remedy = "write *"
	}
	return 0, &Error{at, fmt.Sprintf("%q is no %s", s, f.name), remedy}
}
