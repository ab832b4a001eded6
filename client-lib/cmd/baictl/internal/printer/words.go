package printer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Word is an enum of the API in lower case: "running". It is empty for a value
// that says nothing.
func Word(e protoreflect.Enum) string {
	if e.Number() == 0 {
		return ""
	}
	return word(e.Descriptor(), e.Number())
}

// Parse is the value of an enum that Word calls so.
func Parse(e protoreflect.EnumDescriptor, text string) (protoreflect.EnumNumber, bool) {
	for i := 1; i < e.Values().Len(); i++ {
		if n := e.Values().Get(i).Number(); word(e, n) == text {
			return n, true
		}
	}
	return 0, false
}

// Words are the values that Parse accepts.
func Words(e protoreflect.EnumDescriptor) []string {
	var all []string
	for i := 1; i < e.Values().Len(); i++ {
		all = append(all, word(e, e.Values().Get(i).Number()))
	}
	return all
}

// Status is how a run stands in one word: its outcome, or else its phase.
func Status(run *baiv1.Run) string {
	if run.GetPhase() == baiv1.Phase_PHASE_FINISHED && run.GetOutcome() != 0 {
		return Word(run.GetOutcome())
	}
	return Word(run.GetPhase())
}

// Clean is text without characters that could corrupt a terminal or a table: control
// characters, line feeds, marks that change the direction of writing.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		default:
			return r
		}
	}, text)
}

// Safe is text in which characters that could corrupt a terminal are escaped as Go
// escapes them: \x1b, \r, \u202e. Tabs are kept.
func Safe(text string) string {
	if !strings.ContainsFunc(text, tricky) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if tricky(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func tricky(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// Name is a file's name as a user can see and type it: unchanged, or quoted as Go quotes
// it if it holds characters that Clean removes, or is such a quotation itself.
func Name(name string) string {
	if Clean(name) == name && !strings.HasPrefix(name, `"`) {
		return name
	}
	return strconv.Quote(name)
}

// Bytes is a number of bytes: "12.3 MB".
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1000, 0
	for ; value >= 999.95 && unit < 5; unit++ {
		value /= 1000
	}
	return fmt.Sprintf("%.1f %cB", value, "kMGTPE"[unit])
}

// Progress is how much is done: "1.0 MB of 4.0 MB".
func Progress(p *baiv1.Progress) string {
	if p == nil {
		return ""
	}
	say := func(n int64) string { return strconv.FormatInt(n, 10) }
	unit := " " + p.GetUnit()
	if p.GetUnit() == "bytes" {
		say, unit = Bytes, ""
	}
	if p.GetTotal() <= 0 {
		return Clean(say(p.GetDone()) + unit)
	}
	return Clean(say(p.GetDone()) + " of " + say(p.GetTotal()) + unit)
}

// Duration is a time span in the two units that matter: "1m23s". Spans that are
// negative, as between two clocks, are none.
func Duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d >= time.Millisecond && d < 100*time.Millisecond:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Floor(d.Seconds()*10)/10, 'f', -1, 64) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// Precise is Duration, with milliseconds below a second: "12ms".
func Precise(d time.Duration) string {
	if d > 0 && d < time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return Duration(d)
}

// Age is a time span in the one unit that matters: "3m".
func Age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// Time is a time in this machine's zone, RFC 3339; empty for none.
func Time(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format(time.RFC3339)
}

// Span is the time between two times, empty if one of them is not there.
func Span(from, to *timestamppb.Timestamp) string {
	if from == nil || to == nil {
		return ""
	}
	return Duration(to.AsTime().Sub(from.AsTime()))
}

// Labels are labels in order of their names: "a=1,b=2".
func Labels(labels map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, k+"="+labels[k])
	}
	return strings.Join(all, ",")
}

// LabelsKey is the same for equal labels, and for no others: two sets of labels may read alike.
func LabelsKey(labels map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(strconv.Quote(k) + "=" + strconv.Quote(labels[k]) + ",")
	}
	return b.String()
}

// Exact is a value that is read back as the same: "1234567.25".
func Exact(x float64) string {
	if size := math.Abs(x); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.FormatFloat(x, 'e', -1, 64)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// Number is a value with six digits that count: "1234.56".
func Number(x float64) string {
	size := math.Abs(x)
	if size != 0 && (size < 1e-4 || size >= 1e15) || math.IsNaN(x) || math.IsInf(x, 0) {
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	_, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', 5, 64), "e") // of the six digits
	power, _ := strconv.Atoi(exponent)
	text := strconv.FormatFloat(x, 'f', max(0, 5-power), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Money is an amount in a currency, with two digits after the point, or more below one: "1.53 USD".
func Money(amount float64, currency string) string {
	text := strconv.FormatFloat(amount, 'f', 2, 64)
	if amount < 1 {
		text = Number(amount)
	}
	return Clean(text + " " + currency)
}

// Fault is a fault of a descriptor on one line: file:line:col: path: message
// (remedy).
func Fault(f *baiv1.Fault) string {
	var s strings.Builder
	s.WriteString(f.GetFile())
	if f.GetLine() > 0 {
		fmt.Fprintf(&s, ":%d:%d", f.GetLine(), f.GetColumn())
	}
	if s.Len() > 0 { // faults of a request have no file
		s.WriteString(": ")
	}
	if f.GetPath() != "" {
		s.WriteString(f.GetPath() + ": ")
	}
	if f.GetWarning() {
		s.WriteString("warning: ")
	}
	s.WriteString(f.GetMessage())
	if f.GetRemedy() != "" {
		s.WriteString(" (" + f.GetRemedy() + ")")
	}
	return Clean(s.String())
}

// IsCode says whether a data set of a run is the code that was sent along.
func IsCode(d *baiv1.DataSet) bool { return strings.HasPrefix(d.GetSource(), "script:") }
