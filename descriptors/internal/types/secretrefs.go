package types

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// A SecretRef points at one value in a secret; written "name/key".
type SecretRef struct {
	Name string // of the secret, in the run's namespace
	Key  string // in the secret
}

// maxSecretFiles is how many files with secrets a pod can have.
const maxSecretFiles = 100

// secretRefs are tables whose values are places of secrets.
func secretRefs() decode.ValueTypes {
	const stringTable = "table of strings"
	return decode.ValueTypes{
		"secrets": {
			Type: stringTable, Rule: "each value is `name/key` of a secret in the cluster",
			Read: func(v decode.Value) any {
				return secretTable(v, func(key decode.Value) string {
					Variable(key, key)
					return key.Text
				})
			},
		},
		"secret files": {
			Type: stringTable, Rule: "absolute paths of files outside of the system's own folders, 100 at most; each value is `name/key` of a secret in the cluster",
			Read: secretFiles,
		},
	}
}

// secretTable reads a table of places of secrets; name is the key of an entry as the program has it, and
// reports its faults. It is "" for an entry that is to be left out.
func secretTable(v decode.Value, name func(key decode.Value) string) map[string]SecretRef {
	all := map[string]SecretRef{}
	for key, value := range v.Entries("a table of strings") {
		s, ok := value.String()
		if !ok {
			continue
		}
		at := name(key)
		object, inside, _ := strings.Cut(s, "/")
		switch {
		case !IsObjectName(object) || !IsSecretKey(inside):
			value.Fault(fault.BadSecret, "not the place of a secret", `write "name/key" of a secret in the cluster, never its value`)
		case at != "":
			all[at] = SecretRef{object, inside}
		}
	}
	return all
}

func secretFiles(v decode.Value) any {
	all := secretTable(v, secretPath)
	if len(all) > maxSecretFiles {
		v.Fault(fault.OutOfRange, fmt.Sprintf("are %d files, %d at most are mounted", len(all), maxSecretFiles), "")
		return nil
	}
	return all
}

// secretPath is the path of a file with a secret, or "" if it was reported. A path has one spelling, so that no table
// names a file twice.
func secretPath(key decode.Value) string {
	clean, ok := mountPath(key, key.Text).(string)
	if ok && clean != key.Text {
		key.Fault(fault.BadPath, fmt.Sprintf("%q is not how the path of a file is written", key.Text), fmt.Sprintf("write %q", clean))
		return ""
	}
	return clean
}
