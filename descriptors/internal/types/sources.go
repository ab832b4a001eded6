package types

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
)

func sources() decode.ValueTypes {
	return decode.ValueTypes{
		"source": text(
			"a URL with `s3://`, `gs://`, `azblob://`, `http://`, `https://`, `git+https://` or `file://`, without user, password and signature", source),
		"path": text("an absolute path", func(v decode.Value, s string) any { return absolute(v, s) }),
		"http path": text("the path of a URL", func(v decode.Value, s string) any {
			if strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) }) {
				v.Fault(fault.BadPath, "the path holds a blank or a control character", "write %20 for a blank")
				return nil
			}
			return "/" + strings.TrimPrefix(s, "/")
		}),
		"mount path": text("an absolute path outside of the system's own folders", mountPath),
		"md5":        text("32 hexadecimal digits", func(v decode.Value, s string) any { return digest(v, s, "md5", 32) }),
		"sha256":     text("64 hexadecimal digits", func(v decode.Value, s string) any { return digest(v, s, "sha256", 64) }),
		"pattern":    text("a regular expression of Go (RE2)", pattern),
		"loopback": {
			Type: "string or list of strings", Rule: "URLs of the pod itself, as `http://127.0.0.1:9090/metrics`; 16 at most, none twice",
			Read: loopbacks,
		},
	}
}

func schemes() []string { return []string{"s3", "gs", "azblob", "http", "https", "git+https", "file"} }

func source(v decode.Value, s string) any {
	scheme, rest, found := strings.Cut(s, "://")
	scheme = strings.ToLower(scheme)
	switch {
	case !found:
		v.Fault(fault.Scheme, fmt.Sprintf("%q is not a URL", s), "write https://…, s3://bucket/key or file:///path")
		return nil
	case !slices.Contains(schemes(), scheme):
		remedy := "copy the data to one of " + strings.Join(schemes(), ", ")
		if suggestion := suggest.Find(scheme, schemes()); suggestion != "" {
			remedy = fmt.Sprintf("did you mean %s://?", suggestion)
		}
		v.FaultAt(v.Inside(0), fault.Scheme, fmt.Sprintf("nothing is fetched from %s://", scheme), remedy)
		return nil
	case strings.ContainsFunc(s, func(c rune) bool {
		return unicode.IsControl(c) || unicode.IsSpace(c) && strings.HasPrefix(scheme, "http")
	}):
		v.Fault(fault.BadURL, "the URL holds a blank or a control character", "write %20 for a blank")
		return nil
	}
	if why := unreachable(scheme, s, rest); why != "" {
		v.Fault(fault.BadURL, why, "")
		return nil
	}
	if i := strings.IndexAny(rest+"/", "/?#"); scheme != "file" && strings.Contains(rest[:i], "@") {
		v.Fault(fault.Credentials, "the URL holds a user or a password, which everybody who sees the descriptor can read",
			"give the platform the right to read the data")
		return nil
	}
	if scheme != "file" && reportsSecretParameters(v, s, scheme) {
		return nil
	}
	return s
}

// unreachable says why a URL of scheme cannot be that of any data.
func unreachable(scheme, s, rest string) string {
	host, key, _ := strings.Cut(rest, "/")
	switch scheme {
	case "file":
		if host != "" || key == "" {
			return "a file's URL is file:// and an absolute path: three slashes"
		}
	case "http", "https", "git+https":
		u, err := url.Parse(s)
		if e, ok := errors.AsType[*url.Error](err); ok {
			return "not a URL: " + e.Err.Error()
		}
		if err == nil && u.Hostname() == "" {
			return "the URL names no host"
		}
	default:
		if host == "" {
			return "the URL names no bucket"
		}
	}
	return ""
}

// absolute is s without needless parts where it is an absolute path.
func absolute(v decode.Value, s string) any {
	const most = 4096
	switch {
	case !strings.HasPrefix(s, "/"):
		remedy := "begin it with /"
		if strings.HasPrefix(s, "~") {
			remedy = "name the folder: there is no ~ in a container"
		}
		v.Fault(fault.BadPath, fmt.Sprintf("%q is not an absolute path", s), remedy)
	case len(s) > most:
		v.Fault(fault.BadPath, fmt.Sprintf("the path has %d bytes, %d at most are taken", len(s), most), "")
	case strings.ContainsFunc(s, unicode.IsControl):
		v.Fault(fault.BadPath, "the path holds a control character", "leave it out")
	case strings.Contains("/"+s+"/", "/../"):
		v.Fault(fault.BadPath, fmt.Sprintf("%q goes upwards", s), fmt.Sprintf("write %q", path.Clean(s)))
	default:
		return path.Clean(s)
	}
	return nil
}

// portable is the platform's folder for data: paths below it work even where a cluster
// cannot mount.
const portable = "/bai/data/"

func mountPath(v decode.Value, s string) any {
	read := absolute(v, s)
	clean, ok := read.(string)
	if !ok {
		return nil
	}
	if clean == "/" {
		v.Fault(fault.TakenPath, "data cannot take the place of the whole disk", "choose a folder, as /data")
		return nil
	}
	if strings.Contains(clean, ":") {
		v.Fault(fault.BadPath, "the path holds a colon, which a mount cannot have", "choose another name")
		return nil
	}
	if strings.HasPrefix(clean, portable) {
		return clean
	}
	for _, taken := range []string{"/proc", "/sys", "/dev", "/tmp/benchmark-ai", "/bai"} {
		if clean == taken || strings.HasPrefix(clean, taken+"/") {
			v.Fault(fault.TakenPath, fmt.Sprintf("%s belongs to the system", taken), "choose another folder, as /data")
			return nil
		}
	}
	return clean
}

func digest(v decode.Value, s, name string, length int) any {
	s = strings.ToLower(s)
	if _, err := hex.DecodeString(s); err == nil && len(s) == length {
		return s
	}
	remedy := fmt.Sprintf("write the output of %ssum", name)
	switch {
	case length == 32 && len(s) == 64:
		remedy = "a digest of 64 digits goes to sha256"
	case length == 64 && len(s) == 32:
		remedy = "a digest of 32 digits goes to md5"
	}
	v.Fault(fault.BadDigest, fmt.Sprintf("%q is not %d hexadecimal digits", s, length), remedy)
	return nil
}

// largest is the number of instructions, or nearly that, above which a pattern
// is refused.
const largest = 20_000

func pattern(v decode.Value, s string) any {
	if s == "" {
		v.Fault(fault.BadPattern, "an empty pattern matches every line", "write what stands around the number")
		return nil
	}
	re, err := syntax.Parse(s, syntax.Perl)
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		if e.Expr == "(?P" && strings.Contains(s, "(?P=") {
			e.Expr = "(?P="
		}
		code, message, remedy := refusal(e)
		v.FaultAt(v.Inside(max(strings.Index(s, e.Expr), 0)), code, message, remedy)
		return nil
	}
	if n := weight(re, largest); n > largest {
		v.Fault(fault.LargePattern, "the pattern is too large once its repetitions are written out",
			"repeat fewer times: * instead of {1000}")
		return nil
	}
	return s
}

// refusal explains e to users of other regular expressions.
func refusal(e *syntax.Error) (code, message, remedy string) {
	const linear = ", which Go's regular expressions do not have"
	expr := e.Expr
	switch {
	case strings.HasPrefix(expr, "(?=") || strings.HasPrefix(expr, "(?!"):
		return fault.LookAround, fmt.Sprintf("%s is a look-ahead%s", expr[:3],
			linear), "match what follows, and put the number into a group called value: (?P<value>…)"
	case strings.HasPrefix(expr, "(?<=") || strings.HasPrefix(expr, "(?<!"):
		return fault.LookAround, fmt.Sprintf("%s is a look-behind%s", expr[:4],
			linear), "match what comes before, and put the number into a group called value: (?P<value>…)"
	case strings.HasPrefix(expr, "(?>"), e.Code == syntax.ErrInvalidRepeatOp && strings.HasSuffix(expr, "+"):
		return fault.LookAround, fmt.Sprintf("%q keeps the matcher from going back%s", expr,
			linear), "leave it out: matching takes linear time anyway"
	case e.Code == syntax.ErrInvalidEscape && len(expr) > 1 && expr[1] >= '1' && expr[1] <= '9',
		strings.HasPrefix(expr, "(?P="), strings.HasPrefix(expr, `\k`):
		return fault.LookAround, fmt.Sprintf("%s is a back-reference%s", expr, linear), "write out what is to match again"
	case e.Code == syntax.ErrInvalidEscape && expr == `\Z`:
		return fault.BadPattern, `\Z is not known`, `write \z or $`
	case e.Code == syntax.ErrInvalidRepeatSize || e.Code == syntax.ErrLarge || e.Code == syntax.ErrNestingDepth:
		return fault.LargePattern, fmt.Sprintf("%s: %q", e.Code, shorten(expr)), "repeat at most 1000 times"
	}
	return fault.BadPattern, fmt.Sprintf("%s: %s", e.Code, quotePattern(shorten(expr))), `see https://pkg.go.dev/regexp/syntax`
}

// quotePattern returns a pattern in quotes as the user wrote it, without Go's escapes, unless it would break the line.
func quotePattern(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || strings.ContainsRune(s, utf8.RuneError) {
		return strconv.Quote(s)
	}
	return `"` + s + `"`
}

func shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// weight is nearly the number of instructions of re, and more than bound where
// it is more than that.
func weight(re *syntax.Regexp, bound int) int {
	n := 1 + len(re.Rune)/4
	for _, sub := range re.Sub {
		n += weight(sub, bound)
		if n > bound {
			return n
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min, 1)
	}
	return n
}
