package verdict

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Because is why a run failed: reason, whose fault, the platform's words.
func Because(reason string, class baiv1.FailureClass, message string) string {
	var s strings.Builder
	s.WriteString(reason)
	if word := show.Word(class); word != "" {
		s.WriteString(" (" + word + ")")
	}
	if message != "" {
		s.WriteString(": " + message)
	}
	return strings.TrimPrefix(strings.TrimSpace(s.String()), ": ")
}

// Missing says which data of a run are there, and which are not.
func Missing(c *baiv1.Completeness) string {
	if c == nil {
		return "the platform does not say what is there"
	}
	said := []string{Stored(c)}
	if n := c.GetMissing(); n > 0 {
		said = append(said, fmt.Sprintf("%d missing", n))
	}
	if awaited := c.GetAwaited(); len(awaited) > 0 {
		said = append(said, "awaited: "+strings.Join(awaited, ", "))
	}
	return strings.Join(said, "; ")
}

// Stored says how many data of a run are there.
func Stored(c *baiv1.Completeness) string {
	text := fmt.Sprintf("%s, %s", Plural(int(c.GetSamples()-c.GetSystemSamples()), "sample"), Plural(int(c.GetLines()), "line"))
	if n := c.GetSystemSamples(); n > 0 {
		text += fmt.Sprintf(", %s of the system", Plural(int(n), "sample"))
	}
	if n := c.GetDropped(); n > 0 {
		text += fmt.Sprintf(", %s dropped", Plural(int(n), "line"))
	}
	return text
}

// Plural is a number of things: "1 fault", "2 faults".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
