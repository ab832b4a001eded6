package kibana

import "maps"

// tree is JSON.
type tree = map[string]any

// A Panel is one picture.
type Panel struct {
	ID    string
	Title string
	Index Index
	Only  []tree // queries that documents fit, beside the time and the filters of the dashboard
	Not   []tree // queries that they do not fit
	Body  tree   // the rest of the search
	// Answer is where in the answer the rows are.
	Answer string
	// Draw is the rest of the Vega-Lite specification.
	Draw tree
}

// Index is one of the platform's, as Kibana knows it.
type Index string

// The indices that are looked at; see docs/data-model.md.
const (
	Runs    Index = "runs"
	Status  Index = "status-*"
	Metrics Index = "metrics-*"
	Logs    Index = "logs-*"
	Results Index = "results-*"

	Incidents Index = "incidents"
)

const schema = "https://vega.github.io/schema/vega-lite/v5.json"

// spec returns the specification that Kibana is given.
func (p Panel) spec(prefix string) tree {
	// Kibana replaces the text between percent signs.
	must := []any{"%dashboard_context-must_clause%", tree{"range": tree{"@timestamp": tree{"%timefilter%": true}}}}
	filter, not := []any{"%dashboard_context-filter_clause%"}, []any{"%dashboard_context-must_not_clause%"}
	for _, q := range p.Only {
		filter = append(filter, q)
	}
	for _, q := range p.Not {
		not = append(not, q)
	}
	body := maps.Clone(p.Body)
	body["query"] = tree{"bool": tree{"must": must, "filter": filter, "must_not": not}}
	s := tree{
		"$schema": schema,
		"data":    tree{"url": tree{"index": prefix + "-" + string(p.Index), "body": body}, "format": tree{"property": p.Answer}},
	}
	maps.Copy(s, p.Draw)
	return s
}

// Parts of specifications.

func quantitative(field, title string) tree {
	return tree{"field": field, "type": "quantitative", "title": title}
}

// metricValue is a value of a metric, whose axis need not begin at zero.
func metricValue(field string) tree {
	return tree{"field": field, "type": "quantitative", "title": "value", "scale": tree{"zero": false}}
}

// system are the metrics that the platform itself takes of the machine.
func system() []tree { return []tree{{"prefix": tree{"metric.name": "system."}}} }

func nominal(field, title string) tree {
	return tree{"field": field, "type": "nominal", "title": title}
}

// temporal is a time in milliseconds.
func temporal(field, title string) tree {
	return tree{"field": field, "type": "temporal", "title": title}
}

func compute(as, expression string) tree { return tree{"calculate": expression, "as": as} }

func flatten(field, as string) tree { return tree{"flatten": []string{field}, "as": []string{as}} }

// overTime is an aggregation by time, in as many pieces as fit.
func overTime(aggs tree) tree {
	over := tree{"date_histogram": tree{"field": "@timestamp", "fixed_interval": tree{"%autointerval%": true}, "min_doc_count": 1}}
	if aggs != nil {
		over["aggs"] = aggs
	}
	return over
}

func terms(field string, size int, aggs tree) tree {
	t := tree{"terms": tree{"field": field, "size": size}}
	if aggs != nil {
		t["aggs"] = aggs
	}
	return t
}

func stat(kind, field string) tree { return tree{kind: tree{"field": field}} }

func percentiles(field string, percents ...float64) tree {
	return tree{"percentiles": tree{"field": field, "percents": percents, "keyed": true}}
}

// outcomes gives each outcome the colour that it has everywhere.
func outcomes() tree {
	return tree{
		"field": "outcome", "type": "nominal", "title": "outcome",
		"scale": tree{
			"domain": []string{"succeeded", "failed", "canceled", "not over"},
			"range":  []string{"#209280", "#cc5642", "#98a2b3", "#6092c0"},
		},
	}
}

func phases() Panel {
	return Panel{
		ID: "run-phases", Title: "Phases", Index: Status, Answer: "hits.hits",
		Body: tree{
			"size": 1000, "sort": []tree{{"@timestamp": "asc"}},
			"_source": []string{"@timestamp", "run.id", "run.phase", "message", "late"},
		},
		Draw: tree{
			"transform": []tree{
				compute("at", "toDate(datum._source['@timestamp'])"), compute("phase", "datum._source.run.phase"),
				compute("run", "datum._source.run.id"), compute("message", "datum._source.message"),
			},
			"mark": tree{"type": "point", "filled": true, "size": 60},
			"encoding": tree{
				"x": temporal("at", "time"),
				"y": tree{
					"field": "phase", "type": "nominal", "title": "phase",
					"sort": []string{"submitted", "fetching", "queued", "launching", "pending", "running", "canceling", "finished"},
				},
				"color":   nominal("run", "run"),
				"tooltip": []tree{nominal("message", "what happened"), temporal("at", "time")},
			},
		},
	}
}

// environment writes the machines of a run, in words and for programs, and its version or
// images. The platform stores the environment with the summaries, so a run without
// samples is missing.
func environment() Panel {
	known := func(field string) tree {
		return tree{"terms": tree{"field": field, "size": 5, "missing": "not known"}}
	}
	all := func(field string) string { return "join(pluck(datum." + field + ".buckets, 'key'), ', ')" }
	return Panel{
		ID: "run-environment", Title: "Environment", Index: Results, Answer: "aggregations.run.buckets",
		Body: tree{"size": 0, "aggs": tree{"run": terms("run.id", 10, tree{
			"machine": known("machine.name"), "fingerprint": known("machine.fingerprint"), "version": known("run.version"),
		})}},
		Draw: tree{
			"transform": []tree{
				compute("machine", all("machine")), compute("fingerprint", all("fingerprint")), compute("version", all("version")),
				{"fold": []string{"machine", "fingerprint", "version"}, "as": []string{"what", "is"}},
			},
			"facet":   tree{"field": "key", "type": "nominal", "title": nil},
			"columns": 1,
			"spec": tree{
				"width": 520, "height": tree{"step": 18},
				"mark": tree{"type": "text", "align": "left", "limit": 500},
				"encoding": tree{
					"x": tree{"value": 4},
					"y": tree{
						"field": "what", "type": "nominal", "title": nil,
						"sort": []string{"machine", "version", "fingerprint"},
					},
					"text":    nominal("is", ""),
					"tooltip": nominal("is", ""),
				},
			},
		},
	}
}

func overRunTime() Panel {
	p := overTimeOf("run-metrics-over-time", "Metrics over time")
	p.Not = system()
	return p
}

func machine() Panel {
	p := overTimeOf("run-machine-over-time", "What it used of the machine")
	p.Only = system()
	return p
}

func overTimeOf(id, title string) Panel {
	return Panel{
		ID: id, Title: title, Index: Metrics, Answer: "aggregations.metric.buckets",
		Body: tree{"size": 0, "aggs": tree{"metric": terms("metric.name", 12, tree{"over": overTime(tree{
			"low": stat("min", "metric.value"), "mean": stat("avg", "metric.value"), "high": stat("max", "metric.value"),
		})})}},
		Draw: small([]tree{
			flatten("over.buckets", "at"), compute("time", "toDate(datum.at.key)"),
			compute("mean", "datum.at.mean.value"), compute("low", "datum.at.low.value"), compute("high", "datum.at.high.value"),
		}, temporal("time", "time")),
	}
}

func overSteps() Panel {
	return Panel{
		ID: "run-metrics-over-steps", Title: "Metrics over steps", Index: Metrics, Only: []tree{{"exists": tree{"field": "metric.step"}}},
		Answer: "aggregations.metric.buckets",
		Body: tree{"size": 0, "aggs": tree{"metric": terms("metric.name", 12, tree{
			"over": tree{"terms": tree{"field": "metric.step", "size": 2000, "order": tree{"_key": "asc"}}, "aggs": tree{
				"low": stat("min", "metric.value"), "mean": stat("avg", "metric.value"), "high": stat("max", "metric.value"),
			}},
		})}},
		Draw: small([]tree{
			flatten("over.buckets", "at"), compute("step", "datum.at.key"),
			compute("mean", "datum.at.mean.value"), compute("low", "datum.at.low.value"), compute("high", "datum.at.high.value"),
		}, quantitative("step", "step")),
	}
}

// small draws each metric in a frame of its own: mean, and the range around it.
func small(transform []tree, x tree) tree {
	return tree{
		"transform": append(transform, tree{"filter": "isValid(datum.mean)"}),
		"facet":     tree{"field": "key", "type": "nominal", "title": nil},
		"columns":   3,
		"resolve":   tree{"scale": tree{"y": "independent"}},
		"spec": tree{
			"width": 260, "height": 120,
			"layer": []tree{
				{
					"mark":     tree{"type": "area", "opacity": 0.25},
					"encoding": tree{"x": x, "y": metricValue("low"), "y2": tree{"field": "high"}},
				},
				{"mark": tree{"type": "line", "point": true}, "encoding": tree{"x": x, "y": metricValue("mean")}},
			},
		},
	}
}

func byOutcome() Panel {
	return Panel{
		ID: "fleet-outcomes", Title: "Finished runs by outcome", Index: Runs, Only: []tree{{"exists": tree{"field": "run.outcome"}}},
		Answer: "aggregations.over.buckets",
		Body:   tree{"size": 0, "aggs": tree{"over": overTime(tree{"outcome": terms("run.outcome", 3, nil)})}},
		Draw: tree{
			"transform": []tree{
				flatten("outcome.buckets", "o"), compute("outcome", "datum.o.key"), compute("runs", "datum.o.doc_count"),
				compute("time", "toDate(datum.key)"),
			},
			"mark":     "bar",
			"encoding": tree{"x": temporal("time", "submitted"), "y": quantitative("runs", "runs"), "color": outcomes()},
		},
	}
}

func byReason() Panel {
	return Panel{
		ID: "fleet-reasons", Title: "Why runs failed", Index: Runs, Only: []tree{{"term": tree{"run.outcome": "failed"}}},
		Answer: "aggregations.reason.buckets",
		Body:   tree{"size": 0, "aggs": tree{"reason": terms("run.reason", 15, tree{"class": terms("run.class", 4, nil)})}},
		Draw: tree{
			"transform": []tree{flatten("class.buckets", "c"), compute("class", "datum.c.key"), compute("runs", "datum.c.doc_count")},
			"mark":      "bar",
			"encoding": tree{
				"y": tree{"field": "key", "type": "nominal", "title": "reason", "sort": "-x"}, "x": quantitative("runs", "runs"),
				"color": nominal("class", "whose fault"),
			},
		},
	}
}

func byOwner() Panel {
	return Panel{
		ID: "fleet-owners", Title: "Runs by who submitted them", Index: Runs, Answer: "aggregations.owner.buckets",
		Body: tree{"size": 0, "aggs": tree{"owner": terms("run.owner", 15,
			tree{"outcome": tree{"terms": tree{"field": "run.outcome", "missing": "not over"}}})}},
		Draw: tree{
			"transform": []tree{flatten("outcome.buckets", "o"), compute("outcome", "datum.o.key"), compute("runs", "datum.o.doc_count")},
			"mark":      "bar",
			"encoding": tree{
				"y": tree{"field": "key", "type": "nominal", "title": "who", "sort": "-x"}, "x": quantitative("runs", "runs"),
				"color": outcomes(),
			},
		},
	}
}

func now() Panel {
	return Panel{
		ID: "fleet-now", Title: "Runs that are not over, by phase", Index: Runs, Not: []tree{{"exists": tree{"field": "run.outcome"}}},
		Answer: "aggregations.phase.buckets",
		Body:   tree{"size": 0, "aggs": tree{"phase": terms("run.phase", 8, nil)}},
		Draw: tree{
			"mark": "bar",
			"encoding": tree{
				"y": tree{
					"field": "key", "type": "nominal", "title": "phase",
					"sort": []string{"submitted", "fetching", "queued", "launching", "pending", "running", "canceling"},
				},
				"x": quantitative("doc_count", "runs"),
			},
		},
	}
}

func durations() Panel {
	return Panel{
		ID: "fleet-durations", Title: "How long benchmarks ran", Index: Runs, Only: []tree{{"exists": tree{"field": "run.duration"}}},
		Answer: "aggregations.over.buckets",
		Body:   tree{"size": 0, "aggs": tree{"over": overTime(tree{"took": percentiles("run.duration", 50, 90)})}},
		Draw: tree{
			"transform": []tree{
				compute("time", "toDate(datum.key)"), compute("median", "datum.took.values['50.0']"),
				compute("p90", "datum.took.values['90.0']"),
				{"fold": []string{"median", "p90"}, "as": []string{"which", "seconds"}},
			},
			"mark":     tree{"type": "line", "point": true},
			"encoding": tree{"x": temporal("time", "submitted"), "y": quantitative("seconds", "seconds"), "color": nominal("which", "")},
		},
	}
}

// history draws each metric over the runs that measured it, oldest first: the
// median, and the middle half and nine tenths of the samples around it.
func history() Panel {
	return Panel{
		ID: "history-metrics", Title: "Metrics over runs: median, middle half, nine tenths", Index: Metrics, Not: system(),
		Answer: "aggregations.metric.buckets",
		Body: tree{"size": 0, "aggs": tree{"metric": terms("metric.name", 9, tree{"run": tree{
			"terms": tree{"field": "run.id", "size": 100, "order": tree{"first": "desc"}},
			"aggs":  tree{"first": stat("min", "@timestamp"), "v": percentiles("metric.value", 5, 25, 50, 75, 95)},
		}})}},
		Draw: tree{
			"transform": spread("run.buckets"),
			"facet":     tree{"field": "key", "type": "nominal", "title": nil},
			"columns":   2,
			"resolve":   tree{"scale": tree{"y": "independent"}},
			"spec": tree{
				"width": 400, "height": 160,
				"encoding": tree{"x": temporal("time", "run")},
				"layer": []tree{
					{"mark": tree{"type": "rule", "opacity": 0.4}, "encoding": tree{"y": metricValue("p5"), "y2": tree{"field": "p95"}}},
					{
						"mark":     tree{"type": "bar", "width": 6, "opacity": 0.5},
						"encoding": tree{"y": metricValue("p25"), "y2": tree{"field": "p75"}},
					},
					{"mark": tree{"type": "line", "point": true}, "encoding": tree{
						"y":       metricValue("median"),
						"tooltip": []tree{nominal("one", "run"), quantitative("median", "median")},
					}},
				},
			},
		},
	}
}

// historyBy draws the median of each metric, with its confidence interval, over the runs
// that measured it, split by a field: one point for each run and series that the platform
// has summarised.
func historyBy(id, title, field, label string) Panel {
	return Panel{
		ID: id, Title: title, Index: Results, Not: system(), Answer: "hits.hits",
		Body: tree{"size": 2000, "sort": []tree{{"@timestamp": "desc"}}, "_source": []string{
			"@timestamp", "run.id", "run.version",
			"machine.name", "metric", "n", "value.median", "value.low", "value.high",
		}},
		Draw: tree{
			"transform": []tree{
				compute("time", "toDate(datum._source['@timestamp'])"), compute("metric", "datum._source.metric.name"),
				compute("one", "datum._source.run.id"),
				compute("median", "datum._source.value.median"),
				{"filter": "isValid(datum.median)"},
				compute("low", "isValid(datum._source.value.low) ? datum._source.value.low : datum.median"),
				compute("high", "isValid(datum._source.value.high) ? datum._source.value.high : datum.median"),
				compute("by", field),
			},
			"facet":   tree{"field": "metric", "type": "nominal", "title": nil},
			"columns": 2,
			"resolve": tree{"scale": tree{"y": "independent"}},
			"spec": tree{
				"width": 400, "height": 160,
				"encoding": tree{
					"x": temporal("time", "run"),
					"color": tree{
						"field": "by", "type": "nominal", "title": label,
						"legend": tree{"orient": "bottom", "direction": "vertical", "labelLimit": 800},
					},
				},
				"layer": []tree{
					{"mark": tree{"type": "rule", "opacity": 0.6}, "encoding": tree{"y": metricValue("low"), "y2": tree{"field": "high"}}},
					{"mark": tree{"type": "line", "point": true}, "encoding": tree{
						"y":       metricValue("median"),
						"tooltip": []tree{nominal("one", "run"), nominal("by", label), quantitative("median", "median")},
					}},
				},
			},
		},
	}
}

func byMachine() Panel {
	return historyBy("history-machines", "Medians by machine", "datum._source.machine ? datum._source.machine.name : 'not known'",
		"machine")
}

func byVersion() Panel {
	return historyBy("history-versions", "Medians by version",
		"isValid(datum._source.run.version) ? datum._source.run.version : 'not said'", "version")
}

// spread splits each run's summaries of a metric.
func spread(field string) []tree {
	t := []tree{flatten(field, "r"), compute("one", "datum.r.key"), compute("time", "toDate(datum.r.first.value)")}
	for _, p := range [][2]string{{"p5", "5.0"}, {"p25", "25.0"}, {"median", "50.0"}, {"p75", "75.0"}, {"p95", "95.0"}} {
		t = append(t, compute(p[0], "datum.r.v.values['"+p[1]+"']"))
	}
	return append(t, tree{"filter": "isValid(datum.median)"})
}

// costs draws what runs cost, and their energy, over the runs of each machine.
func costs() Panel {
	p := historyBy("history-costs", "Cost and energy by machine", "datum._source.machine ? datum._source.machine.name : 'not known'",
		"machine")
	p.Only = []tree{{"bool": tree{
		"should":               []tree{{"prefix": tree{"metric.name": "cost."}}, {"prefix": tree{"metric.name": "energy."}}},
		"minimum_should_match": 1,
	}}}
	return p
}

// compare draws the same beside each other, for the few runs that the dashboard is
// filtered to.
func compare() Panel {
	return Panel{
		ID: "compare-metrics", Title: "Metrics by run", Index: Metrics, Not: system(), Answer: "aggregations.metric.buckets",
		Body: tree{"size": 0, "aggs": tree{"metric": terms("metric.name", 12, tree{"run": tree{
			"terms": tree{"field": "run.id", "size": 12, "order": tree{"first": "asc"}},
			"aggs":  tree{"first": stat("min", "@timestamp"), "v": percentiles("metric.value", 5, 25, 50, 75, 95)},
		}})}},
		Draw: tree{
			"transform": spread("run.buckets"),
			"facet":     tree{"field": "key", "type": "nominal", "title": nil},
			"columns":   2,
			"resolve":   tree{"scale": tree{"x": "independent"}},
			"spec": tree{
				"width": 320, "height": tree{"step": 18},
				"encoding": tree{
					"y":     tree{"field": "one", "type": "nominal", "title": nil},
					"color": tree{"field": "one", "type": "nominal", "legend": nil},
				},
				"layer": []tree{
					{"mark": tree{"type": "rule"}, "encoding": tree{"x": metricValue("p5"), "x2": tree{"field": "p95"}}},
					{"mark": tree{"type": "bar", "height": 8}, "encoding": tree{"x": metricValue("p25"), "x2": tree{"field": "p75"}}},
					{"mark": tree{"type": "tick", "thickness": 2, "color": "black"}, "encoding": tree{"x": metricValue("median")}},
				},
			},
		},
	}
}
