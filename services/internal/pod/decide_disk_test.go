package pod_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

func TestWhoMayWriteToADiskThatFills(t *testing.T) {
	t.Parallel()
	const mib, large, small = int64(1 << 20), int64(100 << 30), int64(64 << 20)
	type may struct{ ships, stores, accepts, givesUp, holds bool }
	tests := map[string]struct {
		disk pod.Disk
		want may
	}{
		"on an empty disk everybody, and the reserve is taken":      {pod.Disk{Free: large, Total: large}, may{true, true, true, false, true}},
		"the reserve is taken once":                                 {pod.Disk{Free: large, Total: large, ReserveHeld: true}, may{true, true, true, false, false}},
		"below 64 MiB no output is shipped":                         {pod.Disk{Free: 63 * mib, Total: large, ReserveHeld: true}, may{false, true, true, false, false}},
		"below 40 MiB nothing is stored":                            {pod.Disk{Free: 39 * mib, Total: large, ReserveHeld: true}, may{false, false, true, false, false}},
		"below 16 MiB runs are refused":                             {pod.Disk{Free: 15 * mib, Total: large, ReserveHeld: true}, may{false, false, false, false, false}},
		"below 8 MiB the reserve is given up":                       {pod.Disk{Free: 7 * mib, Total: large, ReserveHeld: true}, may{false, false, false, true, false}},
		"the room of the reserve is for the platform alone":         {pod.Disk{Free: 39 * mib, Total: large}, may{false, false, false, false, false}},
		"runs are accepted again before the reserve is taken":       {pod.Disk{Free: 50 * mib, Total: large}, may{false, true, true, false, false}},
		"the reserve is taken only where output has room beside it": {pod.Disk{Free: 95 * mib, Total: large}, may{true, true, true, false, false}},
		"and then it is":                                                     {pod.Disk{Free: 96 * mib, Total: large}, may{true, true, true, false, true}},
		"of a small disk an eighth is reserved":                              {pod.Disk{Free: 24 * mib, Total: small}, may{true, true, true, false, true}},
		"and a quarter is kept free of shipped output":                       {pod.Disk{Free: 15 * mib, Total: small, ReserveHeld: true}, may{false, true, true, false, false}},
		"what the reserve has given to the platform lets no results through": {pod.Disk{Free: 9 * mib, Total: small}, may{false, false, false, false, false}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tt.disk
			if got := (may{d.AcceptsOutput(), d.AcceptsResults(), d.AcceptsRuns(), d.NeedsReserve(d.Free), d.CanReserve()}); got != tt.want {
				t.Errorf("%+v of %+v", got, d)
			}
			if d.NeedsReserve(d.Free + 1) {
				t.Errorf("the reserve is given up while others fill the disk: %+v", d)
			}
			if reported := d.ProblemMessage("/data") != ""; reported == tt.want.ships {
				t.Errorf("%+v is said to be a problem: %t", d, reported)
			}
		})
	}
}

func TestAFullDiskIsToldWithItsFolderWhatIsFreeAndWhatIsNeeded(t *testing.T) {
	t.Parallel()
	d := pod.Disk{Free: 3 << 20, Total: 64 << 20, ReserveHeld: true}
	for what, text := range map[string]string{"a refusal": d.RefusalMessage("/data"), "a problem": d.ProblemMessage("/data")} {
		for _, w := range []string{"the platform's disk is full", "/data has 3.0 MiB free", "needs", "free some space there"} {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q: %s", what, w, text)
			}
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1 << 10: "1.0 KiB", 1536: "1.5 KiB", 64 << 20: "64 MiB", 3 << 30: "3.0 GiB"} {
		if got := pod.FormatSize(n); got != want {
			t.Errorf("%d bytes are said as %q, want %q", n, got, want)
		}
	}
}
