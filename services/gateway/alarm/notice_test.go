package alarm_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/analyst/notice"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
)

func TestTheLogHasTheNoticesOfATeamTheNewestFirst(t *testing.T) {
	w := newFixture(t)
	about := func(ids ...string) (all []incident.Incident) {
		for _, id := range ids {
			all = append(all, incident.Incident{ID: id})
		}
		return all
	}
	w.putNotice("mail", 1, notice.Sent, notice.Notice{Namespace: "default", Incidents: about(rateID, latencyID)})
	w.putNotice("chat", 2, notice.Refused, notice.Notice{Namespace: "default", Incidents: about(latencyID)})
	w.putNotice("mail", 3, notice.Waiting, notice.Notice{Namespace: "default", Group: "g-rates", Incidents: about("worst"), More: 11})
	w.putNotice("mail", 4, notice.Sent, notice.Notice{Namespace: "other", Incidents: about(rateID)})
	w.putNotice("mail", 5, notice.Sent, notice.Notice{Test: true})
	for name, c := range map[string]struct {
		filter alarm.NoticeFilter
		want   string
	}{
		"all":                      {alarm.NoticeFilter{}, "mail/n05 mail/n03 chat/n02 mail/n01"},
		"to a receiver":            {alarm.NoticeFilter{Receiver: "mail"}, "mail/n05 mail/n03 mail/n01"},
		"to a receiver that isn't": {alarm.NoticeFilter{Receiver: "mai"}, ""},
		"about an incident":        {alarm.NoticeFilter{Incident: rateID[:7]}, "mail/n03 mail/n01"},
		"about another":            {alarm.NoticeFilter{Incident: failedID}, ""},
		"that were not sent":       {alarm.NoticeFilter{Statuses: []string{"waiting", "refused"}}, "mail/n03 chat/n02"},
		"of an unknown status":     {alarm.NoticeFilter{Statuses: []string{"lost"}}, `field: statuses "lost" is unknown: use waiting, sent, refused, muted, summed`},
		"about no incident":        {alarm.NoticeFilter{Incident: "qqqqqq"}, "missing: incident qqqqqq of team default does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.log(c.filter); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
