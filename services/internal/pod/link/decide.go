// Package link sets the MTU of the link by which a pod reaches its network.
package link

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// usual is the link that plugins of Kubernetes give a pod.
const usual = "eth0"

// loopback is the link that leads nowhere.
const loopback = "lo"

// decideLink returns the name of the link by which a pod reaches its network: the one with
// the default route of the lowest metric, else eth0, else the only one there is. Routes is
// the content of /proc/net/route (proc(5)), links are the names of all links.
func decideLink(routes string, links []string) (string, error) {
	links = slices.DeleteFunc(slices.Clone(links), func(name string) bool { return name == loopback })
	if name := defaultLink(routes); name != "" && slices.Contains(links, name) {
		return name, nil
	}
	switch {
	case slices.Contains(links, usual):
		return usual, nil
	case len(links) == 1:
		return links[0], nil
	case len(links) == 0:
		return "", errors.New("the pod has no link to a network")
	}
	return "", fmt.Errorf("the pod has the links %s, none of them called %s or with the default route", strings.Join(links, ", "), usual)
}

// defaultLink returns the link of the default route with the lowest metric, or "".
func defaultLink(routes string) string {
	const link, destination, metric, mask, columns = 0, 1, 6, 7, 8
	type route struct {
		link   string
		metric int
	}
	var all []route
	for line := range strings.Lines(routes) {
		c := strings.Fields(line)
		if len(c) < columns || c[destination] != "00000000" || c[mask] != "00000000" {
			continue
		}
		if n, err := strconv.Atoi(c[metric]); err == nil {
			all = append(all, route{c[link], n})
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, func(a, b route) int { return cmp.Compare(a.metric, b.metric) }).link
}
