package main

import "fmt"

// Numbers of open files of a platform in one process: about 190 when idle with an
// embedded broker, or 110 with external brokers. On a busy machine, clients reconnect
// before the broker has closed their old connections, so there may be almost twice as
// many connections. Each run adds filesPerRun.
const (
	filesEmbedded = 360
	filesOutside  = 200
	filesPerRun   = 24
)

// enoughFiles refuses a limit of open files that is too low for a run.
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
