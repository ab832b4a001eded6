package units_test

import (
	"testing"

	"github.com/benchmark-ai/bai/descriptors/units"
)

func TestANumberIsConvertedToTheUnitThatIsWanted(t *testing.T) {
	for name, tt := range map[string]struct {
		v        float64
		from, to string
		want     float64
		unit     string
	}{
		"seconds":                  {1500, "ms", "s", 1.5, "s"},
		"long names":               {2, "minutes", "seconds", 120, "seconds"},
		"micro, either letter":     {3, "µs", "us", 3, "us"},
		"bytes of IEC":             {2, "GiB", "MiB", 2048, "MiB"},
		"bytes of SI":              {1, "MB", "B", 1e6, "B"},
		"bits are bytes too":       {1, "Gbit", "MB", 125, "MB"},
		"rates":                    {8, "Gbps", "GB/s", 1, "GB/s"},
		"rates of IEC":             {1, "MiB/s", "KiB/s", 1024, "KiB/s"},
		"a rate is no amount":      {1, "MB/s", "MB", 1, "MB/s"},
		"milliseconds are no rate": {1, "ms", "MB/s", 1, "ms"},
		"hertz":                    {2.5, "GHz", "MHz", 2500, "MHz"},
		"percent":                  {50, "%", "1", 0.5, "1"},
		"a ratio":                  {0.25, "ratio", "%", 25, "%"},
		"operations":               {2, "ops/s", "op/s", 2, "op/s"},
		"what is not known":        {1, "img/s", "s", 1, "img/s"},
		"the same":                 {1, "img", "img", 1, "img"},
		"none given":               {1, "", "s", 1, "s"},
		"none wanted":              {1, "s", "", 1, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			v, u := units.Convert(tt.v, tt.from, tt.to)
			if v != tt.want || u != tt.unit {
				t.Errorf("%v %s, want %v %s", v, u, tt.want, tt.unit)
			}
			if tt.from != "" && tt.to != "" && units.Convertible(tt.from, tt.to) != (u == tt.to) {
				t.Errorf("that it is convertible is said otherwise")
			}
		})
	}
}

func TestAUnitPerTimeIsARate(t *testing.T) {
	for unit, want := range map[string]bool{
		"images/s": true, "Gbps": true, "MB/s": true, "op/s": true, "tokens/min": true, "requests/h": true, "Hz": true, " images/s ": true, "images/sec": true,
		"images": false, "": false, "s": false, "J/image": false, "USD": false, "s/op": false, "%": false,
	} {
		if units.IsRate(unit) != want {
			t.Errorf("%q: %t", unit, !want)
		}
	}
}
