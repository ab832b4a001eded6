package kibana

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Prefix is how the names of the platform's indices begin unless settings say
// otherwise.
const Prefix = "bai"

// A Dashboard is a named set of panels.
type Dashboard struct {
	ID, Title, About string
	From             string // how far back it looks at first: now-7d
	Panels           []Panel
	Searches         []string // IDs of saved searches below the panels
}

// Dashboards are all of them.
func Dashboards() []Dashboard {
	return []Dashboard{
		{
			ID: "run", Title: "Run", From: "now-24h", Panels: []Panel{phases(), environment(), overRunTime(), overSteps(), machine()},
			Searches: []string{"run-records", "run-results", "lines"},
			About:    "One run: what happened to it, where it ran, what it measured, what it wrote. Filter it by run.id; baictl get prints the link.",
		},
		{
			ID: "fleet", Title: "Fleet", From: "now-7d", Panels: []Panel{byOutcome(), durations(), byReason(), byOwner(), now()},
			Searches: []string{"run-records"},
			About:    "All runs: how they end, why they fail, who submits them, what waits, how long they take.",
		},
		{
			ID: "history", Title: "History of a benchmark", From: "now-90d", Panels: []Panel{history(), byMachine(), byVersion(), costs()},
			Searches: []string{"run-records"},
			About:    "The metrics of a benchmark over its runs, and their medians apart by machine and by version: the label of that name, else the image. Filter it by the runs of one task, or by metric.name.",
		},
		{
			ID: "alarms", Title: "Alarms", From: "now-90d",
			Panels:   []Panel{openIncidents(), openedIncidents(), changes(), incidentsByTask("alarms-tasks", "All incidents, by task")},
			Searches: []string{"incidents"},
			About:    "What alarms have found: which incidents are open, when they were first seen, how large changes were, and which tasks have many. Filter it by run.namespace, run.task or metric.name.",
		},
		{
			ID: "compare", Title: "Compare", From: "now-90d", Panels: []Panel{compare()}, Searches: []string{"run-records"},
			About: "Metrics of a few runs beside each other. Filter it: run.id : (ONE or OTHER).",
		},
	}
}

// object is a saved object.
type object struct {
	Type       string      `json:"type"`
	ID         string      `json:"id"`
	Attributes tree        `json:"attributes"`
	References []reference `json:"references"`
	Core       string      `json:"coreMigrationVersion"`
	Version    string      `json:"typeMigrationVersion"`
}

type reference struct {
	Name string `json:"name"`
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Objects returns all saved objects for indices whose names begin with prefix, a
// line of JSON each, as Kibana's import takes them.
func Objects(prefix string) ([]byte, error) {
	m := objectBuilder{prefix: prefix}
	objects := append(m.views(), m.searches()...)
	for _, d := range Dashboards() {
		for _, p := range d.Panels {
			v, err := m.panel(p)
			if err != nil {
				return nil, err
			}
			objects = append(objects, v)
		}
		o, err := m.dashboard(d)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	for _, o := range objects {
		o.Core = "8.8.0"
		if o.References == nil {
			o.References = []reference{}
		}
		if err := e.Encode(o); err != nil {
			return nil, fmt.Errorf("write %s %s: %w", o.Type, o.ID, err)
		}
	}
	return out.Bytes(), nil
}

type objectBuilder struct{ prefix string }

// id returns that of an object.
func (m objectBuilder) id(name string) string { return m.prefix + "-" + name }

// view is the ID of the data view of an index.
func (m objectBuilder) view(i Index) string {
	name := string(i)
	if n := len(name); name[n-1] == '*' {
		name = name[:n-2]
	}
	return m.id("view-" + name)
}

func (m objectBuilder) views() []object {
	var out []object
	for _, v := range []struct {
		index Index
		name  string
	}{
		{Runs, "runs"},
		{Status, "what happened to runs"},
		{Metrics, "samples"},
		{Logs, "lines"},
		{Results, "results"},
		{Incidents, "incidents"},
	} {
		out = append(out, object{Type: "index-pattern", ID: m.view(v.index), Version: "8.0.0", Attributes: tree{
			"title": m.prefix + "-" + string(v.index), "name": "Benchmark AI: " + v.name, "timeFieldName": "@timestamp",
		}})
	}
	return out
}

func (m objectBuilder) searches() []object {
	return []object{
		m.search("run-records", "Runs", Runs, []string{
			"run.id", "run.name", "run.task", "run.owner", "run.phase", "run.outcome",
			"run.class", "run.reason", "run.message", "run.duration",
		}, "desc"),
		m.search("run-results", "What runs came to, and where they ran", Results,
			[]string{
				"metric.name", "metric.unit", "n", "value.median", "value.low", "value.high", "complete", "machine.name",
				"machine.fingerprint", "run.version", "run.attempt", "labels",
			}, "desc"),
		m.search("incidents", "Incidents", Incidents, []string{
			"incident.state", "run.namespace", "run.task", "metric.name", "incident.message", "incident.cause", "run.version",
			"good.version", "incident.id",
		}, "desc"),
		m.search("lines", "Lines", Logs, []string{"source.role", "source.index", "log.error", "message"}, "asc"),
	}
}

func (m objectBuilder) search(id, title string, index Index, columns []string, order string) object {
	const ref = "kibanaSavedObjectMeta.searchSourceJSON.index"
	return object{
		Type: "search", ID: m.id(id), Version: "8.0.0",
		References: []reference{{Name: ref, Type: "index-pattern", ID: m.view(index)}},
		Attributes: tree{
			"title": "Benchmark AI: " + title, "description": "", "columns": columns, "sort": [][]string{{"@timestamp", order}},
			"kibanaSavedObjectMeta": source(ref),
		},
	}
}

// source is the query of an object, which asks for everything.
func source(index string) tree {
	text := `{"query":{"query":"","language":"kuery"},"filter":[]`
	if index != "" {
		text += `,"indexRefName":` + strconv.Quote(index)
	}
	return tree{"searchSourceJSON": text + "}"}
}

func (m objectBuilder) panel(p Panel) (object, error) {
	spec, err := text(p.spec(m.prefix))
	if err != nil {
		return object{}, fmt.Errorf("panel %s: %w", p.ID, err)
	}
	state, err := text(tree{"title": p.Title, "type": "vega", "aggs": []any{}, "params": tree{"spec": spec}})
	return object{Type: "visualization", ID: m.id(p.ID), Version: "8.5.0", Attributes: tree{
		"title": "Benchmark AI: " + p.Title, "description": "", "version": 1, "visState": state, "uiStateJSON": "{}",
		"kibanaSavedObjectMeta": source(""),
	}}, err
}

// A dashboard is width units wide; two panels lie beside each other, searches
// take the whole width.
const (
	width  = 48
	height = 15
)

func (m objectBuilder) dashboard(d Dashboard) (object, error) {
	var panels []tree
	var refs []reference
	add := func(kind, id, title string, x, y, w int) {
		n := strconv.Itoa(len(panels) + 1)
		panels = append(panels, tree{
			"version": "8.19.0", "type": kind, "panelIndex": n, "panelRefName": "panel_" + n, "title": title,
			"gridData": tree{"x": x, "y": y, "w": w, "h": height, "i": n}, "embeddableConfig": tree{"enhancements": tree{}},
		})
		refs = append(refs, reference{Name: n + ":panel_" + n, Type: kind, ID: m.id(id)})
	}
	y, each := 0, width
	if len(d.Panels) > 1 {
		each = width / 2
	}
	for i, p := range d.Panels {
		column := i % (width / each)
		add("visualization", p.ID, p.Title, column*each, y, each)
		if column == width/each-1 || i == len(d.Panels)-1 {
			y += height
		}
	}
	for _, s := range d.Searches {
		add("search", s, "", 0, y, width)
		y += height
	}
	list, err := text(panels)
	return object{Type: "dashboard", ID: m.id(d.ID), Version: "8.7.0", References: refs, Attributes: tree{
		"title": "Benchmark AI: " + d.Title, "description": d.About, "version": 1, "panelsJSON": list,
		"optionsJSON": `{"useMargins":true,"syncColors":false,"hidePanelTitles":false}`,
		"timeRestore": true, "timeFrom": d.From, "timeTo": "now", "kibanaSavedObjectMeta": source(""),
	}}, err
}

// text returns JSON as the text that it is within other JSON.
func text(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return string(bytes.TrimSpace(out.Bytes())), err
}
