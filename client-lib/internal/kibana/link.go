package kibana

import (
	"net/url"
	"strings"
	"time"
)

// Link returns where a Kibana shows a run: its dashboard, filtered to the run,
// over the time from its submission to a little after its end, or to now for one
// that is not over.
func Link(base, prefix, run string, from, to time.Time) string {
	until := "now"
	if !to.IsZero() {
		until = "'" + stamp(to.Add(time.Minute)) + "'"
	}
	g := "(time:(from:'" + stamp(from.Add(-time.Minute)) + "',to:" + until + "))"
	a := "(query:(language:kuery,query:'run.id:\"" + run + "\"'))"
	return strings.TrimSuffix(base, "/") + "/app/dashboards#/view/" + prefix + "-run?_g=" + url.QueryEscape(g) + "&_a=" + url.QueryEscape(a)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
