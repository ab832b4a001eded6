package roles

import (
	"net/url"
	"slices"
	"strconv"
)

// listen adds ports on which the pods listen; 0 is none.
func (r *Role) listen(ports ...int) {
	for _, p := range ports {
		if p > 0 && !slices.Contains(r.Listens, p) {
			r.Listens = append(slices.Clip(r.Listens), p)
		}
	}
}

// portOfURL returns the port of an address, or 0 if it has none that is known.
func portOfURL(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 0
	}
	port := u.Port()
	if port == "" && u.Scheme == "http" {
		port = "80"
	}
	n, _ := strconv.Atoi(port) // 0 for none
	return n
}
