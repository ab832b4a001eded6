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
		want     string // empty: it is enough
	}{
		"enough for one run":             {limit: 256, slots: 1, embedded: true},
		"one too few":                    {255, 1, true, "this process may have 255 files open, and needs 256 for 1 run at a time: raise the limit (ulimit -n 256, or LimitNOFILE=256 of a systemd unit)"},
		"more runs need more":            {256, 4, true, "this process may have 256 files open, and needs 328 for 4 runs at a time: raise the limit (ulimit -n 328, or LimitNOFILE=328 of a systemd unit)"},
		"brokers elsewhere need no room": {limit: 160, slots: 1},
		"but there is a least there too": {159, 1, false, "this process may have 159 files open, and needs 160 for 1 run at a time: raise the limit (ulimit -n 160, or LimitNOFILE=160 of a systemd unit)"},
		"as many slots as are usual":     {limit: 1024, slots: 32, embedded: true},
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
