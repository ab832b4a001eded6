package shim

import "testing"

func TestAContainerIsStarvedWhereItsOwnGroupCountsIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code           int
		group, machine int64
		want           bool
	}{
		"it was killed itself":                        {137, 1, 1, true},
		"a process of it was, and it ended badly":     {1, 2, 2, true},
		"a process of it was, and it ended well":      {0, 1, 1, false},
		"another container's was":                     {137, 0, 1, false},
		"no group counts, and something was killed":   {137, -1, 1, true},
		"no group counts, and it ended otherwise":     {1, -1, 1, false},
		"no group counts, and the kernel killed none": {137, -1, 0, false},
	} {
		if got := isOOM(tt.code, tt.group, tt.machine); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
