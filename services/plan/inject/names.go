package inject

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/manifest"
)

// maxName is the greatest length of a name, from which operators make those of pods.
const maxName = 52

// objectNames are the names of the objects of one copy of a manifest.
type objectNames struct {
	Base string // begins them all
	own  map[string]string
}

// newObjectNames returns the names of the objects of a copy. The object with the number main, which
// ends the run, has the name of the attempt in the first copy.
func newObjectNames(attempt string, copyNumber int, all []manifest.Document, main int) objectNames {
	n := objectNames{Base: attempt, own: map[string]string{}}
	if copyNumber > 0 {
		n.Base += "-" + strconv.Itoa(copyNumber)
	}
	for i, d := range all {
		if i == main {
			n.own[key(d.Kind(), d.Name())] = n.Base
			continue
		}
		n.own[key(d.Kind(), d.Name())] = shorten(n.Base + "-" + d.Name())
	}
	return n
}

// Of returns the name of an object.
func (n objectNames) Of(d manifest.Document) string { return n.own[key(d.Kind(), d.Name())] }

func key(kind, name string) string { return kind + " " + name }

// shorten returns a name that is short enough. Different names stay different.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	const digits = 8
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:maxName-digits-1], "-") + "-" + hex.EncodeToString(sum[:])[:digits]
}

// referenceKinds are the keys under which pods name objects of the manifest, with the kind of
// the object. Those that have a table name it there.
func referenceKinds() map[string]string {
	return map[string]string{
		"configMap": "ConfigMap", "configMapRef": "ConfigMap", "configMapKeyRef": "ConfigMap",
		"claimName": "PersistentVolumeClaim", "dataSource": "PersistentVolumeClaim", "dataSourceRef": "PersistentVolumeClaim",
		"subdomain": "Service", "serviceName": "Service",
	}
}

// Rename returns a copy of a part of an object in which references to objects of the manifest
// have their names in the cluster.
func (n objectNames) Rename(in any) any {
	switch in := in.(type) {
	case map[string]any:
		all := make(map[string]any, len(in))
		for name, value := range in {
			all[name] = n.Rename(value)
			if kind, is := referenceKinds()[name]; is {
				all[name] = n.reference(kind, all[name])
			}
		}
		return all
	case []any:
		list := make([]any, 0, len(in))
		for _, value := range in {
			list = append(list, n.Rename(value))
		}
		return list
	}
	return in
}

// reference returns a reference to an object of a kind: its name, or a table with it.
func (n objectNames) reference(kind string, value any) any {
	switch value := value.(type) {
	case string:
		if name := n.own[key(kind, value)]; name != "" {
			return name
		}
	case map[string]any:
		if name, ok := value["name"].(string); ok {
			value["name"] = n.reference(kind, name)
		}
	}
	return value
}
