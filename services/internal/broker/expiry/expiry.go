// Package expiry removes the dead members of consumer groups that kfake does not. The session timer of a member starts there once its
// request to join is answered. If its connection is closed by then, none starts: the member stays, and nobody reads its partitions. With
// this package every member of a stable group has to send a heartbeat within three session timeouts after the last request to join.
package expiry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"

	"github.com/benchmark-ai/bai/services/internal/control/queue"
)

// Bounds. Requests are seen before the broker checks who sent them.
const (
	maxGroups      = 1000 // that are watched at once; there are a few dozen
	maxObserved    = 100  // requests by one control of kfake, which remembers each connection
	requestTimeout = 10 * time.Second
)

// watcher watches the groups of a cluster.
type watcher struct {
	cluster *kfake.Cluster
	client  func() (*kgo.Client, error)
	log     *zap.Logger
	queue   *queue.Queue[string]

	mu     sync.Mutex
	groups map[string]*group // since a member joined, until all have sent a heartbeat
}

// Watch removes dead members from the groups of a cluster until stop is called; stop returns once that is over. Each check uses a client of
// its own that may describe every group and remove its members.
func Watch(cluster *kfake.Cluster, client func() (*kgo.Client, error), log *zap.Logger) (stop func()) {
	w := &watcher{
		cluster: cluster, client: client, log: log, groups: make(map[string]*group),
		queue: queue.New(log, queue.Settings[string]{Fields: func(name string) []zap.Field {
			return []zap.Field{zap.String("group",
				name)}
		}}),
	}
	w.observe(kmsg.JoinGroup, w.joined)
	w.observe(kmsg.Heartbeat, w.heartbeat)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.queue.Run(ctx, 1, w.process) // it returns nil alone
	}()
	return func() {
		cancel()
		<-done
	}
}

// observe calls see with every request of a kind, before the cluster processes it.
func (w *watcher) observe(key kmsg.Key, see func(kmsg.Request)) {
	n := 0
	w.cluster.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
		see(req)
		if n++; n == maxObserved {
			w.cluster.DropControl()
			w.observe(key, see)
		}
		return nil, nil, false
	})
}

func (w *watcher) joined(req kmsg.Request) {
	join, ok := req.(*kmsg.JoinGroupRequest)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	g, ok := w.groups[join.Group]
	if !ok {
		if len(w.groups) == maxGroups {
			return
		}
		g = &group{}
		w.groups[join.Group] = g
	}
	g.joined(time.Now(), time.Duration(join.SessionTimeoutMillis)*time.Millisecond)
	w.queue.AddAfter(join.Group, g.session)
}

func (w *watcher) heartbeat(req kmsg.Request) {
	beat, ok := req.(*kmsg.HeartbeatRequest)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.groups[beat.Group]; ok && g.heard(beat.MemberID) {
		delete(w.groups, beat.Group)
	}
}

// process does what is due for a group.
func (w *watcher) process(ctx context.Context, name string) (queue.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	w.mu.Lock()
	g, ok := w.groups[name]
	if !ok {
		w.mu.Unlock()
		return queue.Result{}, nil
	}
	now := time.Now()
	next, due, silent := g.next(now), g.due, slices.Sorted(maps.Keys(g.silent))
	w.mu.Unlock()

	switch next {
	case stepLook:
		return w.look(ctx, name)
	case stepRemove:
		return w.remove(ctx, name, silent)
	case stepWait:
	}
	return queue.Result{RequeueAfter: due.Sub(now)}, nil
}

// look finds the members of a group.
func (w *watcher) look(ctx context.Context, name string) (queue.Result, error) {
	state, members, err := w.describe(ctx, name)
	if err != nil {
		return queue.Result{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	g, ok := w.groups[name]
	if !ok {
		return queue.Result{}, nil
	}
	now := time.Now()
	if g.next(now) == stepLook { // else a member has joined meanwhile
		if len(members) == 0 {
			delete(w.groups, name)
			return queue.Result{}, nil
		}
		g.found(now, state == stateStable, members)
	}
	return queue.Result{RequeueAfter: g.due.Sub(now)}, nil
}

// stateStable is the state of a group without a rebalance (Kafka's ConsumerGroupState).
const stateStable = "Stable"

func (w *watcher) describe(ctx context.Context, name string) (state string, members []string, err error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{name}
	client, err := w.client()
	if err != nil {
		return "", nil, fmt.Errorf("look for silent members: %w", err)
	}
	defer client.Close()
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return "", nil, fmt.Errorf("look for silent members: %w", err)
	}
	for _, g := range resp.Groups {
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return "", nil, fmt.Errorf("look for silent members: %w", err)
		}
		state = g.State
		for _, m := range g.Members {
			members = append(members, m.MemberID)
		}
	}
	return state, members, nil
}

// remove removes the silent members of a group. The others join again, and so the group is watched anew.
func (w *watcher) remove(ctx context.Context, name string, silent []string) (queue.Result, error) {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = name
	for _, id := range silent {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID = id
		req.Members = append(req.Members, m)
	}
	client, err := w.client()
	if err != nil {
		return queue.Result{}, fmt.Errorf("remove silent members: %w", err)
	}
	defer client.Close()
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return queue.Result{}, fmt.Errorf("remove silent members: %w", err)
	}
	errs := []error{kerr.ErrorForCode(resp.ErrorCode)}
	for _, m := range resp.Members {
		if err := kerr.ErrorForCode(m.ErrorCode); !errors.Is(err, kerr.UnknownMemberID) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return queue.Result{}, fmt.Errorf("remove silent members: %w", err)
	}
	w.log.Info("removed members of a group that sent no heartbeat", zap.String("group", name), zap.Strings("members", silent))
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.groups[name]; ok && g.next(time.Now()) == stepRemove {
		delete(w.groups, name)
	}
	return queue.Result{}, nil
}
