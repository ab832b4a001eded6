package extract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// AppendLine appends a sample to dst as a line that Emitted reads, with its line feed. Equal samples give equal lines. Seq and Sub are not
// written.
func AppendLine(dst []byte, s *event.Sample) []byte {
	dst = append(appendText(append(dst, '{'), s.Name), ": "...)
	if v := s.Float(); math.IsNaN(v) || math.IsInf(v, 0) {
		dst = appendText(dst, s.Special)
	} else {
		dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	if s.Time > 0 {
		dst = fmt.Appendf(dst, `, "%s": %d.%09d`, KeyTime, s.Time/1e9, s.Time%1e9)
	}
	if s.Step != nil {
		dst = fmt.Appendf(dst, `, "%s": %d`, KeyStep, *s.Step)
	}
	if s.Unit != "" {
		dst = appendText(fmt.Appendf(dst, `, "%s": `, KeyUnit), s.Unit)
	}
	if len(s.Labels) > 0 {
		dst = fmt.Appendf(dst, `, "%s": `, KeyLabels)
		before := byte('{')
		for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
			dst = appendText(append(dst, before), k)
			dst = appendText(append(dst, ": "...), s.Labels[k])
			before = ','
		}
		dst = append(dst, '}')
	}
	if s.Direction != "" {
		dst = appendText(fmt.Appendf(dst, `, "%s": `, KeyDirection), s.Direction)
	}
	return append(dst, "}\n"...)
}

// appendText appends a JSON string. Invalid UTF-8 is replaced.
func appendText(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return append(dst, `""`...) // a string always encodes
	}
	return append(dst, b...)
}

// Fits reports whether a line may have a text as a label's name or value, or as a
// unit.
func Fits(text string) bool { return len(text) <= maxLabel }

// MaxLabels is how many labels a sample of a line has at most.
const MaxLabels = maxLabels
