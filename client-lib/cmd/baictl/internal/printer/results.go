package printer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// mostMetrics is how many metrics of a run are shown in a line each.
const mostMetrics = 20

// Metrics are the summaries of a run's metrics, for people, a line each.
func Metrics(all []*baiv1.MetricSummary) []string {
	var lines []string
	for _, m := range all {
		if len(lines) == mostMetrics {
			return append(lines, fmt.Sprintf("and %d more: see baictl metrics --summary", len(all)-mostMetrics))
		}
		lines = append(lines, metric(m))
	}
	return lines
}

// SplitSystem separates the metrics of the benchmark from the system metrics that the
// platform measured.
func SplitSystem(all []*baiv1.MetricSummary) (own, system []*baiv1.MetricSummary) {
	for _, m := range all {
		if strings.HasPrefix(m.GetMetric(), "system.") {
			system = append(system, m)
		} else {
			own = append(own, m)
		}
	}
	return own, system
}

// metric is "loss 0.25 ms {a=b}, 0.2 to 0.3 (96.9 %), of 10".
func metric(m *baiv1.MetricSummary) string {
	name := m.GetMetric()
	if len(m.GetLabels()) > 0 {
		name += " {" + Labels(m.GetLabels()) + "}"
	}
	if m.GetN() == 0 && !math.IsNaN(m.GetMedian()) { // the platform has computed it
		return Clean(strings.TrimSpace(fmt.Sprintf("%s: %s %s", name, Number(m.GetMedian()), m.GetUnit())))
	}
	if m.GetN() == 0 {
		return Clean(fmt.Sprintf("%s: no numbers", name))
	}
	text := strings.TrimSpace(fmt.Sprintf("%s: median %s %s", name, Number(m.GetMedian()), m.GetUnit()))
	if m.GetInterval() != nil {
		text += ", " + Level(m.GetInterval()) + " from " + Number(m.GetInterval().GetLow()) + " to " + Number(m.GetInterval().GetHigh())
	}
	if m.GetDirection() != "" {
		text += ", " + m.GetDirection() + " is better"
	}
	samples := "samples"
	if m.GetN() == 1 {
		samples = "sample"
	}
	return Clean(fmt.Sprintf("%s, %d %s", text, m.GetN(), samples))
}

// Level is the confidence of an interval, rounded down: "95.2 %".
func Level(i *baiv1.Interval) string {
	return fmt.Sprintf("%.1f %%", math.Floor(1000*i.GetLevel())/10)
}

// A Line says one thing.
type Line struct{ Label, Value string }

// Environment is where a run ran, for people.
func Environment(e *baiv1.Environment) []Line {
	if e == nil {
		return nil
	}
	lines := []Line{{"Fingerprint", e.GetFingerprint()}, {"Digest", e.GetDescriptorSha256()}, {"Image", Clean(e.GetImage())}}
	for _, p := range e.GetPods() {
		lines = append(lines, pod(p)...)
	}
	return lines
}

func pod(p *baiv1.PodEnvironment) []Line {
	m := p.GetMachine()
	lines := []Line{
		{"Pod", fmt.Sprintf("%s-%d, attempt %d, platform %s", p.GetRole(), p.GetIndex(), p.GetAttempt(),
			orUnknown(p.GetPlatformVersion()))},
		{"Ran", p.GetImageDigest()},
		{"Node", list(m.GetNode(), m.GetHypervisor())},
		{"System", list("Linux "+m.GetKernel(), m.GetArchitecture(), m.GetOs())},
		{"Processor", list(m.GetCpuModel(), countText(m.GetCpus(), "logical processor"), countText(m.GetCores(), "core"),
			countText(m.GetSockets(), "socket"), countText(m.GetNumaNodes(), "NUMA node"))},
		{"Clock", clock(m)},
		{"Memory", Bytes(m.GetMemory())},
		{"Container", container(m)},
	}
	for _, g := range m.GetGpus() {
		lines = append(lines, Line{"GPU", list(g.GetModel(), bytesText(g.GetMemory()))})
	}
	lines = append(lines, Line{"GPU driver", list(m.GetGpuDriver(), withName("CUDA", m.GetCuda()))})
	for _, name := range slices.Sorted(maps.Keys(p.GetTools())) {
		lines = append(lines, Line{"Tool", name + ": " + p.GetTools()[name]})
	}
	for _, why := range p.GetUnknown() {
		lines = append(lines, Line{"Unknown", why})
	}
	for i := range lines {
		lines[i].Value = Clean(lines[i].Value)
	}
	return lines
}

func clock(m *baiv1.Machine) string {
	var most string
	if m.GetMaxMhz() > 0 {
		most = "up to " + Number(m.GetMaxMhz()) + " MHz"
	}
	return list(most, withName("governor", m.GetGovernor()), withName("turbo", m.GetTurbo()))
}

func container(m *baiv1.Machine) string {
	limit := "no limit of processors"
	if m.GetCpuLimit() > 0 {
		limit = "limit of " + Number(m.GetCpuLimit()) + " processors"
	}
	memory := "no limit of memory"
	if m.GetMemoryLimit() > 0 {
		memory = "limit of " + Bytes(m.GetMemoryLimit()) + " memory"
	}
	return list(countText(m.GetCpusAllowed(), "processor")+" to run on", limit, memory)
}

// list joins the parts that are not empty.
func list(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

func withName(name, value string) string {
	if value == "" {
		return ""
	}
	return name + " " + value
}

func bytesText(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return Bytes(bytes)
}

// countText is "2 cores", nothing for none.
func countText(n int32, what string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}
