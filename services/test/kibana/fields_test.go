package kibana_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// object is a saved object, as far as it names fields.
type object struct {
	Type, ID   string
	Attributes struct {
		Title, TimeFieldName, VisState string

		Columns []string
		Sort    [][]string
		Meta    struct{ SearchSourceJSON string } `json:"kibanaSavedObjectMeta"`
	}
	References []struct{ Type, ID string }
}

// shipped are the objects that Kibana is given.
func shipped(t *testing.T) []object {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/kibana/benchmark-ai.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var o object
		if err := json.Unmarshal(s.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// A panel with a field that no document has is silently empty.
func TestEveryFieldThatIsLookedAtIsInTheMappings(t *testing.T) {
	views := map[string]string{} // the index by the ID of its data view
	for _, o := range shipped(t) {
		if o.Type == "index-pattern" {
			views[o.ID] = o.Attributes.Title
			wantMapped(t, o.ID, []string{o.Attributes.Title}, []string{o.Attributes.TimeFieldName})
		}
	}
	indices := map[string][]string{} // by the object that looks at them
	for _, o := range shipped(t) {
		fields := queried(t, o)
		switch o.Type {
		case "search":
			indices[o.ID] = []string{views[o.References[0].ID]}
			fields = append(fields, o.Attributes.Columns...)
			for _, by := range o.Attributes.Sort {
				fields = append(fields, by[0])
			}
		case "visualization":
			p := panelOf(t, o)
			indices[o.ID] = []string{p.index}
			fields = append(append(fields, searchFields(p.body)...), panelFields(t, p)...)
		case "dashboard":
			for _, r := range o.References {
				indices[o.ID] = append(indices[o.ID], indices[r.ID]...)
			}
		default:
			continue
		}
		if len(fields) == 0 && o.Type != "dashboard" {
			t.Errorf("%s looks at no field", o.ID)
		}
		wantMapped(t, o.ID, indices[o.ID], fields)
	}
}

// wantMapped checks that fields are in the mapping of one of some indices.
func wantMapped(t *testing.T, who string, indices, fields []string) {
	t.Helper()
	for _, field := range fields {
		if !slices.ContainsFunc(indices, func(index string) bool { return mapped(index, field) }) {
			t.Errorf("%s looks at %s, which %q have not", who, field, indices)
		}
	}
}

// mapped reports whether documents of an index have a field, or fields within it.
func mapped(index, field string) bool {
	for _, i := range schema.Indices() {
		if strings.TrimSuffix(strings.TrimPrefix(index, "bai-"), "-*") != i.Name {
			continue
		}
		return slices.ContainsFunc(i.Fields, func(f schema.Field) bool {
			return f.Name == field || strings.HasPrefix(f.Name, field+".") || f.Type == "flattened" && strings.HasPrefix(field, f.Name+".")
		})
	}
	return false
}

// queried are the fields that the query of an object names.
func queried(t *testing.T, o object) []string {
	t.Helper()
	var source struct {
		Query  struct{ Query, Language string }
		Filter []any
	}
	if err := json.Unmarshal([]byte(o.Attributes.Meta.SearchSourceJSON), &source); err != nil && o.Type != "index-pattern" {
		t.Fatalf("%s: %v", o.ID, err)
	}
	return append(kqlFields(source.Query.Query), searchFields(source.Filter)...)
}

var (
	quoted   = regexp.MustCompile(`"(\\.|[^"])*"`)
	compared = regexp.MustCompile(`([@\w.*-]+)\s*(?::|[<>]=?)`)
	sourced  = regexp.MustCompile(`\bdatum\._source((?:\.\w+|\['[^']+'\])+)`)
)

// kqlFields are the fields that are named in KQL.
func kqlFields(query string) (fields []string) {
	for _, m := range compared.FindAllStringSubmatch(quoted.ReplaceAllString(query, `""`), -1) {
		fields = append(fields, m[1])
	}
	return fields
}

// searchFields are the fields that a search, or a part of one, names.
func searchFields(part any) (fields []string) {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			fields = append(fields, searchFields(p)...)
		}
	case map[string]any:
		for key, value := range part {
			fields = append(append(fields, valueFields(key, value)...), searchFields(value)...)
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// valueFields are the fields that one key of a search names by its value.
func valueFields(key string, value any) (fields []string) {
	switch key {
	case "field":
		if name, ok := value.(string); ok {
			return []string{name}
		}
	case "_source", "sort":
		list, _ := value.([]any)
		for _, v := range list {
			if name, ok := v.(string); ok {
				fields = append(fields, name)
			}
			fields = append(fields, keys(v)...)
		}
	case "term", "terms", "prefix", "range", "match", "wildcard":
		if inner, ok := value.(map[string]any); ok && inner["field"] == nil {
			return keys(inner)
		}
	}
	return fields
}

func keys(v any) (all []string) {
	m, _ := v.(map[string]any)
	for key := range m {
		all = append(all, key)
	}
	return all
}

// panelFields are the fields of documents that a panel draws.
func panelFields(t *testing.T, p panel) (fields []string) {
	t.Helper()
	text, err := json.Marshal(p.draw)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range sourced.FindAllSubmatch(text, -1) {
		path := strings.NewReplacer("['", ".", "']", "").Replace(string(m[1]))
		fields = append(fields, strings.TrimPrefix(path, "."))
	}
	return fields
}

func TestTheFieldsOfSearchesAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		got  func() []string
		want []string
	}{
		"of queries, aggregations, sources and orders": {func() []string {
			var body any
			_ = json.Unmarshal([]byte(`{"_source": ["a.b"], "sort": [{"c": "asc"}, "d"], "query": {"bool": {"filter": [{"term": {"e": 1}}, {"exists": {"field": "f"}}]}},
				"aggs": {"x": {"terms": {"field": "g", "order": {"first": "desc"}}, "aggs": {"first": {"min": {"field": "h"}}}}}}`), &body)
			return searchFields(body)
		}, []string{"a.b", "c", "d", "e", "f", "g", "h"}},
		"of KQL, not what they are compared to": {func() []string {
			return kqlFields(`run.id : "a:b" and not metric.value >= 3 or labels.color: red`)
		}, []string{"run.id", "metric.value", "labels.color"}},
		"of what is drawn": {func() []string {
			return panelFields(t, panel{draw: map[string]any{"calculate": "toDate(datum._source['@timestamp']) + datum._source.run.id + datum.other"}})
		}, []string{"@timestamp", "run.id"}},
	} {
		if diff := cmp.Diff(tt.want, tt.got()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for field, want := range map[string]bool{"metric.name": true, "metric": true, "labels.any": true, "metric.names": false, "machine.name": false} {
		if mapped("bai-metrics-*", field) != want {
			t.Errorf("samples have %s: %v, want %v", field, !want, want)
		}
	}
}
