package port

import "testing"

func TestCandidates(t *testing.T) {
	for name, c := range map[string]struct {
		outgoing    string
		count       int
		first, last int
	}{
		"ports lie on both sides of the range of outgoing connections": {"32768\t60999\n", 22768 + 4536, 10000, 65535},
		"ports lie below a range that has the highest":                 {"32768 65535", 22768, 10000, 32767},
		"ports lie above a range that has the lowest":                  {"1024 60999", 4536, 61000, 65535},
		"a range that leaves few ports is not looked at":               {"1024 65000", 55536, 10000, 65535},
		"an unknown range is not looked at":                            {"", 55536, 10000, 65535},
		"a range that cannot be read is not looked at":                 {"32768", 55536, 10000, 65535},
	} {
		t.Run(name, func(t *testing.T) {
			got := candidates(c.outgoing)
			if len(got) != c.count || got[0] != c.first || got[len(got)-1] != c.last {
				t.Errorf("%d ports from %d to %d, want %d from %d to %d", len(got), got[0], got[len(got)-1], c.count, c.first, c.last)
			}
		})
	}
}
