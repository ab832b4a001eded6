// Package kibana makes what Kibana shows of the platform: data views, saved
// searches, and dashboards whose panels are Vega-Lite, each with the query whose
// answer it draws. Everything has an ID of its own, so that importing it again
// replaces what was there.
//
// The form of saved objects is that of Kibana 8.19's import API; the query of a
// panel is Kibana's extension of Vega's url
// (elastic.co/guide/en/kibana/8.19/vega.html).
package kibana
