package series

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// CSV is the points of series as a header and a row for each. A value that there is not is
// empty. The change is that of the first point of a new level.
func CSV(all []History) [][]string {
	rows := [][]string{{
		"metric", "unit", "labels", "cell", "direction", "point", "time", "run", "name", "version", "value",
		"low", "high", "level", "samples",
		"complete", "kind", "verdict", "magnitude", "p", "machine", "nodes", "image", "descriptor_sha256",
	}}
	for _, h := range all {
		changes := h.changesAt()
		for i, p := range h.GetPoints() {
			point := int32(i) //nolint:gosec // a message has fewer points
			rows = append(rows, h.csvRow(point, p, changes[point]))
		}
	}
	return rows
}

func (h History) csvRow(point int32, p *baiv1.HistoryPoint, c *baiv1.HistoryChange) []string {
	r := h.run(point)
	row := []string{
		h.GetMetric(), h.GetUnit(), printer.Labels(h.GetLabels()), h.GetCell(), h.GetDirection(),
		strconv.Itoa(int(point)), timeUTC(r.GetTime()),
		r.GetRunId(), r.GetName(), r.GetVersion(), exact(p.GetValue()),
	}
	row = append(row, ends(p.GetInterval())...)
	row = append(row, strconv.FormatInt(p.GetSamples(), 10), strconv.FormatBool(r.GetComplete()))
	if c == nil {
		row = append(row, "", "", "", "")
	} else {
		row = append(row, c.GetKind(), c.GetVerdict(), exact(c.GetMagnitude()), exact(c.GetP()))
	}
	return append(row, r.GetMachine(), strings.Join(r.GetNodes(), " "), r.GetImage(), r.GetDescriptorSha256())
}

func timeUTC(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

// exact is a number that is read back as the same, empty for NaN.
func exact(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return printer.Exact(x)
}

// ends are the ends of an interval and its level, empty without one.
func ends(i *baiv1.Interval) []string {
	if i == nil {
		return []string{"", "", ""}
	}
	return []string{exact(i.GetLow()), exact(i.GetHigh()), exact(i.GetLevel())}
}

// PowerCSV is what runs can show as a header and a row for each number of runs. Columns of the
// effect are empty without one.
func PowerCSV(all *baiv1.PlanPowerResponse, effect float64) [][]string {
	rows := [][]string{{
		"metric", "unit", "labels", "cell", "points", "lacking", "spread", "absolute", "runs_a_side", "change",
		"low", "high", "level", "hours",
		"effect", "needed", "needed_low", "needed_high", "cost", "currency",
	}}
	for _, s := range all.GetSeries() {
		for _, d := range s.GetDetectable() {
			rows = append(rows, append(powerRow(s, d, all.GetRunSeconds(), effect), costRow(d, all.GetRunCost())...))
		}
	}
	return rows
}

func powerRow(s *baiv1.SeriesPower, d *baiv1.DetectableChange, seconds, effect float64) []string {
	row := []string{
		s.GetMetric(), s.GetUnit(), printer.Labels(s.GetLabels()), s.GetCell(), fmt.Sprint(s.GetPoints()), fmt.Sprint(s.GetLacking()),
		exact(s.GetSpread()), strconv.FormatBool(s.GetAbsolute()), fmt.Sprint(d.GetRunsASide()),
	}
	if d.GetChange() == nil {
		row = append(row, "", "", "", "")
	} else {
		row = append(append(row, exact(d.GetChange().GetValue())), ends(d.GetChange().GetInterval())...)
	}
	hours := ""
	if cost := cost(d.GetRunsASide(), seconds); cost > 0 {
		hours = printer.Exact(cost.Hours())
	}
	row = append(row, hours)
	if n := s.GetNeeded(); n != nil {
		return append(row, exact(effect), count(n.GetRunsASide()), count(n.GetLow()), count(n.GetHigh()))
	}
	return append(row, "", "", "", "")
}

// costRow is what runs on both sides cost together, and its currency, empty if that is not known.
func costRow(d *baiv1.DetectableChange, price *baiv1.RunCost) []string {
	if price == nil {
		return []string{"", ""}
	}
	return []string{exact(2 * float64(d.GetRunsASide()) * price.GetAmount()), price.GetCurrency()}
}

// count is a number of runs, empty for one that is not known.
func count(runs int32) string {
	if runs == 0 {
		return ""
	}
	return fmt.Sprint(runs)
}
