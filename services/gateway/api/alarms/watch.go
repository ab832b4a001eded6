package alarms

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/analyst/incident"
	"github.com/benchmark-ai/bai/services/gateway/alarm"
	"github.com/benchmark-ai/bai/services/gateway/api/request"
	"github.com/benchmark-ai/bai/services/gateway/rpc"
)

// incidentsInterval is the time between two looks at the incidents of a team.
const incidentsInterval = 2 * time.Second

// WatchIncidents implements bai.v1.AlarmService.
func (s *Server) WatchIncidents(req *baiv1.WatchIncidentsRequest, stream grpc.ServerStreamingServer[baiv1.WatchIncidentsResponse]) error {
	w := incidentWatch{send: func(i *baiv1.Incident) error { return stream.Send(&baiv1.WatchIncidentsResponse{Incident: i}) }}
	if after := req.GetChangedAfter(); after != nil {
		if after.CheckValid() != nil {
			return rpc.InvalidArgument("changed_after", "is no time", "give seconds and nanoseconds of a time between the years 1 and 9999")
		}
		w.changedAfter = after.AsTime()
	}
	if err := stream.SendHeader(nil); err != nil { // the header tells the client that the call has begun
		return err
	}
	f := alarm.IncidentFilter{Task: req.GetTask(), Metric: req.GetMetric()}
	for {
		all, err := s.Alarms.Watched(stream.Context(), request.Namespace(req), f)
		if err != nil {
			return err
		}
		if err := w.look(all); err != nil {
			return err
		}
		if err := pause(stream.Context(), incidentsInterval); err != nil {
			return err
		}
	}
}

// pause waits, unless ctx is done before: its error is that of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// incidentWatch sends incidents that have changed.
type incidentWatch struct {
	changedAfter time.Time                    // when the client saw the last change; zero if it saw none
	seen         map[string][sha256.Size]byte // digests of the incidents at the last look, by their IDs; nil before the first one
	send         func(*baiv1.Incident) error
}

// look sends those of all incidents that have changed since the last look. The first look has only those that are open, or that the client
// has missed.
func (w *incidentWatch) look(all []incident.Incident) error {
	now := make(map[string][sha256.Size]byte, len(all))
	for _, i := range all {
		i.Recent = nil
		out := incidentOf(i)
		digest, err := digestOf(out)
		if err != nil {
			return err
		}
		now[i.ID] = digest
		if digest == w.seen[i.ID] || w.seen == nil && i.State.Over() && !w.missed(i) {
			continue
		}
		if err := w.send(out); err != nil {
			return err
		}
	}
	w.seen = now
	return nil
}

// missed reports whether an incident has changed since the client saw the last change.
func (w *incidentWatch) missed(i incident.Incident) bool {
	return !w.changedAfter.IsZero() && i.Updated.After(w.changedAfter)
}

// digestOf returns a digest of a message.
func digestOf(m proto.Message) (digest [sha256.Size]byte, err error) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return digest, fmt.Errorf("write an incident: %w", err)
	}
	return sha256.Sum256(text), nil
}
