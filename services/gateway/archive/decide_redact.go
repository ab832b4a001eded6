package archive

import (
	"regexp"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// redactedText replaces a secret.
const redactedText = "redacted"

// patterns returns the patterns that match secrets: the user in a URL, and parameters
// with names such as token or signature, which services use to sign or authorise a
// request.
func patterns() (user, parameter *regexp.Regexp) {
	return regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)([^/\s"'@<>?#]+)@`),
		regexp.MustCompile(`(?i)([?&;](?:[a-z0-9_.%-]*(?:token|secret|passw(?:or)?d|signature|credentials?|(?:api|access|secret)[_.-]?key(?:id)?)|sig|jwt|auth|authorization|pwd|pass)=)[^&;#\s"'<>]+`)
}

// redact returns a text without the credentials in its URLs. Redacting a text again
// changes nothing.
func redact(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	user, parameter := patterns()
	text = user.ReplaceAllStringFunc(text, func(found string) string {
		scheme, user, _ := strings.Cut(strings.TrimSuffix(found, "@"), "://")
		if !strings.Contains(user, ":") && !strings.HasPrefix(strings.ToLower(scheme), "http") {
			return found // only a user name, as in ssh://git@host
		}
		return scheme + "://" + redactedText + "@"
	})
	return parameter.ReplaceAllString(text, "${1}"+redactedText)
}

// redactRun returns a run without the credentials that its texts may have.
func redactRun(r store.Run) store.Run {
	r.Descriptor = redact(r.Descriptor)
	r.Overrides = slices.Clone(r.Overrides)
	for i, o := range r.Overrides {
		r.Overrides[i] = event.Override{Path: o.Path, Value: redact(o.Value)}
	}
	r.Data = slices.Clone(r.Data)
	for i := range r.Data {
		r.Data[i].Source = redact(r.Data[i].Source)
	}
	r.Message = redact(r.Message)
	r.Description = redact(r.Description)
	return r
}
