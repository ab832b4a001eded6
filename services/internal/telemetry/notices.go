package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// noticeStats are the numbers of incidents and notices.
type noticeStats struct {
	incidents *prometheus.GaugeVec
	notices   *prometheus.CounterVec
	waiting   *prometheus.GaugeVec
}

func newNoticeStats(r prometheus.Registerer) noticeStats {
	s := noticeStats{
		incidents: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bai_incidents", Help: "Incidents in each state, of those that are open or ended less than three days ago; absent in processes that do not count them.",
		}, []string{"state"}),
		notices: counter("bai_notices_total", "Notices that were sent, refused, muted, or summed up in a digest.", "receiver", "became"),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bai_notice_waiting_seconds",
			Help: "Age of the oldest notice of a receiver that waits, 0 if none does; absent in processes that do not send to the receiver.",
		}, []string{"receiver"}),
	}
	r.MustRegister(s.incidents, s.notices, s.waiting)
	return s
}

// RecordIncidents implements analyst.Meter.
func (t *Telemetry) RecordIncidents(states map[string]int) {
	t.notice.incidents.Reset()
	for state, n := range states {
		t.notice.incidents.WithLabelValues(state).Set(float64(n))
	}
}

// RecordNotice implements dispatch.Meter.
func (t *Telemetry) RecordNotice(receiver, became string) {
	t.notice.notices.WithLabelValues(receiver, became).Inc()
}

// RecordWaiting implements dispatch.Meter.
func (t *Telemetry) RecordWaiting(receiver string, age time.Duration) {
	if age < 0 {
		t.notice.waiting.DeleteLabelValues(receiver)
		return
	}
	t.notice.waiting.WithLabelValues(receiver).Set(age.Seconds())
}
