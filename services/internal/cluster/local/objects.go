//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/services/internal/cluster"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/disk"
	"github.com/benchmark-ai/bai/services/internal/cluster/local/shimapi"
)

// errClosed means that the cluster was closed.
var errClosed = errors.New("the local cluster is closed")

// objects are the names of all objects, and the ConfigMaps, Secrets and Services.
type objects struct {
	folder disk.Folder
	log    *zap.Logger

	mu       sync.Mutex
	closed   bool                       // no more objects are created
	names    map[disk.Key]bool          // of Jobs too
	creating map[disk.Key]chan struct{} // closed when the object is made, or is not
	byUID    map[string]disk.Object
}

func newObjects(f disk.Folder, log *zap.Logger) *objects {
	return &objects{
		folder: f, log: log, names: map[disk.Key]bool{}, creating: map[disk.Key]chan struct{}{},
		byUID: map[string]disk.Object{},
	}
}

// adopt reads the objects that the previous process left.
func (s *objects) adopt() {
	for _, path := range disk.Matching(filepath.Join(s.folder.Objects(), "*.json")) {
		var o disk.Object
		if err := shimapi.Read(path, &o); err != nil || o.Key().Kind == "" {
			s.log.Error("an object cannot be read, it is removed", zap.String("path", path), zap.Error(err))
			_ = os.Remove(path)
			continue
		}
		s.byUID[strings.TrimSuffix(filepath.Base(path), ".json")] = o
		s.names[o.Key()] = true
	}
}

// close makes reserve refuse from now on, and reports whether this is the first call.
func (s *objects) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := !s.closed
	s.closed = true
	return open
}

// reserve lets one caller at a time create an object of a name, and returns ErrExists if the object exists.
func (s *objects) reserve(ctx context.Context, n disk.Key) (done func(created bool), err error) {
	for {
		s.mu.Lock()
		creating, busy := s.creating[n]
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, errClosed
		case s.names[n]:
			s.mu.Unlock()
			return nil, fmt.Errorf("%s %s: %w", n.Kind, n.Name, cluster.ErrExists)
		case !busy:
			defer s.mu.Unlock()
			made := make(chan struct{})
			s.creating[n] = made
			return func(created bool) { s.created(n, created) }, nil
		}
		s.mu.Unlock()
		select {
		case <-creating:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// created ends the reservation of a name.
func (s *objects) created(n disk.Key, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.creating[n])
	delete(s.creating, n)
	if ok {
		s.names[n] = true
	}
}

// take adds the name of a Job that the previous process created.
func (s *objects) take(n disk.Key) { s.names[n] = true }

// release lets the name of a Job be used again.
func (s *objects) release(n disk.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names, n)
}

// add writes an object whose name is reserved.
func (s *objects) add(uid string, o disk.Object) error {
	if err := shimapi.Write(s.folder.ObjectFile(uid), o); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byUID[uid] = o
	return nil
}

// removeAll removes the ConfigMaps, Secrets and Services of an attempt.
func (s *objects) removeAll(at disk.Attempt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, o := range s.byUID {
		if o.Attempt() != at {
			continue
		}
		if err := os.Remove(s.folder.ObjectFile(uid)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		delete(s.byUID, uid)
		delete(s.names, o.Key())
	}
	return nil
}

// services returns the Services of an attempt.
func (s *objects) services(at disk.Attempt) []*corev1.Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*corev1.Service
	for _, o := range s.byUID {
		if o.Service != nil && o.Attempt() == at {
			all = append(all, o.Service)
		}
	}
	return all
}

// values adds the ConfigMaps and Secrets of a scope to maps of them by name.
func (s *objects) values(scope string, configMaps map[string]*corev1.ConfigMap, secrets map[string]*corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.byUID {
		switch n := o.Key(); {
		case n.Scope != scope:
		case o.ConfigMap != nil:
			configMaps[n.Name] = o.ConfigMap
		case o.Secret != nil:
			secrets[n.Name] = o.Secret
		}
	}
}
