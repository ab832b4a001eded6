package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bundle is code that is stored for an owner.
type Bundle struct {
	Owner  string    `json:"owner"`
	SHA256 string    `json:"sha256"` // hex
	Size   int64     `json:"size"`
	Used   time.Time `json:"used"` // time of the owner's last use, accurate to about a minute

	version int64 // version of the bundle's document
	pinned  bool  // a run needs it
}

// keyOf returns the key of the document about an owner's code; keyOf(owner, "") is the
// prefix of all keys of an owner, since no owner's name has a "!".
func keyOf(owner, sha256 string) string { return owner + "!" + sha256 }

// checkDigest returns *DigestError for text that is not a SHA-256 in hex.
func checkDigest(sha256 string) error {
	if len(sha256) == 64 && strings.Trim(sha256, "0123456789abcdef") == "" {
		return nil
	}
	return &DigestError{Message: fmt.Sprintf("%.80q is not the SHA-256 of anything: it has 64 digits of hex, in lower case", sha256)}
}

// check returns the error for code with an invalid digest or size.
func (s Settings) check(sha256 string, size int64) error {
	if err := checkDigest(sha256); err != nil {
		return err
	}
	switch {
	case size < 0:
		return &LimitError{Message: "how much code is sent must be said before"}
	case size > s.MaxSize:
		return &LimitError{Message: fmt.Sprintf("the code has %s, and this platform takes %s at most (gateway.scripts.max_size): leave out what is no code, and name data in data.sources", formatSize(size), formatSize(s.MaxSize))}
	}
	return nil
}

// Evictions returns the bundles of an owner to evict so that code of that size fits.
// The least recently used come first, and bundles that a run needs are never evicted.
// The error is *LimitError if that does not make enough room.
func (s Settings) Evictions(all []Bundle, sha256 string, size int64) ([]Bundle, error) {
	total := size
	var free []Bundle
	for _, k := range all {
		if k.SHA256 == sha256 {
			continue
		}
		total += k.Size
		if !k.pinned {
			free = append(free, k)
		}
	}
	slices.SortFunc(free, func(a, b Bundle) int {
		return cmp.Or(a.Used.Compare(b.Used), strings.Compare(a.SHA256, b.SHA256))
	})
	n := 0
	for ; total > s.MaxTotal && n < len(free); n++ {
		total -= free[n].Size
	}
	if total > s.MaxTotal {
		return nil, &LimitError{Message: fmt.Sprintf("runs that go on need %s of code of this owner's already, and %s are kept at most (gateway.scripts.max_total): submit again when some of them are over", formatSize(total-size), formatSize(s.MaxTotal))}
	}
	return free[:n], nil
}

// needsTouch reports whether the time of the last use is to be updated.
func (k Bundle) needsTouch(now time.Time) bool { return now.Sub(k.Used) > time.Minute }

// checkReceived returns an error if the received size or digest differs from the
// announced one.
func checkReceived(want string, size int64, got string, came int64) error {
	switch {
	case came != size:
		return &DigestError{Message: fmt.Sprintf("%d bytes came where %d were announced", came, size)}
	case want != got:
		return &DigestError{Message: fmt.Sprintf("what came has sha256 %s, not %s", got, want)}
	}
	return nil
}

// formatSize returns a size with a unit, for messages.
func formatSize(n int64) string {
	f := float64(n)
	for _, unit := range [...]string{"bytes", "KiB", "MiB"} {
		if f < 1000 {
			return fmt.Sprintf("%.4g %s", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.4g GiB", f)
}
