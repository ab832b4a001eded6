package archive

import (
	"regexp"
	"slices"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// What takes the place of a secret.
const redactedText = "redacted"

// patterns are where a text may hold a secret: in a URL before its host, and in
// parameters whose names sound like it, by which clouds and services sign or grant
// a request.
func patterns() (user, parameter *regexp.Regexp) {
	return regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)([^/\s"'@<>?#]+)@`),
		regexp.MustCompile(`(?i)([?&;](?:[a-z0-9_.%-]*(?:token|secret|passw(?:or)?d|signature|credentials?|(?:api|access|secret)[_.-]?key(?:id)?)|sig|jwt|auth|authorization|pwd|pass)=)[^&;#\s"'<>]+`)
}

// redact returns a text without the credentials that its URLs hold. What has
// been redacted stays as it is.
func redact(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	user, parameter := patterns()
	text = user.ReplaceAllStringFunc(text, func(found string) string {
		scheme, user, _ := strings.Cut(strings.TrimSuffix(found, "@"), "://")
		if !strings.Contains(user, ":") && !strings.HasPrefix(strings.ToLower(scheme), "http") {
			return found // a name alone, as in ssh://git@host
		}
		return scheme + "://" + redactedText + "@"
	})
	return parameter.ReplaceAllString(text, "${1}"+redactedText)
}

// redactRun returns a run without the credentials that the user may have
// written into the descriptor.
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
	return r
}
