package rule

import "github.com/benchmark-ai/bai/services/analyst/incident"

// asksForRuns reports whether runs are to confirm an incident, and there are two to repeat.
func (w *decision) asksForRuns(i incident.Incident, e episode) bool {
	return w.in.Rule.Confirm != nil && !i.Silent && verdictOf(i) == "" && e.first > 0 &&
		w.rows[e.first-1].Run != "" && w.rows[e.last].Run != ""
}

// verdictOf returns what runs said of an incident; empty if they have not, or were not made.
func verdictOf(i incident.Incident) incident.Verdict {
	if i.Confirmation == nil {
		return ""
	}
	return i.Confirmation.Verdict
}

// confirmed returns an incident that is confirming, by the verdict of the runs.
func (w *decision) confirmed(i incident.Incident, e episode) incident.Incident {
	switch verdictOf(i) {
	case "":
		if w.in.Rule.Confirm == nil { // the newest descriptor asks for none
			return w.unconfirmed(i, e)
		}
	case incident.VerdictNoise:
		return i.With(w.transition(incident.Dismissed, i.Confirmation.Why))
	case incident.VerdictConfirmed, incident.VerdictEnvironment:
		i.Worst = i.Size()
		return i.With(w.transition(incident.Firing, i.Confirmation.Why))
	case incident.VerdictInsufficient:
		return w.unconfirmed(i, e)
	}
	return i
}

// unconfirmed returns an incident of which runs say nothing: the points alone judge it.
func (w *decision) unconfirmed(i incident.Incident, e episode) incident.Incident {
	if e.sure {
		i.Worst = i.Size()
		return i.With(w.transition(incident.Firing, i.Message))
	}
	return i.With(w.transition(incident.Suspected, "the runs do not tell: one more point has to show it"))
}
