package exitcode

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// FailureText is why a run failed: reason, whose fault, the platform's words.
func FailureText(reason string, class baiv1.FailureClass, message string) string {
	var s strings.Builder
	s.WriteString(reason)
	if word := printer.Word(class); word != "" {
		s.WriteString(" (" + word + ")")
	}
	if message != "" {
		s.WriteString(": " + message)
	}
	return strings.TrimPrefix(strings.TrimSpace(s.String()), ": ")
}

// CompletenessText lists the stored and the missing data of a run.
func CompletenessText(c *baiv1.Completeness) string {
	if c == nil {
		return "the platform does not say what is there"
	}
	parts := []string{StoredText(c)}
	if n := c.GetMissing(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d missing", n))
	}
	if awaited := c.GetAwaited(); len(awaited) > 0 {
		parts = append(parts, "awaited: "+strings.Join(awaited, ", "))
	}
	return strings.Join(parts, "; ")
}

// StoredText counts the stored data of a run.
func StoredText(c *baiv1.Completeness) string {
	text := fmt.Sprintf("%s, %s", printer.Plural(int(c.GetSamples()-c.GetSystemSamples()), "sample"),
		printer.Plural(int(c.GetLines()), "line"))
	if n := c.GetSystemSamples(); n > 0 {
		text += fmt.Sprintf(", %s of the system", printer.Plural(int(n), "sample"))
	}
	if n := c.GetDropped(); n > 0 {
		text += fmt.Sprintf(", %s dropped", printer.Plural(int(n), "line"))
	}
	return text
}
