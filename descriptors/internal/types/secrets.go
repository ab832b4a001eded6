package types

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// parameter is one of a URL's query.
type parameter struct {
	name string
	at   int // in the URL
}

// secrets are the parameters of a URL that may let in whoever has them.
func secrets(s string) (all []parameter) {
	s, _, _ = strings.Cut(s, "#")
	before, query, _ := strings.Cut(s, "?")
	at := len(before) + 1
	for p := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(p, "=")
		if value != "" && secret(name) {
			all = append(all, parameter{name, at})
		}
		at += len(p) + 1
	}
	return all
}

// secret reports whether a parameter of that name sounds like a secret.
func secret(name string) bool {
	name = plain(name)
	return slices.Contains([]string{"sig", "jwt", "auth", "authorization", "pwd", "pass"}, name) ||
		slices.ContainsFunc([]string{
			"token", "secret", "password", "passwd", "signature", "credential", "credentials", "apikey",
			"accesskey", "secretkey", "accesskeyid",
		},
			func(end string) bool { return strings.HasSuffix(name, end) })
}

// plain is the name of a parameter without separators of words.
func plain(name string) string {
	if read, err := url.QueryUnescape(name); err == nil {
		name = read
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// reportsSecretParameters reports a URL that may let in by its parameters: a fault, and true,
// where the platform can read the same data with a right of its own, else a
// warning.
func reportsSecretParameters(v decode.Value, s, scheme string) bool {
	all := secrets(s)
	for _, p := range all {
		if remedy := alternativeSource(s, scheme, plain(p.name)); remedy != "" {
			v.FaultAt(v.Inside(p.at), fault.SignedURL, fmt.Sprintf("parameter %q of the URL lets in whoever sees the descriptor", p.name),
				remedy)
			return true
		}
	}
	if len(all) > 0 {
		v.Warn(fault.SecretInURL,
			fmt.Sprintf("parameter %q of the URL sounds like a secret, and everybody who sees the descriptor can read it", all[0].name),
			"keep the data where the platform reads them with a right of its own: s3://, gs://, azblob:// or git+https://")
	}
	return false
}

// alternativeSource says how data are read without a parameter that lets in, if there is
// a way.
func alternativeSource(s, scheme, name string) string {
	const right = ", which the platform reads with a right of its own"
	switch {
	case scheme == "git+https":
		return "leave it out: fetcher.sources.tokens of the platform's settings has tokens by host"
	case scheme != "http" && scheme != "https":
		return "leave it out: the platform reads buckets with a right of its own"
	case strings.HasPrefix(name, "xamz"), name == "awsaccesskeyid":
		return "write s3://BUCKET/KEY" + right
	case strings.HasPrefix(name, "xgoog"), name == "googleaccessid":
		return "write gs://BUCKET/OBJECT" + right
	case name == "sig" && strings.Contains(s, ".blob.core."):
		return "write azblob://CONTAINER/BLOB" + right
	}
	return ""
}
