package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALimitOfOpenFilesThatIsTooLowIsRefusedWithTheNumber(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit    uint64
		slots    int
		embedded bool
		want     string // empty: the limit is high enough
	}{
		"enough for one run":             {limit: 384, slots: 1, embedded: true},
		"one too few":                    {383, 1, true, "this process may have 383 files open, and needs 384 for 1 run at a time: raise the limit (ulimit -n 384, or LimitNOFILE=384 of a systemd unit)"},
		"more runs need more":            {384, 4, true, "this process may have 384 files open, and needs 456 for 4 runs at a time: raise the limit (ulimit -n 456, or LimitNOFILE=456 of a systemd unit)"},
		"brokers elsewhere need no room": {limit: 224, slots: 1},
		"but there is a least there too": {223, 1, false, "this process may have 223 files open, and needs 224 for 1 run at a time: raise the limit (ulimit -n 224, or LimitNOFILE=224 of a systemd unit)"},
		"a usual limit is for many runs": {limit: 1024, slots: 27, embedded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			if err := enoughFiles(tt.limit, tt.slots, tt.embedded); err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
