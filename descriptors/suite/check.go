package suite

import (
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
)

// check has the rules between the keys of a suite.
type check struct {
	doc *document
	r   *decode.Report
}

func (c check) all() {
	c.entries()
	c.seed()
	c.schedule()
}

func (c check) entries() {
	if n := len(c.doc.suite.Entries); n > MaxEntries {
		c.r.Fault("suite.entries", fault.ManyEntries, fmt.Sprintf("has %d entries; %d at most are taken", n, MaxEntries),
			"make several suites")
		return
	}
	first := make(map[string]int)
	for i, e := range c.doc.suite.Entries {
		at := entryPath(i) + ".name"
		if other, ok := first[e.Name]; ok && c.r.IsValid(at) {
			c.r.Fault(at, fault.SameEntry, fmt.Sprintf("%q is the name of entry %d too", e.Name, other+1),
				"give each entry a name of its own")
			continue
		}
		first[e.Name] = i
	}
	if c.r.Has("suite.entries") && !c.r.HasError("suite.entries") && len(c.doc.suite.Entries) == 0 {
		c.r.Fault("suite.entries", fault.NoCells, "is empty", "add [[suite.entries]] with a name and a descriptor")
	}
}

func entryPath(i int) string { return fmt.Sprintf("suite.entries[%d]", i) }

func (c check) seed() {
	if c.doc.suite.Order != descriptors.Random && c.r.Has("suite.seed") && !c.r.HasError("suite.order") {
		c.r.Warn("suite.seed", fault.NotRead, fmt.Sprintf("order %s has no seed", c.doc.suite.Order),
			`write order = "random", or leave this out`)
	}
}

// schedule warns of keys that only a schedule reads.
func (c check) schedule() {
	info := descriptors.Info{Scheduling: c.doc.suite.Scheduling}
	if info.Scheduled() || c.r.HasError("suite.scheduling") {
		return
	}
	for _, at := range []string{"suite.timezone", "suite.schedule"} {
		if c.r.Has(at) && !c.r.HasError(at) {
			c.r.Warn(at, fault.NotRead, "only a schedule reads it, and this runs once", "give suite.scheduling, or leave this out")
		}
	}
}
