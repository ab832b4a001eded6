package catalog

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// maxVersions is the maximum number of versions of a name.
const maxVersions = 999_999_999

// maxURI is the maximum number of bytes in a URL.
const maxURI = 2048

// prefixOf returns the prefix of the keys of all versions of a name. The separator
// sorts before every character of a name, so the keys have the order of the names.
func prefixOf(namespace, name string) string { return namespace + "!" + name + "!" }

// keyOf returns the key of a version. The newest version sorts first.
func keyOf(namespace, name string, version int) string {
	return fmt.Sprintf("%s%09d", prefixOf(namespace, name), maxVersions-version)
}

// keyAfter returns a key that sorts after the keys of all versions of a name.
func keyAfter(namespace, name string) string { return prefixOf(namespace, name) + "~" }

// Ref is the meaning of a descriptor's URI.
type Ref struct {
	Name    string // name of a stored descriptor
	Version int    // its version; 0 means the newest
	URL     string // URL of a descriptor that is not stored; empty for a stored one
}

// parseRef returns the meaning of a URI, or *RefError.
func parseRef(uri string, s Settings) (Ref, error) {
	if stored, ok := strings.CutPrefix(uri, "stored:"); ok {
		return parseStored(stored)
	}
	u, err := url.Parse(uri)
	if err != nil || len(uri) > maxURI {
		return Ref{}, &RefError{Message: "is not a URL", Remedy: refRemedy}
	}
	schemes := []string{"https", "s3"}
	if s.HTTP {
		schemes = append(schemes, "http")
	}
	switch {
	case u.Scheme == "http" && !s.HTTP:
		return Ref{}, &RefError{
			Message: "is read over http, which this server's settings do not allow (gateway.descriptors.http)",
			Remedy:  "use https",
		}
	case !slices.Contains(schemes, u.Scheme) || u.Host == "":
		return Ref{}, &RefError{Message: fmt.Sprintf("%.100q is not where descriptors are read from", redactURL(uri)), Remedy: refRemedy}
	}
	return Ref{URL: uri}, nil
}

const refRemedy = "give stored:NAME, stored:NAME@VERSION, https://HOST/PATH or s3://BUCKET/KEY"

func parseStored(stored string) (Ref, error) {
	name, number, versioned := strings.Cut(stored, "@")
	ref := Ref{Name: name}
	if name == "" {
		return Ref{}, &RefError{Message: "names no descriptor", Remedy: refRemedy}
	}
	if !versioned {
		return ref, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > maxVersions || strconv.Itoa(n) != number {
		return Ref{}, &RefError{
			Message: fmt.Sprintf("%.40q is not a version", number),
			Remedy:  "give a number from 1, or leave it out for the newest",
		}
	}
	ref.Version = n
	return ref, nil
}

// provenance returns the origin of a stored descriptor: its name with its version, and
// its digest.
func (k StoredDescriptor) provenance() event.Provenance {
	return event.Provenance{URI: fmt.Sprintf("stored:%s@%d", k.Name, k.Version), SHA256: k.SHA256}
}

// redactURL returns a URL without its user, query and fragment, which may be secret.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// listCursor is the position at which a list continues.
type listCursor struct {
	Namespace string `json:"n"`
	Name      string `json:"d,omitempty"`
	After     string `json:"a"`
}

func (p listCursor) token() string {
	b, err := json.Marshal(p)
	if err != nil {
		return "" // strings always have a JSON form
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseToken returns the position at which a list begins. It reports false for a token
// that was not issued for the list.
func parseToken(namespace, name, token string) (listCursor, bool) {
	start := listCursor{Namespace: namespace, Name: name, After: namespace + "!"}
	if name != "" {
		start.After = prefixOf(namespace, name)
	}
	if token == "" {
		return start, true
	}
	var p listCursor
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(b, &p) != nil || p.Namespace != namespace || p.Name != name ||
		!strings.HasPrefix(p.After, start.After) {
		return listCursor{}, false
	}
	return p, true
}
