package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/golden"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

func TestTheMappingsAreThoseThatWereLookedAt(t *testing.T) {
	for _, i := range schema.Indices() {
		t.Run(i.Name, func(t *testing.T) {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetIndent("", "  ")
			if err := e.Encode(schema.Mapping(i)); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", "mappings", i.Name+".json"), b.Bytes())
		})
	}
}

// TestTheDataModelIsCurrent writes docs/data-model.md with GOLDEN=write.
func TestTheDataModelIsCurrent(t *testing.T) {
	golden.Check(t, filepath.Join("..", "..", "..", "..", "..", "docs", "data-model.md"), []byte(dataModel()))
}

func TestNoMappingTakesFieldsThatItDoesNotName(t *testing.T) {
	for _, i := range schema.Indices() {
		b, err := json.Marshal(schema.Mapping(i))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); strings.Contains(text, `"dynamic":"true"`) || strings.Count(text, `"dynamic":"strict"`) == 0 {
			t.Errorf("%s: %s: want dynamic: strict everywhere", i.Name, text)
		}
	}
}

// dataModel writes the mappings for people.
func dataModel() string {
	var b strings.Builder
	b.WriteString(strings.TrimLeft(fmt.Sprintf(preface, schema.Version), "\n"))
	for _, i := range schema.Indices() {
		name := "bai-" + i.Name
		if i.ByMonth {
			name += "-YYYY.MM"
		}
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n", name, i.Description)
		for _, f := range i.Fields {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Type, strings.TrimSuffix(f.Description, "."))
		}
	}
	return b.String()
}

const preface = `
<!-- Made of the mappings in services/internal/store/elastic/schema: cd services && GOLDEN=write go test ./internal/store/elastic/schema -run 'TestTheMappings|TestTheDataModel' -->

# Data model in Elasticsearch

The indices of the platform in Elasticsearch, mapping version %d. The names begin with ` + "`bai`" + ` unless ` + "`elasticsearch.prefix`" + ` says otherwise.

* **Mappings are strict**: a field that is not listed here is refused, so no benchmark can make a mapping grow. Labels are one flattened field. Their version is in ` + "`_meta.bai.version`" + `. A program adds missing fields to templates and indices of an older version, and refuses to work with a newer one.
* **Months**: indices by month are named by the time in the run's ID (UTC), not by the clock, so a repeated write finds its first copy. Documents of a run whose ID has no time are in ` + "`-other`" + `. To forget old runs, ` + "`bai admin store forget`" + ` deletes whole indices of a month, and the documents of ` + "`bai-runs`" + ` of the same age.
* **IDs** are derived from a document's subject, and documents are created, never overwritten (` + "`op_type: create`" + `), except those of ` + "`bai-docs` and `bai-runs`" + `, which are replaced by compare-and-set on sequence number and primary term, and ` + "`bai-results`" + `, where the points of a later revision replace those of an earlier one (external versions). The revision that counts is in the run's document of kind ` + "`points` in `bai-docs`" + `, which is written first: readers leave out points of another one.
* **Search**: a line is found by ` + "`tokens`" + `, which the platform makes itself, never by an analyzer of ` + "`message`" + `. Documents of versions before 3 have none.
* **Copies**: searches of one run's documents name the run as ` + "`preference`" + `, so that they see one copy of each shard.
* **Order**: all documents of one source are in one shard (routing: the source's ID) and are written in their order.
* **Long texts**: searchable texts are kept up to 1024 bytes; a longer one is replaced by its digest, ` + "`sha256:…`" + `. The whole text is in ` + "`doc`, `origin` or `exact`" + `.
* **Rights**: services need ` + "`monitor`, and on `bai-*` `create_index`, `read`, `write`, `view_index_metadata` and `maintenance`" + `; the program that sets up the store (services at their start, unless ` + "`elasticsearch.manual_setup`" + ` is set) also needs ` + "`manage_index_templates` and on `bai-*` `manage`" + `.
* **Sizes**: bulk requests are at most ` + "`writers` × `bulk_bytes`" + ` in flight for each process (4 × 2 MiB); keep the sum below 10 %% of the heap of a node.
`
