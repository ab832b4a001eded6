package dispatch

import "time"

// Meter counts notices. Several goroutines use it.
type Meter interface {
	// RecordNotice counts a notice of a receiver that has a final status.
	RecordNotice(receiver, became string)
	// RecordWaiting notes the age of the oldest notice of a receiver that waits: 0 if none does, less if another process sends to the
	// receiver.
	RecordWaiting(receiver string, age time.Duration)
}

// noMeter counts nothing.
type noMeter struct{}

// RecordNotice implements Meter.
func (noMeter) RecordNotice(string, string) {}

// RecordWaiting implements Meter.
func (noMeter) RecordWaiting(string, time.Duration) {}

// Count has a meter count the notices. It must be called before Run.
func (d *Dispatcher) Count(m Meter) *Dispatcher {
	for _, w := range d.workers {
		w.meter = m
	}
	return d
}

// recordWaiting notes the age of the oldest notice that waits.
func (w *worker) recordWaiting() {
	age := time.Duration(0)
	if !w.oldest.IsZero() {
		age = max(w.now().Sub(w.oldest), 0)
	}
	w.meter.RecordWaiting(w.channel.Name, age)
}
