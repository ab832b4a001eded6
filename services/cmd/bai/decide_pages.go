package main

import (
	"fmt"
	"strings"
)

// mapping is a range of addresses.
type mapping struct{ begin, end uintptr }

// readOnlyMappings returns the mappings of a file in the text of /proc/PID/smaps (proc_pid_smaps(5)) whose pages are all as they are in the
// file: they cannot be written, and no page of them is the process's own.
func readOnlyMappings(smaps, file string) []mapping {
	var all []mapping
	var last mapping // of the file, until its number of own pages is read
	for line := range strings.Lines(smaps) {
		var begin, end uintptr
		var rights string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &begin, &end, &rights); n == 3 {
			last = mapping{}
			if fields := strings.Fields(line); !strings.Contains(rights, "w") && len(fields) == 6 && fields[5] == file {
				last = mapping{begin, end}
			}
			continue
		}
		if own, found := strings.CutPrefix(line, "Anonymous:"); found && last != (mapping{}) && strings.TrimSpace(own) == "0 kB" {
			all = append(all, last)
		}
	}
	return all
}
