package types

import "strings"

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlnum(c byte) bool { return isLower(c|0x20) || isDigit(c) }

// all reports whether each byte of s is good.
func all(s string, good func(byte) bool) bool {
	for i := range len(s) {
		if !good(s[i]) {
			return false
		}
	}
	return true
}

func oneOf(chars string) func(byte) bool {
	return func(c byte) bool { return isAlnum(c) || strings.IndexByte(chars, c) >= 0 }
}

// isLabel reports whether s may be the value of a label, and is not empty.
func isLabel(s string) bool {
	return s != "" && len(s) <= longest && isAlnum(s[0]) && isAlnum(s[len(s)-1]) && all(s, oneOf("-_."))
}

// IsObjectName reports whether s may name an object of Kubernetes.
func IsObjectName(s string) bool {
	const most = 253
	for part := range strings.SplitSeq(s, ".") {
		good := part != "" && part[0] != '-' && part[len(part)-1] != '-'
		if !good || !all(part, func(c byte) bool { return isLower(c) || isDigit(c) || c == '-' }) {
			return false
		}
	}
	return len(s) <= most
}

// IsSecretKey reports whether s may be a key in a secret of Kubernetes.
func IsSecretKey(s string) bool {
	const most = 253
	return s != "" && s != "." && s != ".." && len(s) <= most && all(s, oneOf("-_."))
}

// isQualified reports whether s is a name, or a domain and a name.
func isQualified(s string) bool {
	domain, name, found := strings.Cut(s, "/")
	if !found {
		return isLabel(s)
	}
	return isLabel(name) && IsObjectName(domain)
}

func isVariable(s string) bool { return s != "" && !isDigit(s[0]) && all(s, oneOf("-_.")) }

// isTag reports whether s may be the tag of an image.
func isTag(s string) bool {
	const most = 128
	return s != "" && len(s) <= most && s[0] != '.' && s[0] != '-' && all(s, oneOf("-_."))
}

func isImageDigest(s string) bool {
	const least = 32
	algorithm, hex, _ := strings.Cut(s, ":")
	return algorithm != "" && len(hex) >= least && all(algorithm, oneOf("+._-")) &&
		all(hex, func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' })
}

// isRepository reports whether s is the name of an image without its tag: parts
// between slashes, before which there may be a host.
func isRepository(s string) bool {
	host, rest, found := strings.Cut(s, "/")
	if found && (strings.ContainsAny(host, ".:[") || host == "localhost" || strings.ToLower(host) != host) {
		if host == "" || !all(host, oneOf(".-:[]_")) {
			return false
		}
		s = rest
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || !isLower(part[0]) && !isDigit(part[0]) || !isAlnum(part[len(part)-1]) ||
			strings.ToLower(part) != part || !all(part, oneOf("-_.")) {
			return false
		}
	}
	return true
}
