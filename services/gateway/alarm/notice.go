package alarm

import (
	"context"
	"slices"
	"time"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// NoticeFilter selects notices. Empty fields mean all.
type NoticeFilter struct {
	Receiver string
	Incident string // an ID, or the beginning of one
	Statuses []string
}

// Notices returns a page of the log of a team's notices, the newest first, and the token of the
// next page. Tests that belong to no team are in the log of each. The error is *FieldError or,
// for an incident that does not exist, *MissingError.
func (a *Alarms) Notices(ctx context.Context, namespace string, f NoticeFilter, p Page) ([]notice.Delivery, string, error) {
	if err := checkWords("statuses", f.Statuses,
		[]notice.Status{notice.Waiting, notice.Sent, notice.Refused, notice.Muted, notice.Summed}); err != nil {
		return nil, "", err
	}
	var about *incident.Incident
	if f.Incident != "" {
		i, err := a.Incident(ctx, namespace, f.Incident)
		if err != nil {
			return nil, "", err
		}
		about = &i
	}
	prefix := ""
	if f.Receiver != "" {
		prefix = f.Receiver + "/"
	}
	wanted := func(d notice.Delivery) bool {
		return isOfTeam(d.Notice, namespace) && (about == nil || isAbout(d.Notice, *about)) &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, string(d.Status)))
	}
	made := func(d notice.Delivery) time.Time { return d.Notice.Made }
	return newest(store.All[notice.Delivery](ctx, a.deps.Store, store.KindDelivery, prefix), made, wanted, p)
}

func isOfTeam(n notice.Notice, namespace string) bool {
	return n.Namespace == namespace || n.Test && n.Namespace == ""
}

// isAbout reports whether a notice is about an incident or its group. A notice names the worst
// incidents of a group only, and those that join the group later have no notice of their own.
func isAbout(n notice.Notice, i incident.Incident) bool {
	return slices.ContainsFunc(n.Incidents, func(one incident.Incident) bool { return one.ID == i.ID }) ||
		i.Group != "" && n.Group == i.Group
}
