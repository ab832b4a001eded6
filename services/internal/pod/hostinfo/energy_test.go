package hostinfo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/pod/hostinfo"
)

// rapl is a tree of files with counters of energy.
type rapl struct {
	t    *testing.T
	root string
}

func newRAPL(t *testing.T) rapl {
	t.Helper()
	return rapl{t, t.TempDir()}
}

func (r rapl) write(zone, file, text string) {
	r.t.Helper()
	dir := filepath.Join(r.root, "sys/class/powercap", zone)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r rapl) zone(zone, name string, limit, value int64) {
	r.t.Helper()
	r.write(zone, "name", name)
	r.write(zone, "max_energy_range_uj", fmt.Sprint(limit))
	r.write(zone, "energy_uj", fmt.Sprint(value))
}

// energy returns the packages and their J in a meter's lines.
func energy(m *hostinfo.Meter) string {
	var all []string
	for _, found := range regexp.MustCompile(`"system.cpu.energy": ([0-9.]+), .*"system.cpu.energy": "J".*"package": "([^"]+)"`).FindAllStringSubmatch(string(m.Energy()), -1) {
		all = append(all, found[2]+"="+found[1])
	}
	return strings.Join(all, " ")
}

func TestTheEnergyOfPackagesIsThatSinceTheBenchmarkBegan(t *testing.T) {
	r := newRAPL(t)
	r.zone("intel-rapl:0", "package-0", 262143328850, 5_000_000)
	r.zone("intel-rapl:0:0", "core", 262143328850, 1_000_000)
	r.zone("intel-rapl:1", "package-1", 262143328850, 7_000_000)
	r.zone("intel-rapl:2", "psys", 262143328850, 9_000_000)
	m := hostinfo.NewMeter(hostinfo.Files{Root: r.root}, os.Getpid())
	if got := energy(m); got != "package-0=0 package-1=0" {
		t.Errorf("at the beginning: %q", got)
	}
	r.write("intel-rapl:0", "energy_uj", "7500000")
	r.write("intel-rapl:1", "energy_uj", "7000001")
	if got := energy(m); got != "package-0=2.5 package-1=0.000001" {
		t.Errorf("%q", got)
	}
}

func TestACounterOfEnergyThatWrapsAroundGoesOn(t *testing.T) {
	r := newRAPL(t)
	r.zone("intel-rapl:0", "package-0", 999_999, 900_000)
	m := hostinfo.NewMeter(hostinfo.Files{Root: r.root}, os.Getpid())
	for _, step := range []struct{ value, want string }{{"400000", "package-0=0.5"}, {"400000", "package-0=0.5"}, {"399999", "package-0=1.499999"}} {
		r.write("intel-rapl:0", "energy_uj", step.value)
		if got := energy(m); got != step.want {
			t.Errorf("at %s: %q, want %q", step.value, got, step.want)
		}
	}
}

func TestACounterOfEnergyMayWrapAroundBetweenTwoLines(t *testing.T) {
	r := newRAPL(t)
	r.zone("intel-rapl:0", "package-0", 999_999, 900_000)
	m := hostinfo.NewMeter(hostinfo.Files{Root: r.root}, os.Getpid())
	for _, value := range []string{"400000", "950000", "100000", "not a number", "600000"} {
		r.write("intel-rapl:0", "energy_uj", value)
		m.ReadEnergy()
	}
	if got := energy(m); got != "package-0=1.7" {
		t.Errorf("%q", got)
	}
}

func TestACounterOfEnergyThatCannotBeReadIsLeftOut(t *testing.T) {
	r := newRAPL(t)
	r.zone("intel-rapl:0", "package-0", 1000, 5)
	r.zone("intel-rapl:1", "package-1", 0, 5)    // wraps at an unknown value
	r.zone("intel-rapl:2", "package-2", 10, 500) // is above its largest value
	m := hostinfo.NewMeter(hostinfo.Files{Root: r.root}, os.Getpid())
	r.write("intel-rapl:0", "energy_uj", "not a number")
	if got := energy(m); got != "" {
		t.Errorf("%q", got)
	}
	r.write("intel-rapl:0", "energy_uj", "15")
	if got := energy(m); got != "package-0=0.00001" {
		t.Errorf("once it can be read again: %q", got)
	}
	if got := hostinfo.NewMeter(hostinfo.Files{Root: t.TempDir()}, os.Getpid()).Energy(); got != nil {
		t.Errorf("without counters: %q", got)
	}
}
