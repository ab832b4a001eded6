package main

import "fmt"

// Open files of a platform in one process: some 190 when nothing happens, with a broker
// of its own, or 110 with brokers elsewhere; on a machine with other work clients
// connect once more before the broker has closed what they gave up, so that there may
// be nearly twice as many connections. And what a run adds.
const (
	filesEmbedded = 360
	filesOutside  = 200
	filesPerRun   = 24
)

// enoughFiles refuses a limit of open files under which no run would get on.
func enoughFiles(limit uint64, slots int, embedded bool) error {
	need := uint64(filesOutside)
	if embedded {
		need = filesEmbedded
	}
	need += filesPerRun * uint64(max(slots, 1)) //nolint:gosec // not negative
	if limit >= need {
		return nil
	}
	return fmt.Errorf("this process may have %d files open, and needs %d for %s at a time: raise the limit (ulimit -n %d, or LimitNOFILE=%d of a systemd unit)",
		limit, need, runs(slots), need, need)
}

type runs int

// String implements fmt.Stringer.
func (r runs) String() string {
	if r <= 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", int(r))
}
