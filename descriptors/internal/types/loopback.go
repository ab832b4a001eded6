package types

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

// maxLoopbacks is how many URLs a list of them has at most.
const maxLoopbacks = 16

// loopbacks are URLs of a server in the same pod: one, or a list.
func loopbacks(v decode.Value) any {
	if v.Kind == syntax.String {
		if s, ok := loopback(v); ok {
			return []string{s}
		}
		return nil
	}
	var urls []string
	for _, item := range v.Items("a URL or a list of URLs") {
		s, ok := loopback(item)
		switch {
		case ok && slices.Contains(urls, s):
			item.Fault(fault.BadEndpoint, fmt.Sprintf("%q is there twice", s), "keep one of the two")
		case ok:
			urls = append(urls, s)
		}
	}
	if len(urls) > maxLoopbacks {
		v.Fault(fault.BadEndpoint, fmt.Sprintf("names %d URLs, %d at most are read", len(urls), maxLoopbacks), "")
		return nil
	}
	return urls
}

// loopback is a URL of a server in the same pod. It is false, and reported, for any other
// value.
func loopback(v decode.Value) (string, bool) {
	s, ok := v.String()
	if !ok {
		return "", false
	}
	const remedy = "write http://127.0.0.1:PORT/metrics"
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) }):
		v.Fault(fault.BadEndpoint, fmt.Sprintf("%q is not a URL", s), remedy)
	case u.Scheme != "http":
		v.Fault(fault.BadEndpoint, fmt.Sprintf("%q is not read over plain http", s), remedy)
	case u.User != nil:
		v.Fault(fault.Credentials, "the URL holds a user or a password, which everybody who sees the descriptor can read", remedy)
	case !slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, strings.ToLower(u.Hostname())):
		v.Fault(fault.BadEndpoint, fmt.Sprintf("%q is not in the pod of the benchmark", u.Host), remedy)
	case u.Port() != "" && !isPort(u.Port()):
		v.Fault(fault.BadEndpoint, fmt.Sprintf("%q is not a port", u.Port()), remedy)
	default:
		return s, true
	}
	return "", false
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= maxPort
}
