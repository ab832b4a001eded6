package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheBestRepetitionOfABenchmarkCounts(t *testing.T) {
	const text = `goos: linux
BenchmarkTenThousandPoints 	      20	  15000000 ns/op
BenchmarkTenThousandPoints 	      20	  12500000 ns/op	 100 B/op
BenchmarkOneMorePoint-2    	    1000	    250000.5 ns/op
PASS
`
	got, err := bestTimes(text)
	if diff := cmp.Diff(map[string]float64{"TenThousandPoints": 12.5, "OneMorePoint": 0.2500005}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := bestTimes("PASS\n"); err == nil {
		t.Error("an output without benchmarks is accepted")
	}
}
