package fetcher

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/dataset"
	"github.com/benchmark-ai/bai/services/dataset/source"
	"github.com/benchmark-ai/bai/services/fetcher/queue"
	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/internal/store"
)

// sourcesOf returns the data sets of a descriptor in order: its data, then the models
// of its server.
func sourcesOf(d *descriptors.Descriptor) []dataset.Source {
	declared := d.Data.Sources
	if d.Server != nil {
		declared = append(slices.Clip(declared), d.Server.Models...)
	}
	var all []dataset.Source
	for _, s := range declared {
		all = append(all, dataset.Source{
			URL: s.Src, Path: s.Path, MD5: strings.ToLower(s.MD5), SHA256: strings.ToLower(s.SHA256),
			Unpack: s.Unpack, Writable: !s.ReadOnly,
		})
	}
	return all
}

// uploadedCode returns the code that was sent along with a run as a source, or none
// without code.
func uploadedCode(code *event.Bundle) []dataset.Source {
	if code == nil {
		return nil
	}
	d := pod.Code(*code)
	return []dataset.Source{{URL: d.Source, Path: d.Path, SHA256: d.SHA256, Unpack: d.Unpack, Writable: d.Writable, Uploaded: true}}
}

// eventsOf returns the event for the outcome of a run's order.
func eventsOf(e dataset.Ending, run event.Submitted) []event.Event {
	if e.Finished != nil {
		return []event.Event{*e.Finished}
	}
	return []event.Event{fetched(run, e.Data)}
}

// fetched returns the event for a run whose data are all stored.
func fetched(run event.Submitted, data []event.Data) event.Fetched {
	if data == nil {
		data = []event.Data{}
	}
	return event.Fetched{
		Header: run.Cause("fetched", ""), Name: run.Name, File: run.File, Descriptor: run.Descriptor,
		Labels: run.Labels, Data: data,
	}
}

// decision is the plan for an order. Exactly one of RunEnded, Ending and Missing is
// set.
type decision struct {
	RunEnded      bool             // the run has finished, and no event follows
	Ending        *dataset.Ending  // outcome of the order
	AlreadyStored bool             // Ending was stored before
	Missing       []dataset.Source // sources to download, each once
	Status        event.Status     // report to the user; set with Missing
}

// runState tells whether a run still needs its data.
type runState int

// States of a run.
const (
	runActive    runState = iota
	runCanceling          // the run has a cancel mark
	runEnded              // the run has finished, for any reason
)

// decide returns the plan for an order, given the state of its run and the states of
// its sources by key.
func decide(o dataset.Order, state runState, states map[string]dataset.SourceState) decision {
	switch state {
	case runEnded:
		return decision{RunEnded: true}
	case runCanceling:
		return decision{Ending: &dataset.Ending{Finished: new(canceled(o.Submitted))}}
	case runActive:
	}
	var (
		missing []dataset.Source
		data    []event.Data
		fetched int
		seen    = make(map[string]bool)
	)
	for _, s := range o.Sources {
		a, first := states[s.Key()], !seen[s.Key()]
		seen[s.Key()] = true
		switch {
		case a.Failure != nil:
			return decision{Ending: &dataset.Ending{Finished: new(failed(o.Submitted, *a.Failure))}}
		case a.Object != nil:
			fetched++
			data = append(data, event.Data{
				Source: source.Redact(s.URL), Path: s.Path, Object: a.Object.Key, SHA256: a.Object.SHA256, Size: a.Object.Size,
				Unpack: s.Unpack || a.Tree != nil, Writable: s.Writable, Revision: a.Revision,
			})
		case first:
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return decision{Ending: &dataset.Ending{Data: data}}
	}
	return decision{Missing: missing, Status: fetchingStatus(o.Submitted, fetched, len(o.Sources))}
}

// unpublishable returns the end of a run whose stored outcome cannot be published.
func unpublishable(run event.Submitted) event.Finished {
	return failed(run, dataset.Failure{
		Reason: event.PoisonedEvent, Class: event.ClassPlatform,
		Message: "what became of its data cannot be written as an event: have the fetcher's log looked into, and submit it again",
	})
}

// failed returns the end of a run that failed.
func failed(run event.Submitted, f dataset.Failure) event.Finished {
	f = f.Truncated()
	return event.Finished{
		Header: run.Cause("fetcher/finished", ""), Outcome: event.Failed, Class: f.Class,
		Reason: f.Reason, Message: f.Message,
	}
}

// canceled returns the end of a run that was canceled before its launch.
func canceled(run event.Submitted) event.Finished {
	return event.Finished{
		Header: run.Cause("fetcher/finished", ""), Outcome: event.Canceled,
		Reason: event.CanceledByUser, Message: "canceled while its data sets were fetched",
	}
}

// fetchingStatus returns a status with the number of fetched data sets of a run.
func fetchingStatus(run event.Submitted, fetched, total int) event.Status {
	return status(run, "", fetching(fetched, total), event.Progress{Done: int64(fetched), Total: int64(total), Unit: "items"})
}

// fetching returns the text for all data sets of a run, of which some may be fetched
// already.
func fetching(there, all int) string {
	text := fmt.Sprintf("fetching %d data sets", all)
	if all == 1 {
		text = "fetching 1 data set"
	}
	if there > 0 {
		text += fmt.Sprintf(" (%d done)", there)
	}
	return text
}

// progressStatus returns a status with the progress of a run's downloads.
func progressStatus(p queue.Progress) event.Status {
	text := fetching(p.SetsFetched, p.SetsTotal) + ": " + dataset.Size(p.Done)
	if p.Total > 0 {
		text += " of " + dataset.Size(p.Total)
	}
	text += fmt.Sprintf(", %s/s", dataset.Size(p.Rate))
	return status(p.Run, "", text, event.Progress{Done: p.Done, Total: p.Total, Unit: "bytes"})
}

// noSpaceStatus returns the status of a run whose source of total bytes (-1: unknown)
// waits for space, with the free space.
func noSpaceStatus(run event.Submitted, s dataset.Source, total int64, space store.Space) event.Status {
	return status(run, event.NoSpace, "the object store is full: "+noSpaceText(source.Redact(s.URL), total, space), event.Progress{})
}

// noSpaceText tells how much space a source of total bytes needs, and how to free some.
func noSpaceText(name string, total int64, space store.Space) string {
	text := name + " waits for room"
	if total >= 0 && space.Free >= 0 {
		text = fmt.Sprintf("%s needs %s, %s free", name, dataset.Size(total), dataset.Size(space.Free))
	}
	return text + " (baictl data evict makes room, and so does the end of other runs)"
}

// waitStatus returns a status with the reason why an order waits, so that the run does
// not look stalled. Each minute gives another event.
func waitStatus(w queue.Wait) event.Status {
	name, why := source.Redact(w.Source.URL), event.Reason("")
	text := fetching(w.SetsFetched, w.SetsTotal) + ": "
	switch {
	case w.StoreFull:
		why = event.NoSpace
		text += "the object store is full: " + noSpaceText(name, w.Total, w.Space)
	case w.Reason != "":
		text += name + ": " + dataset.Clip(w.Reason, dataset.MaxMessage/4)
	case w.Started:
		text += name + " sends nothing"
	case w.Retrying:
		text += "retrying " + name + " after a fault of the platform"
	default:
		text += fmt.Sprintf("%s waits for a free transfer (%d ahead)", name, w.QueuePosition)
	}
	if minutes := int(w.Waited / time.Minute); minutes > 0 {
		text += fmt.Sprintf(", for %d min", minutes)
	}
	return status(w.Order.Submitted, why, text, event.Progress{Done: int64(w.SetsFetched), Total: int64(w.SetsTotal), Unit: "items"})
}

// Limits of the time that an order waits without a report. The gateway regards a run
// without an event for 15 minutes as stalled.
const (
	minHeartbeat = 4 * time.Minute
	maxHeartbeat = 10 * time.Minute
)

// heartbeatInterval returns how long an order may wait without a report, given the
// number of orders. The more orders there are, the longer it is.
func heartbeatInterval(orders int) time.Duration {
	return min(minHeartbeat+time.Duration(orders)*intervalPerRun, maxHeartbeat)
}

// status returns a status for the user. The same text with the same progress gives the
// same event.
func status(run event.Submitted, why event.Reason, text string, p event.Progress) event.Status {
	text = dataset.Clip(text, dataset.MaxMessage)
	s := event.Status{
		Header: run.Cause("fetcher/status", fmt.Sprintf("%s %d/%d", text, p.Done, p.Total)),
		Phase:  event.PhaseFetching, Reason: why, Message: text,
	}
	if p.Unit != "" {
		s.Progress = &p
	}
	return s
}

// pastFetching reports whether a run is in a phase after fetching. The fetcher must not
// end such a run, even if its descriptor is invalid by now.
func pastFetching(p event.Phase) bool {
	return p != event.PhaseSubmitted && p != event.PhaseFetching && p != ""
}
