package convert_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert"
)

// strange begins keys that no system has.
const strange = "zzStrange"

// A table of a YAML file, and its path.
type table struct {
	node *yaml.Node
	path string
}

// tablesOf returns the tables below a node.
func tablesOf(n *yaml.Node, path string) []table {
	var all []table
	switch n.Kind {
	case yaml.MappingNode:
		all = append(all, table{n, path})
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if strings.ContainsAny(key, ". ") {
				key = fmt.Sprintf("%q", key)
			}
			all = append(all, tablesOf(n.Content[i+1], strings.TrimPrefix(path+"."+key, "."))...)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			all = append(all, tablesOf(item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case yaml.DocumentNode:
		return tablesOf(n.Content[0], path)
	case yaml.ScalarNode, yaml.AliasNode:
	}
	return all
}

// documentsOf returns the documents of a file that are not empty.
func documentsOf(t *testing.T, text []byte) []*yaml.Node {
	t.Helper()
	var all []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		node := &yaml.Node{}
		err := decoder.Decode(node)
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case node.Kind != 0 && len(node.Content) > 0 && node.Content[0].Kind == yaml.MappingNode:
			all = append(all, node)
		}
	}
}

func encode(t *testing.T, documents []*yaml.Node) []byte {
	t.Helper()
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	for _, d := range documents {
		if err := encoder.Encode(d); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

func TestAKeyThatIsNotKnownIsNeverSilentlyLeftOut(t *testing.T) {
	for _, system := range []string{convert.KubePerftest, convert.Kubebench, convert.EKS} {
		for _, file := range files(t, system) {
			if strings.HasSuffix(file, ".yaml") {
				t.Run(system+"/"+filepath.Base(file), func(t *testing.T) { checkStrangeKeys(t, system, documentsOf(t, read(t, file))) })
			}
		}
	}
}

// checkStrangeKeys adds a key that is not known to each table.
func checkStrangeKeys(t *testing.T, system string, documents []*yaml.Node) {
	t.Helper()
	var paths []string
	for _, d := range documents {
		for _, one := range tablesOf(d, "") {
			key := fmt.Sprintf("%s%03d", strange, len(paths))
			paths = append(paths, strings.TrimPrefix(one.path+"."+key, "."))
			one.node.Content = append(one.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Value: "1"})
		}
	}
	r := convert.Convert(system, encode(t, documents))
	for _, path := range paths {
		if !hasNote(r, path) {
			t.Errorf("%s: no remark, and it is not in the descriptor: %v", path, r.Remarks)
		}
	}
}

// hasNote reports whether the last key of a path is in a descriptor, or a note is about the path or a table that it is in.
func hasNote(r convert.Result, path string) bool {
	key := path[strings.LastIndex(path, ".")+1:]
	for _, f := range r.Files {
		if strings.Contains(f.Text, key) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(r.Remarks, r.Faults), func(n convert.Note) bool {
		return n.Path != "" && (path == n.Path || strings.HasPrefix(path, n.Path+".") || strings.HasPrefix(path, n.Path+"["))
	})
}
