package analysis

import "slices"

// Limits of a baseline.
const (
	maxReason        = 1024 // bytes
	maxRevisions     = 50
	maxRevisionsRuns = 5000 // of all revisions
)

// add makes a revision the newest one, unless the newest one has the same runs. The oldest
// revisions are dropped once there are too many.
func (b *Baseline) add(next BaselineRevision) (changed bool) {
	next.Number = 1
	if len(b.Revisions) > 0 {
		is := b.Revisions[0]
		if slices.Equal(is.Runs, next.Runs) && is.Set == next.Set && is.Reason == next.Reason {
			return false
		}
		next.Number = is.Number + 1
	}
	b.Revisions = slices.Insert(slices.Clone(b.Revisions), 0, next)
	runs := 0
	for i, r := range b.Revisions {
		if runs += len(r.Runs); i > 0 && (runs > maxRevisionsRuns || i >= maxRevisions) {
			b.Revisions = b.Revisions[:i]
			break
		}
	}
	return true
}
