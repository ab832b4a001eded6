package incident

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// WithAck returns the incident with what a user said of it. An acknowledgement that it has
// already, or an earlier one, changes nothing, and neither does one of an incident that is
// over. Accept and Wrong end the incident.
func WithAck(i Incident, a Ack) Incident {
	if i.State.Over() || i.Acked != nil && !a.At.After(i.Acked.At) {
		return i
	}
	state := Acknowledged
	switch {
	case a.Wrong:
		state = Dismissed
	case a.Accept:
		state = Resolved
	}
	i.Acked = &a
	i.Worst = i.Size()
	i = i.With(Transition{State: state, At: a.At, By: a.By, Why: a.Reason})
	i.Updated = a.At
	return i
}

// With returns the incident after a transition. The incident that it is called on keeps its
// transitions.
func (i Incident) With(t Transition) Incident {
	i.State = t.State
	i.Became = append(slices.Clip(slices.Clone(i.Became)), t)
	return i
}

// Size returns how far the incident is from what is good, as a share: the absolute value of
// Magnitude, or 0 without one.
func (i Incident) Size() float64 {
	if i.Magnitude == nil {
		return 0
	}
	return max(float64(*i.Magnitude), -float64(*i.Magnitude))
}

// Since returns when the incident came into its state.
func (i Incident) Since() time.Time {
	if len(i.Became) == 0 {
		return i.Opened
	}
	return i.Became[len(i.Became)-1].At
}

// ByWorst orders incidents: the largest first, of equal ones the one with the smaller ID.
func ByWorst(a, b Incident) int {
	return cmp.Or(cmp.Compare(b.Size(), a.Size()), cmp.Compare(a.ID, b.ID))
}

// WithID returns the rule with the ID that follows from what it watches. Neither receivers nor
// Since nor Confirm are part of it.
func (r Rule) WithID() Rule {
	key := r
	key.ID, key.Notify, key.Since, key.Confirm = "", nil, time.Time{}, nil
	text, _ := json.Marshal(key) // numbers of rules are finite
	sum := sha256.Sum256(text)
	r.ID = hex.EncodeToString(sum[:16])
	return r
}

// Renew returns the rules of a newer descriptor: those that the set has already keep their
// Since.
func (s RuleSet) Renew(rules []Rule) []Rule {
	next := slices.Clone(rules)
	for i, r := range next {
		old := slices.IndexFunc(s.Rules, func(o Rule) bool { return o.ID == r.ID })
		if old >= 0 && s.Rules[old].Since.Before(r.Since) {
			next[i].Since = s.Rules[old].Since
		}
	}
	return next
}

// Has reports whether the set has the rule with an ID.
func (s RuleSet) Has(id string) bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.ID == id })
}

// ID returns the ID of an incident: 26 characters, the same for the same parts.
func ID(parts ...string) string {
	text, _ := json.Marshal(parts) // texts have no errors
	sum := sha256.Sum256(text)
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
