package series

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Power is what runs can show in one series.
type Power struct {
	*baiv1.SeriesPower

	seconds float64        // that a run takes; 0 if that is not known
	price   *baiv1.RunCost // of a run; nil if that is not known
}

// Powers returns the series of a response.
func Powers(all *baiv1.PlanPowerResponse) []Power {
	list := make([]Power, 0, len(all.GetSeries()))
	for _, s := range all.GetSeries() {
		list = append(list, Power{SeriesPower: s, seconds: all.GetRunSeconds(), price: all.GetRunCost()})
	}
	return list
}

// cost is how long runs on both sides take together; 0 if the time of a run is not known.
func cost(runsASide int32, seconds float64) time.Duration {
	total := 2 * float64(runsASide) * seconds * float64(time.Second)
	if !(total > 0) || total > math.MaxInt64/2 {
		return 0
	}
	return time.Duration(total)
}

// money is what runs on both sides cost together.
func money(runsASide int32, price *baiv1.RunCost) string {
	return printer.Money(2*float64(runsASide)*price.GetAmount(), price.GetCurrency())
}

// costText is a cost as people say it, empty if it is not known.
func costText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return printer.Precise(d)
}

// Table has a line for each number of runs.
func (p Power) Table(wide bool) printer.Table {
	t := printer.Table{Columns: []printer.Column{{Title: "RUNS A SIDE", Right: true}, {Title: "SMALLEST CHANGE", Right: true}}}
	if wide {
		t.Columns = append(t.Columns, printer.Column{Title: "INTERVAL"})
	}
	if p.seconds > 0 {
		t.Columns = append(t.Columns, printer.Column{Title: "RUN TIME", Right: true})
	}
	if p.price != nil {
		t.Columns = append(t.Columns, printer.Column{Title: "COST", Right: true})
	}
	for _, d := range p.GetDetectable() {
		row := []string{strconv.Itoa(int(d.GetRunsASide())), p.change(d)}
		if wide {
			row = append(row, p.changeInterval(d))
		}
		if p.seconds > 0 {
			row = append(row, costText(cost(d.GetRunsASide(), p.seconds)))
		}
		if p.price != nil {
			row = append(row, money(d.GetRunsASide(), p.price))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// change is the smallest change that runs show, "none" if they show none.
func (p Power) change(d *baiv1.DetectableChange) string {
	switch c := d.GetChange(); {
	case c == nil:
		return "none"
	case c.GetRelative():
		return share(c.GetValue())(c.GetValue()) + " %"
	default:
		return strings.TrimSuffix(printer.Number(c.GetValue())+" "+p.GetUnit(), " ")
	}
}

func (p Power) changeInterval(d *baiv1.DetectableChange) string {
	c := d.GetChange()
	form := printer.Number
	if c.GetRelative() {
		form = share(c.GetValue())
	}
	return intervalText(c.GetInterval(), form)
}

// share returns a function that writes shares as percents without a sign.
func share(x float64) func(float64) string {
	form := printer.PercentForm(x)
	return func(x float64) string { return strings.TrimPrefix(form(x), "+") }
}

// Title is "rate (MB/s): the spread is 1.2 %, from 30 points".
func (p Power) Title() string {
	points := printer.Plural(p.GetPoints(), "point") + " of the newest level"
	switch {
	case p.GetLacking() > 0:
		return fmt.Sprintf("%s: %s, %d more needed to know the spread", Name(p), points, p.GetLacking())
	case math.IsNaN(p.GetSpread()):
		return fmt.Sprintf("%s: %s, whose spread is not known", Name(p), points)
	case p.GetAbsolute():
		return fmt.Sprintf("%s: the spread of runs is %s, from %s", Name(p),
			strings.TrimSuffix(printer.Number(p.GetSpread())+" "+p.GetUnit(), " "), points)
	}
	return fmt.Sprintf("%s: the spread of runs is %s %%, from %s", Name(p), share(p.GetSpread())(p.GetSpread()), points)
}

// Answer says how many runs show an effect, as "2%"; empty without an effect, or where the
// spread is not known.
func (p Power) Answer(effect string) string {
	n := p.GetNeeded()
	switch {
	case n == nil || p.GetLacking() > 0:
		return ""
	case p.GetAbsolute():
		return fmt.Sprintf("no number of runs shows %s: the median is 0, so that a change has no percents", effect)
	case n.GetRunsASide() == 0:
		return fmt.Sprintf("%s is not shown by 10,000 runs a side", effect)
	}
	text := fmt.Sprintf("%s is shown by %d runs a side", effect, n.GetRunsASide())
	switch low, high := n.GetLow(), n.GetHigh(); {
	case low > 0 && high == 0:
		text += fmt.Sprintf(" (%d to more than 10,000)", low)
	case low > 0 && low < high:
		text += fmt.Sprintf(" (%d to %d)", low, high)
	}
	if total := cost(n.GetRunsASide(), p.seconds); total > 0 {
		text += fmt.Sprintf(", which take %s together", printer.Precise(total))
		if p.price != nil {
			text += " and cost " + money(n.GetRunsASide(), p.price)
		}
	}
	return text
}

// PowerNotes are sentences about all series.
func PowerNotes(all *baiv1.PlanPowerResponse) []string {
	notes := []string{"runs show a change of this size or a larger one with a probability of 80 %, in a test at 5 %"}
	if c := all.GetRunCost(); c != nil {
		notes = append(notes, fmt.Sprintf("a run costs %s, the median of the newest %s", printer.Money(c.GetAmount(), c.GetCurrency()),
			printer.Plural(c.GetRuns(), "run")))
	}
	if s := all.GetRunSeconds(); s > 0 {
		return append(notes, fmt.Sprintf("a run takes %s: run times are those of both sides, one run after another",
			printer.Precise(time.Duration(s*float64(time.Second)))))
	}
	return append(notes, "the time that a run takes is not known")
}
