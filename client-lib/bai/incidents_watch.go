package bai

import (
	"context"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// clockSkew is how far the clocks of the processes that change incidents may differ.
const clockSkew = time.Minute

// WatchIncidents returns the incidents that a request selects and that are open, without their
// recent points, then each one that is new or has changed, until ctx ends or the caller stops.
// Once the platform was reached it outlives broken connections and restarts of the platform.
// After an error there is nothing more. The error is an UnsupportedError for a platform that
// has no such watch.
func (c *Client) WatchIncidents(ctx context.Context, req *baiv1.WatchIncidentsRequest) iter.Seq2[*baiv1.Incident, error] {
	return func(yield func(*baiv1.Incident, error) bool) {
		w := incidentWatch{client: c, request: proto.CloneOf(req), seen: map[string]*baiv1.Incident{}, yield: yield}
		if err := c.follow(ctx, w.open); err != nil {
			yield(nil, fmt.Errorf("watch incidents: %w", err))
		}
	}
}

type incidentWatch struct {
	client  *Client
	request *baiv1.WatchIncidentsRequest
	seen    map[string]*baiv1.Incident // as they were handed out last, by their IDs
	newest  time.Time                  // of their changes
	yield   func(*baiv1.Incident, error) bool
}

func (w *incidentWatch) open(ctx context.Context, p streamWatchdog) error {
	if !w.newest.IsZero() {
		w.request.ChangedAfter = timestamppb.New(w.newest.Add(-clockSkew))
	}
	stream, err := w.client.alarms.WatchIncidents(ctx, w.request)
	if err != nil {
		return err
	}
	p.onHeader(stream.Header())
	err = receiveAll(stream.Recv, p, func(res *baiv1.WatchIncidentsResponse) bool { return w.next(res.GetIncident()) })
	if err == nil {
		return &UnavailableError{Target: w.client.target, Message: "it ended the watch of incidents"}
	}
	return err
}

// next hands out an incident that is not known as it is, and reports whether more are wanted.
func (w *incidentWatch) next(i *baiv1.Incident) bool {
	if proto.Equal(i, w.seen[i.GetId()]) {
		return true
	}
	w.seen[i.GetId()] = i
	if at := i.GetUpdateTime().AsTime(); at.After(w.newest) {
		w.newest = at
	}
	return w.yield(i, nil)
}
