package alarm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
)

// Limits of requests.
const (
	minPrefix  = 6 // characters of an ID
	maxPrefix  = 26
	maxReason  = 1024 // bytes
	maxText    = 256  // bytes of a task, or of a key or value of a label
	maxLabels  = 32
	maxMutes   = 1000 // of a team that have not ended
	maxMuted   = 366 * 24 * time.Hour
	keepEnded  = 30 * 24 * time.Hour // so long an ended mute is kept
	maxTestKey = 128                 // bytes
)

// checkRef returns an ID, or the beginning of one, in lower case.
func checkRef(field, ref string) (string, error) {
	id := strings.ToLower(ref)
	if strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") != "" || len(id) < minPrefix || len(id) > maxPrefix {
		return "", &FieldError{
			Field: field, Message: fmt.Sprintf("%q is neither an ID nor the beginning of one", ref),
			Remedy: fmt.Sprintf("give the %d letters and digits of an ID, or at least its first %d", maxPrefix, minPrefix),
		}
	}
	return id, nil
}

func checkReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return &FieldError{Field: "reason", Message: "is missing", Remedy: "say why in a sentence"}
	case len(reason) > maxReason:
		return &FieldError{
			Field: "reason", Message: fmt.Sprintf("has %d bytes", len(reason)),
			Remedy: fmt.Sprintf("take at most %d", maxReason),
		}
	}
	return nil
}

// checkFuture refuses an end that is not after now.
func checkFuture(until, now time.Time) error {
	if until.After(now) {
		return nil
	}
	return &FieldError{
		Field: "until", Message: fmt.Sprintf("%s is not in the future", until.UTC().Format(time.RFC3339)),
		Remedy: "give a later time",
	}
}

// checkAck returns the fault of an acknowledgement.
func checkAck(ack incident.Ack) error {
	if err := checkReason(ack.Reason); err != nil {
		return err
	}
	switch {
	case ack.Accept && ack.Wrong:
		return &FieldError{Field: "accept", Message: "excludes wrong", Remedy: "accept a change that is real, or say that it is wrong"}
	case ack.Until.IsZero():
		return nil
	case ack.Accept || ack.Wrong:
		return &FieldError{Field: "until", Message: "has no meaning with accept and wrong, which end the incident", Remedy: "leave it out"}
	}
	return checkFuture(ack.Until, ack.At)
}

// nextAck returns the acknowledgement of an incident once somebody has said something of it,
// and whether that changes the earlier one. The incident is shown with the earlier one.
// An incident that fired again since can be acknowledged with the same words.
func nextAck(shown incident.Incident, is incident.Ack, found bool, ack incident.Ack) (next incident.Ack, changed bool, err error) {
	quiet := shown.State.Over() || shown.State == incident.Acknowledged
	if found && quiet && equalAcks(is, ack) {
		return is, false, nil
	}
	if shown.State.Over() {
		return is, false, &StateError{Message: fmt.Sprintf("incident %s is %s already: there is nothing to acknowledge", shown.ID,
			shown.State)}
	}
	if found && !ack.At.After(is.At) { // by the clock of another gateway
		ack.At = is.At.Add(time.Millisecond)
	}
	return ack, true, nil
}

// equalAcks reports whether the same user said the same.
func equalAcks(a, b incident.Ack) bool {
	return a.By == b.By && a.Reason == b.Reason && a.Until.Equal(b.Until) && a.Accept == b.Accept && a.Wrong == b.Wrong
}

// MuteRequest asks for a mute.
type MuteRequest struct {
	Namespace string
	Task      string
	Labels    map[string]string
	All       bool // all tasks, in place of a task and labels
	By        string
	Reason    string
	Until     time.Time
}

// newMute returns the mute that a request asks for. Its ID follows from the request, not from
// the time of it.
func newMute(r MuteRequest, now time.Time) (incident.Mute, error) {
	if err := r.check(now); err != nil {
		return incident.Mute{}, err
	}
	m := incident.Mute{Namespace: r.Namespace, Task: r.Task, Labels: r.Labels, By: r.By, Reason: r.Reason, Since: now, Until: r.Until.UTC()}
	m.ID = muteID(m)
	return m, nil
}

func (r MuteRequest) check(now time.Time) error {
	switch selects := r.Task != "" || len(r.Labels) > 0; {
	case !selects && !r.All:
		return &FieldError{
			Field: "task", Message: "and labels are missing",
			Remedy: "name a task, give labels, or say that all tasks are meant",
		}
	case selects && r.All:
		return &FieldError{Field: "all", Message: "excludes a task and labels", Remedy: "leave it out"}
	case strings.Contains(r.Namespace, "/") || len(r.Namespace) > maxText:
		return &FieldError{
			Field: "namespace", Message: fmt.Sprintf("%.40q is not the name of a team", r.Namespace),
			Remedy: "give a name without /",
		}
	case r.Until.IsZero():
		return &FieldError{Field: "until", Message: "is missing", Remedy: "say when the mute ends"}
	}
	if err := cmp.Or(r.checkSizes(), checkReason(r.Reason), checkFuture(r.Until, now)); err != nil {
		return err
	}
	if r.Until.Sub(now) > maxMuted {
		return &FieldError{
			Field: "until", Message: fmt.Sprintf("%s is too far in the future", r.Until.UTC().Format(time.RFC3339)),
			Remedy: fmt.Sprintf("end the mute within %d days, or remove the rule from the descriptor", int(maxMuted.Hours()/24)),
		}
	}
	return nil
}

func (r MuteRequest) checkSizes() error {
	if len(r.Task) > maxText {
		return &FieldError{
			Field: "task", Message: fmt.Sprintf("has %d bytes", len(r.Task)),
			Remedy: fmt.Sprintf("take at most %d", maxText),
		}
	}
	if len(r.Labels) > maxLabels {
		return &FieldError{
			Field: "labels", Message: fmt.Sprintf("has %d labels", len(r.Labels)),
			Remedy: fmt.Sprintf("take at most %d", maxLabels),
		}
	}
	for k, v := range r.Labels {
		if len(k) > maxText || len(v) > maxText || k == "" {
			return &FieldError{
				Field: "labels", Message: fmt.Sprintf("%.40q has no name or is too long", k+"="+v),
				Remedy: fmt.Sprintf("take at most %d bytes for each name and value", maxText),
			}
		}
	}
	return nil
}

// muteID returns an ID that follows from all of a mute but when it was made.
func muteID(m incident.Mute) string {
	parts := []string{"mute", m.Namespace, m.Task, m.By, m.Reason, m.Until.Format(time.RFC3339Nano)}
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		parts = append(parts, name, m.Labels[name])
	}
	return incident.ID(parts...)
}

// IncidentFilter selects incidents. Empty fields mean all.
type IncidentFilter struct {
	Task   string
	Metric string
	States []string
	Open   bool // only incidents that are not over
}

func (f IncidentFilter) check() error {
	known := []incident.State{
		incident.Suspected, incident.Confirming, incident.Firing, incident.Acknowledged,
		incident.Resolved, incident.Dismissed,
	}
	return checkWords("states", f.States, known)
}

// onlyOpen reports whether the filter selects no incident that is over.
func (f IncidentFilter) onlyOpen() bool {
	over := func(s string) bool { return incident.State(s).Over() }
	return f.Open || len(f.States) > 0 && !slices.ContainsFunc(f.States, over)
}

// selects reports whether the filter may select the incident of an entry of the index.
func (f IncidentFilter) selects(e incident.IndexEntry) bool {
	return (f.Task == "" || e.Task == f.Task) && (f.Metric == "" || e.Metric == f.Metric)
}

func (f IncidentFilter) matches(i incident.Incident) bool {
	return (f.Task == "" || i.Series.Task == f.Task) && (f.Metric == "" || i.Series.Metric == f.Metric) &&
		(len(f.States) == 0 || slices.Contains(f.States, string(i.State))) && (!f.Open || !i.State.Over())
}

// checkWords refuses words that are not among the known ones.
func checkWords[W ~string](field string, words []string, known []W) error {
	for _, word := range words {
		if !slices.Contains(known, W(word)) {
			texts := make([]string, len(known))
			for i, k := range known {
				texts[i] = string(k)
			}
			return &FieldError{Field: field, Message: fmt.Sprintf("%.40q is unknown", word), Remedy: "use " + strings.Join(texts, ", ")}
		}
	}
	return nil
}

// usable returns the names of the receivers that a team may use, sorted.
func usable(receivers map[string][]string, namespace string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(receivers)) {
		if teams := receivers[name]; len(teams) == 0 || slices.Contains(teams, namespace) {
			names = append(names, name)
		}
	}
	return names
}

// checkTest refuses the test of a receiver that is not among those that its team may use.
func checkTest(r TestRequest, names []string) error {
	switch {
	case r.Receiver == "":
		return &FieldError{Field: "receiver", Message: "is missing", Remedy: "name a receiver of the settings"}
	case len(r.Key) > maxTestKey:
		return &FieldError{
			Field: "idempotency_key", Message: fmt.Sprintf("has %d bytes", len(r.Key)),
			Remedy: fmt.Sprintf("take at most %d", maxTestKey),
		}
	case slices.Contains(names, r.Receiver):
		return nil
	}
	remedy := "it may use " + strings.Join(names, ", ")
	if len(names) == 0 {
		remedy = "it may use none: the settings of the platform have receivers"
	}
	return &MissingError{Message: fmt.Sprintf("receiver %.64q does not exist for team %s: %s", r.Receiver, r.Namespace, remedy)}
}
