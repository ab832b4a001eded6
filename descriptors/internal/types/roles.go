package types

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// maxRole is the number of characters of the name of a role: the names of its pods' hosts have
// 63 at most.
const maxRole = 20

// Patterns of the JSON Schema for roles.
const (
	rolePattern        = `^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$`
	portAndPathPattern = `^:0*[1-9][0-9]{0,4}(/[^\s\x00-\x1f\x7f-\x9f]*)?$`
)

// roles are the types of the table roles.
func roles() decode.ValueTypes {
	return decode.ValueTypes{
		"role":          text("1 to 20 lower-case letters, digits and `-`, the first and last no `-`", role),
		"roles":         {Type: "list of strings", Rule: "names of roles", Read: func(v decode.Value) any { return nameList(v, role) }},
		"port and path": text("a port with its colon, and the path of a URL: `:8080/ping`", portAndPath),
	}
}

// nameList are the names of a list, each read by one. A name that is wrong is empty, so that
// the others have their places.
func nameList(v decode.Value, one func(decode.Value, string) any) []string {
	names := []string{}
	for _, item := range v.Items("a list of names") {
		s, ok := item.String()
		if !ok || one(item, s) == nil {
			s = ""
		}
		names = append(names, s)
	}
	return names
}

// isShortName reports whether s can be a part of the name of an object or a host.
func isShortName(s string) bool {
	return IsObjectName(s) && !strings.Contains(s, ".") && len(s) <= maxRole
}

func role(v decode.Value, s string) any {
	if !isShortName(s) {
		v.Fault(fault.BadRole, fmt.Sprintf("%q is not the name of a role", s),
			fmt.Sprintf("write lower-case letters, digits and -, %d at most", maxRole))
		return nil
	}
	return s
}

// portAndPath is s with a path in any case.
func portAndPath(v decode.Value, s string) any {
	port, path, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(strings.TrimPrefix(port, ":"))
	blank := func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) }
	if !strings.HasPrefix(port, ":") || !all(port[1:], isDigit) || err != nil || n < 1 || n > maxPort || strings.ContainsFunc(path, blank) {
		v.Fault(fault.BadEndpoint, fmt.Sprintf("%q is not a port and a path", s), `write ":8080/ping"`)
		return nil
	}
	return fmt.Sprintf(":%d/%s", n, path)
}
