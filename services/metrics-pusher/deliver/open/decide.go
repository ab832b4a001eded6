package open

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"

	"github.com/benchmark-ai/bai/services/metrics-pusher/deliver/objects"
)

// clashes returns an error for each destination whose objects have the names of those of another one before it, for runs of a namespace
// that may name both: an object is named by its run, and written once.
func (s Settings) clashes() []error {
	var errs []error
	names := slices.Sorted(maps.Keys(s))
	for i, name := range names {
		for _, before := range names[:i] {
			if s[name].clashes(s[before]) {
				errs = append(errs, fmt.Errorf("destinations.%s.url: destinations.%s writes objects with the same names there, "+
					"and a name is written once: take another URL or format", name, before))
				break
			}
		}
	}
	return errs
}

func (d DestinationSettings) clashes(other DestinationSettings) bool {
	at, ok := d.folder()
	there, alsoOK := other.folder()
	if !ok || !alsoOK || at != there || cmp.Or(d.Format, objects.CSV) != cmp.Or(other.Format, objects.CSV) {
		return false
	}
	return len(d.Namespaces) == 0 || len(other.Namespaces) == 0 ||
		slices.ContainsFunc(d.Namespaces, func(n string) bool { return slices.Contains(other.Namespaces, n) })
}

// folder returns where a destination writes objects, in one form for all ways to write that; ok is false if it writes none, or has no URL.
func (d DestinationSettings) folder() (at string, ok bool) {
	u, err := url.Parse(d.URL)
	if d.Kind != kindObjects || err != nil || u.Scheme == "" {
		return "", false
	}
	return u.Scheme + "://" + u.Host + path.Clean("/"+u.Path), true
}
