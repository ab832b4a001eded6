package scheduling

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Forbidden reports whether a pod will always be refused for this reason. A quota may become free later.
func Forbidden(message string) bool {
	return (strings.Contains(message, "is forbidden") || strings.Contains(message, "is invalid") ||
		strings.Contains(message, "denied the request")) &&
		!strings.Contains(message, "exceeded quota")
}

// OverQuota reports whether a message refuses pods because of what others use of a quota, which is large enough for the pod that was
// refused.
func OverQuota(message string) bool {
	_, words, _ := strings.Cut(message, "exceeded quota: ")
	_, words, _ = strings.Cut(words, "requested: ")
	requested, words, _ := strings.Cut(words, ", used: ")
	used, limited, ok := strings.Cut(words, ", limited: ")
	wants, uses, has, inUse := quotaOf(requested), quotaOf(used), quotaOf(limited), false
	for name, want := range wants {
		limit, use := has[name], uses[name]
		if want.Cmp(limit) > 0 {
			return false
		}
		inUse = inUse || use.Sign() > 0
	}
	return ok && inUse
}

// quotaOf reads resources as the API server writes them: pods=1,requests.cpu=500m.
func quotaOf(words string) map[string]resource.Quantity {
	all := make(map[string]resource.Quantity)
	for one := range strings.SplitSeq(words, ",") {
		name, value, _ := strings.Cut(one, "=")
		if q, err := resource.ParseQuantity(value); err == nil {
			all[name] = q
		}
	}
	return all
}
