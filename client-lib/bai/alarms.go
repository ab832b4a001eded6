package bai

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// pageOfAlarms is how many incidents, mutes or notices one request lists unless it says so.
const pageOfAlarms = 500

// Incidents returns the incidents that a request selects, the newest first, without their
// recent points. It asks for pages as they are needed, and changes nothing in the request.
// After an error there is nothing more. The error is an UnsupportedError for a platform
// without incidents.
func (c *Client) Incidents(ctx context.Context, req *baiv1.ListIncidentsRequest) iter.Seq2[*baiv1.Incident, error] {
	return func(yield func(*baiv1.Incident, error) bool) {
		req := proto.CloneOf(req)
		req.PageSize = orPage(req.GetPageSize())
		yieldPages(yield, func(token string) (*baiv1.ListIncidentsResponse, error) {
			req.PageToken = token
			res, err := callWithRetry(ctx, c, c.alarms.ListIncidents, req)
			if err != nil {
				return nil, fmt.Errorf("list incidents: %w", err)
			}
			return res, nil
		}, (*baiv1.ListIncidentsResponse).GetIncidents)
	}
}

// Incident returns an incident of a team, empty for the default one, with its recent points.
// It is named by its ID or by the beginning of it, of 6 characters or more, that no other
// incident of the team has.
func (c *Client) Incident(ctx context.Context, namespace, id string) (*baiv1.Incident, error) {
	res, err := callWithRetry(ctx, c, c.alarms.GetIncident, &baiv1.GetIncidentRequest{Incident: id, Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("get incident %q: %w", id, withNotFoundKind("incident", err))
	}
	return res.GetIncident(), nil
}

// AckIncident says something of an incident, as the client's user, and returns the incident
// as that makes it. A second call changes nothing. It returns an InvalidError for an
// incident that is over.
func (c *Client) AckIncident(ctx context.Context, req *baiv1.AckIncidentRequest) (*baiv1.Incident, error) {
	res, err := callWithRetry(ctx, c, c.alarms.AckIncident, req)
	if err != nil {
		return nil, fmt.Errorf("acknowledge incident %q: %w", req.GetIncident(), withNotFoundKind("incident", err))
	}
	return res.GetIncident(), nil
}

// CreateMute keeps the notices of some tasks from being sent until a time. A second call
// with the same request returns the same mute.
func (c *Client) CreateMute(ctx context.Context, req *baiv1.CreateMuteRequest) (*baiv1.Mute, error) {
	res, err := callWithRetry(ctx, c, c.alarms.CreateMute, req)
	if err != nil {
		return nil, fmt.Errorf("mute: %w", err)
	}
	return res.GetMute(), nil
}

// Mutes returns the mutes of a team, empty for the default one, the newest first; also those
// that have ended, if ended is true. After an error there is nothing more.
func (c *Client) Mutes(ctx context.Context, namespace string, ended bool) iter.Seq2[*baiv1.Mute, error] {
	return func(yield func(*baiv1.Mute, error) bool) {
		yieldPages(yield, func(token string) (*baiv1.ListMutesResponse, error) {
			res, err := callWithRetry(ctx, c, c.alarms.ListMutes,
				&baiv1.ListMutesRequest{Namespace: namespace, Ended: ended, PageSize: pageOfAlarms, PageToken: token})
			if err != nil {
				return nil, fmt.Errorf("list mutes: %w", err)
			}
			return res, nil
		}, (*baiv1.ListMutesResponse).GetMutes)
	}
}

// DeleteMute ends a mute of a team, and reports whether it existed. It is named as an
// incident is.
func (c *Client) DeleteMute(ctx context.Context, namespace, id string) (existed bool, err error) {
	res, err := callWithRetry(ctx, c, c.alarms.DeleteMute, &baiv1.DeleteMuteRequest{Mute: id, Namespace: namespace})
	if err != nil {
		return false, fmt.Errorf("remove mute %q: %w", id, err)
	}
	return res.GetExisted(), nil
}

// Notices returns the log of the notices that a request selects, the newest first. It asks
// for pages as they are needed, and changes nothing in the request. After an error there is
// nothing more.
func (c *Client) Notices(ctx context.Context, req *baiv1.ListNoticesRequest) iter.Seq2[*baiv1.Notice, error] {
	return func(yield func(*baiv1.Notice, error) bool) {
		req := proto.CloneOf(req)
		req.PageSize = orPage(req.GetPageSize())
		yieldPages(yield, func(token string) (*baiv1.ListNoticesResponse, error) {
			req.PageToken = token
			res, err := callWithRetry(ctx, c, c.alarms.ListNotices, req)
			if err != nil {
				return nil, fmt.Errorf("list notices: %w", withNotFoundKind("incident", err))
			}
			return res, nil
		}, (*baiv1.ListNoticesResponse).GetNotices)
	}
}

// Receivers returns the names of the receivers that a team, empty for the default one, may use.
func (c *Client) Receivers(ctx context.Context, namespace string) ([]string, error) {
	res, err := callWithRetry(ctx, c, c.alarms.ListReceivers, &baiv1.ListReceiversRequest{Namespace: namespace})
	if err != nil {
		return nil, fmt.Errorf("list receivers: %w", err)
	}
	var names []string
	for _, r := range res.GetReceivers() {
		names = append(names, r.GetName())
	}
	return names, nil
}

// TestReceiver has the platform send a notice that is marked as a test to a receiver of a team,
// empty for the default one. It returns the notice when the receiver has answered, or after
// 20 s as it is then; a call with the same key, which NewKey makes, waits on.
func (c *Client) TestReceiver(ctx context.Context, namespace, receiver, key string) (*baiv1.Notice, error) {
	res, err := callWithRetry(ctx, c, c.alarms.TestReceiver,
		&baiv1.TestReceiverRequest{Receiver: receiver, Namespace: namespace, IdempotencyKey: key})
	if err != nil {
		return nil, fmt.Errorf("test receiver %q: %w", receiver, withNotFoundKind("receiver", err))
	}
	return res.GetNotice(), nil
}

// orPage is the size of a page, where a request has none.
func orPage(size int32) int32 {
	if size == 0 {
		return pageOfAlarms
	}
	return size
}
