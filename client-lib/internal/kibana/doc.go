// Package kibana makes Kibana's saved objects for the platform: data views, saved
// searches, and dashboards with Vega-Lite panels, each with its query. Every object has a
// fixed ID, so that a second import replaces it.
//
// The form of saved objects is that of Kibana 8.19's import API; the query of a
// panel is Kibana's extension of Vega's url
// (elastic.co/guide/en/kibana/8.19/vega.html).
package kibana
