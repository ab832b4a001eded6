package main

import (
	"fmt"
	"math"

	"github.com/benchmark-ai/bai/services/analyst/judge/changepoint"
	"github.com/benchmark-ai/bai/services/analyst/judge/otava"
)

// A found is a change that a method found.
type found struct {
	row       int
	shift     float64
	low, high float64 // an interval of the shift, if the method has one
}

// A method finds the changes of a series.
type method func(rows []float64) ([]found, error)

// byDetector is the detector of the platform.
func byDetector(d changepoint.Detector) method {
	return func(rows []float64) ([]found, error) {
		var all []found
		for _, c := range d.Analyse(rows).Changes {
			all = append(all, found{row: c.Index, shift: c.Shift, low: c.ShiftInterval.Low, high: c.ShiftInterval.High})
		}
		return all, nil
	}
}

// byOtava is the method of Apache Otava with a limit of p.
func byOtava(p float64) method {
	return func(rows []float64) ([]found, error) {
		changes, err := otava.Find(rows, otava.Options{P: p})
		if err != nil {
			return nil, fmt.Errorf("otava at p %g: %w", p, err)
		}
		all := make([]found, len(changes))
		for i, c := range changes {
			all[i] = found{row: c.Index, shift: c.After - c.Before}
		}
		return all, nil
	}
}

// byLast is the rule "more than 10 % from the last result".
func byLast(rows []float64) ([]found, error) {
	return alarms(rows, func(before []float64, v float64) float64 {
		if len(before) == 0 {
			return 0
		}
		last := before[len(before)-1]
		if math.Abs(v-last) > 0.1*math.Abs(last) {
			return v - last
		}
		return 0
	}), nil
}

// byWindow is the rule "outside of a 99 % prediction interval of the last 20 results". It
// speaks once there are 10 results.
func byWindow(rows []float64) ([]found, error) {
	return alarms(rows, func(before []float64, v float64) float64 {
		before = before[max(0, len(before)-20):]
		if len(before) < 10 {
			return 0
		}
		mean, half := prediction(before)
		if math.Abs(v-mean) > half {
			return v - mean
		}
		return 0
	}), nil
}

// prediction returns the middle of a 99 % prediction interval for one more value, by
// Student's t, and half of its width. It takes 10 to 20 values.
func prediction(values []float64) (mean, half float64) {
	quantiles := [...]float64{3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861} // of 9 to 19 degrees
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	squares := 0.0
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	return mean, quantiles[len(values)-10] * math.Sqrt(squares/(n-1)*(1+1/n))
}

// alarms returns the results at which a rule sees a shift. Those that follow each other
// count as one.
func alarms(rows []float64, rule func(before []float64, v float64) float64) []found {
	var all []found
	var before []float64
	ringing := false
	for i, v := range rows {
		if math.IsNaN(v) {
			continue
		}
		shift := rule(before, v)
		if shift != 0 && !ringing {
			all = append(all, found{row: i, shift: shift})
		}
		ringing = shift != 0
		before = append(before, v)
	}
	return all
}
