package kibana

// over are the incidents that are resolved or dismissed.
func over() []tree { return []tree{{"term": tree{"incident.over": true}}} }

// states gives each state of an incident the colour that it has everywhere.
func states() tree {
	return tree{
		"field": "state", "type": "nominal", "title": "state",
		"scale": tree{
			"domain": []string{"firing", "acknowledged", "confirming", "suspected", "resolved", "dismissed"},
			"range":  []string{"#cc5642", "#e7664c", "#d6bf57", "#f1d86f", "#209280", "#98a2b3"},
		},
	}
}

func openIncidents() Panel {
	p := incidentsByTask("alarms-open", "Incidents that are open, by task")
	p.Not = over()
	return p
}

func incidentsByTask(id, title string) Panel {
	return Panel{
		ID: id, Title: title, Index: Incidents, Answer: "aggregations.task.buckets",
		Body: tree{"size": 0, "aggs": tree{"task": terms("run.task", 20, tree{"state": terms("incident.state", 6, nil)})}},
		Draw: tree{
			"transform": []tree{flatten("state.buckets", "s"), compute("state", "datum.s.key"), compute("incidents", "datum.s.doc_count")},
			"mark":      "bar",
			"encoding": tree{
				"y": tree{"field": "key", "type": "nominal", "title": "task", "sort": "-x"},
				"x": quantitative("incidents", "incidents"), "color": states(),
			},
		},
	}
}

func openedIncidents() Panel {
	return Panel{
		ID: "alarms-opened", Title: "Incidents by cause", Index: Incidents, Answer: "aggregations.over.buckets",
		Body: tree{"size": 0, "aggs": tree{"over": overTime(tree{"cause": tree{"terms": tree{
			"field": "incident.cause",
			"size":  6, "missing": "none",
		}}})}},
		Draw: tree{
			"transform": []tree{
				flatten("cause.buckets", "c"), compute("cause", "datum.c.key"), compute("incidents", "datum.c.doc_count"),
				compute("time", "toDate(datum.key)"),
			},
			"mark": "bar",
			"encoding": tree{
				"x": temporal("time", "first seen"), "y": quantitative("incidents", "incidents"),
				"color": nominal("cause", "cause"),
			},
		},
	}
}

func changes() Panel {
	return Panel{
		ID: "alarms-changes", Title: "How large changes were", Index: Incidents,
		Only: []tree{{"exists": tree{"field": "value.magnitude"}}}, Answer: "hits.hits",
		Body: tree{"size": 1000, "sort": []tree{{"@timestamp": "desc"}}, "_source": []string{
			"@timestamp", "incident.id", "incident.state", "incident.message", "run.task", "metric.name", "value.magnitude",
		}},
		Draw: tree{
			"transform": []tree{
				compute("time", "toDate(datum._source['@timestamp'])"), compute("percent", "100 * datum._source.value.magnitude"),
				compute("state", "datum._source.incident.state"), compute("message", "datum._source.incident.message"),
				compute("id", "datum._source.incident.id"),
			},
			"mark": tree{"type": "point", "filled": true, "size": 60},
			"encoding": tree{
				"x": temporal("time", "first seen"), "y": quantitative("percent", "change in %"), "color": states(),
				"tooltip": []tree{nominal("message", "incident"), nominal("id", "ID")},
			},
		},
	}
}
