// Package sarif writes faults of descriptors in the form that editors and
// continuous integration read: SARIF 2.1.0.
package sarif

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const (
	schema  = "https://json.schemastore.org/sarif-2.1.0.json"
	version = "2.1.0"
)

type document struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []run  `json:"runs"`
}

type run struct {
	Tool       tool     `json:"tool"`
	ColumnKind string   `json:"columnKind"`
	Results    []result `json:"results"`
}

type tool struct {
	Driver driver `json:"driver"`
}

type driver struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Rules   []rule `json:"rules"`
}

type rule struct {
	ID    string `json:"id"`
	Short text   `json:"shortDescription"`
	Full  text   `json:"fullDescription"`
	Help  text   `json:"help"`
}

type text struct {
	Text string `json:"text"`
}

type result struct {
	RuleID    string     `json:"ruleId,omitempty"`
	RuleIndex *int       `json:"ruleIndex,omitempty"`
	Level     string     `json:"level"`
	Message   text       `json:"message"`
	Locations []location `json:"locations"`
}

type location struct {
	Physical physical `json:"physicalLocation"`
	Logical  []named  `json:"logicalLocations,omitempty"`
}

type physical struct {
	Artifact artifact `json:"artifactLocation"`
	Region   *region  `json:"region,omitempty"`
}

type named struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
}

type artifact struct {
	URI string `json:"uri"`
}

type region struct {
	StartLine   int32 `json:"startLine"`
	StartColumn int32 `json:"startColumn,omitempty"`
}

// Marshal is the faults as one document, in their order, found by baictl of a
// version.
func Marshal(by string, faults []*baiv1.Fault) (string, error) {
	r := run{Tool: tool{driver{Name: "baictl", Version: by, Rules: []rule{}}}, ColumnKind: "unicodeCodePoints", Results: []result{}}
	index := map[string]int{}
	for _, f := range faults {
		one := resultOf(f)
		if e, ok := parser.Explain(f.GetCode()); ok {
			if _, known := index[e.Code]; !known {
				index[e.Code] = len(r.Tool.Driver.Rules)
				r.Tool.Driver.Rules = append(r.Tool.Driver.Rules, rule{e.Code, text{e.Title}, text{e.Text}, text{help(e)}})
			}
			one.RuleID, one.RuleIndex = e.Code, new(index[e.Code])
		}
		r.Results = append(r.Results, one)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(document{schema, version, []run{r}}); err != nil {
		return "", fmt.Errorf("make SARIF: %w", err)
	}
	return b.String(), nil
}

func help(e parser.Explanation) string {
	if e.Mended == "" {
		return fmt.Sprintf("%s\n\nWrong:\n\n%s\n", e.Text, e.Example)
	}
	return fmt.Sprintf("%s\n\nWrong:\n\n%s\n\nRight:\n\n%s\n", e.Text, e.Example, e.Mended)
}

func resultOf(f *baiv1.Fault) result {
	message := f.GetMessage()
	if f.GetPath() != "" {
		message = f.GetPath() + ": " + message
	}
	if f.GetRemedy() != "" {
		message += " (" + f.GetRemedy() + ")"
	}
	at := location{Physical: physical{Artifact: artifact{uri(f.GetFile())}}}
	if f.GetLine() > 0 {
		at.Physical.Region = &region{f.GetLine(), f.GetColumn()}
	}
	if f.GetPath() != "" {
		at.Logical = []named{{f.GetPath()}}
	}
	level := "error"
	if f.GetWarning() {
		level = "warning"
	}
	return result{RuleID: f.GetCode(), Level: level, Message: text{message}, Locations: []location{at}}
}

// uri is a file's name as a reference, relative to where baictl was started.
func uri(file string) string {
	if strings.Contains(file, "://") || strings.HasPrefix(file, "stored:") {
		return file
	}
	u := url.URL{Path: filepath.ToSlash(file)}
	if filepath.IsAbs(file) {
		u.Scheme = "file"
	}
	return u.String()
}
