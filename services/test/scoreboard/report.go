package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// report writes the page: how it was measured, the scores as tables, and where the
// detector is worse than others. The same scores give the same bytes.
func report(w io.Writer, all []family, s sizes, scores []score) error {
	var page bytes.Buffer
	introduce(&page, all, s)
	tableOfFalse(&page, scores)
	tableOfHits(&page, scores)
	tableOfDetail(&page, scores)
	fmt.Fprintf(&page, "\n## Where it is worse\n\n* %s\n", strings.Join(weaknesses(scores), "\n* "))
	_, err := w.Write(page.Bytes())
	return err
}

func introduce(w io.Writer, all []family, s sizes) {
	fmt.Fprint(w, `# How good the detector is

<!-- Made by `+"`make scoreboard`"+`: change services/test/scoreboard, not this file. -->

The [detector](../services/analyst/judge/changepoint) finds where the level of a series of results changed. This page says
how often it is right, beside [Apache Otava's method](../services/analyst/judge/otava) with its window of 50 rows and two
simple rules, on series of which the truth is known. `+"`make scoreboard`"+` draws the series from a seed in the code and
writes this page: the same detector gives the same page.

## How it is measured

`)
	fmt.Fprintf(w, `* **Series without a change**: %d for each family, of 40, 100, 200 and 400 rows in turn. Every change that a method
  says is false.
* **Series with changes**: %d for each family, of 100, 200 and 400 rows in turn. Half of them have a step of 1 to 5
  standard deviations (sd) of the family's noise, up or down; a quarter a ramp of 2 to 5 sd over 4 to 11 rows; a quarter a
  step of 1.5 to 5 sd there and, 10 to 29 rows later, back, which are two changes.
* **Hit**: a change within 3 rows of a planted one, of a ramp within 3 rows of any of its rows. Each planted change has one
  hit at most.
* **Replay**: %d series without a change for each family, of 40, 100 and 200 rows in turn, row by row. Every change that was
  ever said counts, also one that was withdrawn later.
* **Delay**: %d series for each family, with a step of 3 sd, row by row: how many rows after its first one it is said, or
  never, if that takes 30 rows or more.
* **Units**: all series have the level 100, and each a unit of its own: the sd of its noise is between 0.125 and 8, about 1
  for the median.
* **Otava at the same rate** has, for each family, that p with which it says as many false changes as the detector. The hits
  are interpolated between two values of p on a grid from 0.2 to 1e-30. Nobody can choose p so for series of their own,
  whose family they do not know: this compares the methods alone. Where the detector says only a few false changes, that p
  is uncertain.
* **10 %%** is the rule "more than 10 %% from the last result". **t** is the rule "outside of the 99 %% prediction interval,
  by Student's t, of the last 20 results", from 10 results on. Rows of an alarm that follow each other count once.
* **Intervals** in brackets are of 95 %%: of a rate exact for Poisson counts (Garwood), of a share Wilson's. Changes of one
  series may depend on each other, which makes the true interval of a rate wider.

| family | noise, of mean 0 and sd about 1; drift and bursts come on top |
|---|---|
`, s.still, s.changed, s.grow, s.steps)
	for _, f := range all {
		fmt.Fprintf(w, "| %s | %s |\n", f.name, f.is)
	}
}

func tableOfFalse(w io.Writer, scores []score) {
	fmt.Fprint(w, `
## False changes for each 1000 points without a change

| family | detector | replay | otava, p 0.001 | otava, p 1e-5 | 10 % | t |
|---|---|---|---|---|---|---|
`)
	for _, s := range scores {
		rowOfFalse(w, s)
	}
	rowOfFalse(w, total(scores))
}

// total is what all families have together.
func total(scores []score) score {
	sum := score{family: "**all**"}
	for _, s := range scores {
		sum.detector.add(s.detector)
		sum.usual.add(s.usual)
		sum.strict.add(s.strict)
		sum.last.add(s.last)
		sum.window.add(s.window)
		sum.replay.add(s.replay)
		sum.equal.hits += s.equal.hits / float64(len(scores))
	}
	return sum
}

func rowOfFalse(w io.Writer, s score) {
	fmt.Fprintf(w, "| %s | %s | %s | %.2f | %.2f | %.1f | %.1f |\n", s.family, rateText(s.detector.false), rateText(s.replay),
		s.usual.false.per1000(), s.strict.false.per1000(), s.last.false.per1000(), s.window.false.per1000())
}

func tableOfHits(w io.Writer, scores []score) {
	fmt.Fprint(w, `
## Hits, of all planted changes

A method that says many false changes hits some by chance: with 40 for each 1000 points, about every fourth planted step.

| family | detector | otava at the same rate | its p | otava, p 0.001 | otava, p 1e-5 | 10 % | t |
|---|---|---|---|---|---|---|---|
`)
	for _, s := range scores {
		rowOfHits(w, s, pText(s.equal.p))
	}
	rowOfHits(w, total(scores), "")
}

func rowOfHits(w io.Writer, s score, p string) {
	fmt.Fprintf(w, "| %s | %.3f %s | %.3f | %s | %.3f | %.3f | %.3f | %.3f |\n",
		s.family, s.detector.hits.of(), interval(wilson(s.detector.hits)), s.equal.hits, p,
		s.usual.hits.of(), s.strict.hits.of(), s.last.hits.of(), s.window.hits.of())
}

func tableOfDetail(w io.Writer, scores []score) {
	fmt.Fprint(w, `
## The detector's hits

By the size of the planted change in sd. **Extra** are the changes for each 1000 points of series with changes that are no
hit; those that are more than 3 rows off are among them. **Direction** is the share of hits with the right one. **Covered** is
the share of hits of steps for which the 95 % interval of the shift covers the planted size: a step is hit more easily where
the noise makes it look larger, so this share can be below 0.95 even of right intervals. With a slow drift, the levels on both
sides of a step have the drift in them. **Delay** is the median, with the 10th and the 90th of 100.

| family | 1–2 | 2–3 | 3–4 | 4–5 | extra | direction | covered | delay of 3 sd |
|---|---|---|---|---|---|---|---|---|
`)
	for _, s := range append(slices.Clone(scores), total(scores)) {
		d := s.detector
		fmt.Fprintf(w, "| %s |", s.family)
		for _, c := range d.bySize {
			fmt.Fprintf(w, " %s |", shareText(c))
		}
		fmt.Fprintf(w, " %.2f | %s | %s | %s |\n", d.extra.per1000(), shareText(d.direction), shareText(d.covered), delayText(s.delays))
	}
}

// weaknesses returns sentences that say where the detector is worse than something else.
func weaknesses(scores []score) []string {
	all := total(scores)
	return []string{
		fmt.Sprintf("Over all families it hits %.3f, with %.2f false changes for each 1000 points; otava with its default p %.3f, with %.2f.",
			all.detector.hits.of(), all.detector.false.per1000(), all.usual.hits.of(), all.usual.false.per1000()),
		where(scores, "It has fewer hits than otava at the same rate of false changes in", func(s score) (string, bool) {
			return fmt.Sprintf("%s (%.3f, otava %.3f)", s.family, s.detector.hits.of(), s.equal.hits), s.detector.hits.of() < s.equal.hits
		}),
		where(scores, "Otava with its default p of 0.001 has more hits, with the false changes that the first table says, in",
			moreHits(usual)),
		where(scores, "With a p of 1e-5 it has more in", moreHits(strict)),
		where(scores, `The rule "10 %" has more in`, moreHits(last)),
		where(scores, `The rule "t" has more in`, moreHits(window)),
		where(scores, "The detector says more false changes than otava with a p of 1e-5 in", func(s score) (string, bool) {
			d, o := s.detector.false, s.strict.false
			return fmt.Sprintf("%s (%.2f, otava %.2f)", s.family, d.per1000(), o.per1000()), d.count > o.count
		}),
		where(scores, "It says more than 1 false change for each 1000 points in", func(s score) (string, bool) {
			return fmt.Sprintf("%s (%.2f)", s.family, s.detector.false.per1000()), s.detector.false.per1000() > 1
		}),
		where(scores, "A replay says more than 3 changes, withdrawn ones too, for each 1000 points in", func(s score) (string, bool) {
			return fmt.Sprintf("%s (%.2f)", s.family, s.replay.per1000()), s.replay.per1000() > 3
		}),
		where(scores, "It hits less than half of the changes of 1 to 2 sd in", func(s score) (string, bool) {
			return fmt.Sprintf("%s (%.2f)", s.family, s.detector.bySize[0].of()), s.detector.bySize[0].of() < 0.5
		}),
		where(scores, "It needs more than 7 rows after the first one of a step of 3 sd (a rule: none) in", func(s score) (string, bool) {
			return fmt.Sprintf("%s (%s)", s.family, delayText(s.delays)), len(s.delays) > 0 && s.delays[len(s.delays)/2] > 7
		}),
		where(scores, "Its interval of the shift covers less than 0.9 of the planted sizes in", func(s score) (string, bool) {
			return fmt.Sprintf("%s (%.2f)", s.family, s.detector.covered.of()), s.detector.covered.of() < 0.9
		}),
	}
}

func usual(s score) mark  { return s.usual }
func strict(s score) mark { return s.strict }
func last(s score) mark   { return s.last }
func window(s score) mark { return s.window }

// moreHits says the hits of another method, and whether it has more than the detector.
func moreHits(of func(score) mark) func(score) (string, bool) {
	return func(s score) (string, bool) {
		other := of(s).hits.of()
		return fmt.Sprintf("%s (%.3f)", s.family, other), other > s.detector.hits.of()
	}
}

// where is a sentence that ends with the families for which something is true.
func where(scores []score, begin string, is func(score) (string, bool)) string {
	var names []string
	for _, s := range scores {
		if name, ok := is(s); ok {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return begin + " no family."
	case 1:
		return begin + " 1 family: " + names[0] + "."
	}
	return fmt.Sprintf("%s %d families: %s.", begin, len(names), strings.Join(names, "; "))
}

func rateText(r rate) string {
	low, high := poisson(r.count)
	thousands := float64(max(1, r.points)) / 1000
	return fmt.Sprintf("%.2f %s", r.per1000(), interval(low/thousands, high/thousands))
}

func interval(low, high float64) string { return fmt.Sprintf("[%.2f, %.2f]", low, high) }

func shareText(s share) string {
	if s.all == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", s.of())
}

func pText(p float64) string { return fmt.Sprintf("%.0e", p) }

// delayText is the median of delays in order, and the ends of 8 of 10.
func delayText(sorted []int) string {
	if len(sorted) == 0 {
		return "–"
	}
	at := func(share float64) string {
		d := sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
		if d == missed {
			return "never"
		}
		return strconv.Itoa(d)
	}
	return fmt.Sprintf("%s (%s to %s)", at(0.5), at(0.1), at(0.9))
}
