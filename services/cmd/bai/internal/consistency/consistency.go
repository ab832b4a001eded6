// Package consistency checks at the start whether the store and the broker in one data
// folder are intact and match each other. While they run, it records in each of them
// the state of the other.
package consistency

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/cmd/bai/internal/datadir"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	markFile          = "store.json" // in the broker's folder
	markKey           = "broker"     // key of the store's document about the broker
	heartbeatInterval = time.Second  // time between two heartbeats
)

// Marks are the records that the store and the broker of one data folder have about
// each other.
type Marks struct {
	dir       *datadir.Dir
	store     store.Docs
	busEvents func() int64 // number of events that went through the bus

	mark          brokerMark
	key           string
	lastBusEvents int64

	sealKey string // empty if the key is elsewhere
}

// New returns the marks of a data folder and the store in it.
func New(dir *datadir.Dir, docs store.Docs, busEvents func() int64) *Marks {
	return &Marks{dir: dir, store: docs, busEvents: busEvents}
}

// ReadStartState reads the state of the data folder before anything but the store is
// opened. It does not set Files.
func (m *Marks) ReadStartState(ctx context.Context, id string) (StartState, error) {
	f := StartState{Store: id, Boot: bootID()}
	text, err := os.ReadFile(m.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("look how the platform ended: %w", err)
	}
	var stored brokerMark
	if json.Unmarshal(text, &stored) == nil && stored.Broker != "" {
		f.Mark, m.mark = &stored, stored
	}
	_, err = os.Stat(m.dir.Join("broker/data"))
	f.Broker = err == nil
	c, _, err := store.Get[storeMark](ctx, m.store, store.KindPeerBroker, markKey)
	switch {
	case err == nil:
		f.StoreMark = &c
	case !errors.Is(err, store.ErrNotFound):
		return f, err
	}
	return f, nil
}

func (m *Marks) path() string { return m.dir.Join(filepath.Join("broker", markFile)) }

// RestoreKeys restores the files with the key of run tokens and the signing key if they
// differ from the keys in the store. It returns the names of the restored keys.
func (m *Marks) RestoreKeys(c *storeMark) (restored []string, err error) {
	if c == nil {
		return nil, nil
	}
	if text, err := os.ReadFile(m.dir.Join("token.key")); c.Key != "" && (err != nil || string(text) != c.Key) {
		if err := datadir.Write(m.dir.Join("token.key"), []byte(c.Key)); err != nil {
			return nil, err
		}
		restored = append(restored, "the key of the runs' tokens")
	}
	text, err := os.ReadFile(m.dir.Join("seal.key"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the key of the seals: %w", err)
	}
	if damagedKeys(c.Seal, string(text)) {
		if err := datadir.Write(m.dir.Join("seal.key"), []byte(c.Seal)); err != nil {
			return nil, err
		}
		restored = append(restored, "the key of the seals")
	}
	return restored, nil
}

// seals returns the signature policy in the store.
func (m *Marks) seals() kafka.SignaturePolicyStore {
	return kafka.SignaturePolicyStore{Docs: m.store}
}

// RestoreSeals restores the signature policy from the broker's mark if the store has
// none, as a new store. It reports whether it did.
func (m *Marks) RestoreSeals(ctx context.Context) (done bool, err error) {
	if len(m.mark.Seals) == 0 {
		return false, nil
	}
	_, err = m.seals().Update(ctx, func(was kafka.SignaturePolicy) kafka.SignaturePolicy {
		if done = len(was.Topics) == 0; done {
			was.Topics = m.mark.Seals
		}
		return was
	})
	return done, err
}

// MarkRunning records that the platform is running, so that any end from now on counts
// as unclean until MarkClean.
func (m *Marks) MarkRunning(ctx context.Context, id string, recovering bool) error {
	key, err := m.dir.KeyFile()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return fmt.Errorf("read the key of the runs' tokens: %w", err)
	}
	m.key = string(text)
	if text, err = os.ReadFile(m.dir.Join("seal.key")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the key of the seals: %w", err)
	}
	m.sealKey = string(text)
	if m.mark.Broker == "" {
		m.mark.Broker = rand.Text()
	}
	m.mark.Store, m.mark.Boot, m.mark.Clean, m.mark.Files = id, bootID(), false, nil
	m.mark.Recovering = recovering
	if c, _, err := store.Get[storeMark](ctx, m.store, store.KindPeerBroker, markKey); err == nil {
		m.mark.Heartbeat = max(m.mark.Heartbeat, c.Heartbeat)
	}
	return m.heartbeat(ctx)
}

// heartbeat records the state of the broker in the store, and then that of the store in
// the broker's folder.
func (m *Marks) heartbeat(ctx context.Context) error {
	m.mark.Heartbeat++
	if seals, err := m.seals().Policy(ctx); err != nil {
		return err
	} else if len(seals.Topics) > 0 {
		m.mark.Seals = seals.Topics
	}
	next := storeMark{Broker: m.mark.Broker, Heartbeat: m.mark.Heartbeat, Key: m.key, Seal: m.sealKey}
	_, version, err := store.Get[storeMark](ctx, m.store, store.KindPeerBroker, markKey)
	if errors.Is(err, store.ErrNotFound) {
		err = store.Create(ctx, m.store, store.KindPeerBroker, markKey, next)
	} else if err == nil {
		_, err = store.Replace(ctx, m.store, store.KindPeerBroker, markKey, version, next)
	}
	if err != nil {
		return fmt.Errorf("note the broker in the store: %w", err)
	}
	return m.write()
}

// MarkRecovered records that all events have been replayed.
func (m *Marks) MarkRecovered(ctx context.Context) error {
	m.mark.Recovering = false
	return m.heartbeat(ctx)
}

// Run writes a heartbeat whenever events went through the bus.
func (m *Marks) Run(ctx context.Context) error {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if acts := m.busEvents(); acts != m.lastBusEvents && m.heartbeat(ctx) == nil { // after an error, the next tick tries again
			m.lastBusEvents = acts
		}
	}
}

// MarkClean records a clean end, after it has synced all files to disk.
func (m *Marks) MarkClean() error {
	if m.mark.Broker == "" {
		return nil // the platform did not start
	}
	if err := syncFiles(m.dir.Path); err != nil {
		return err
	}
	m.mark.Clean, m.mark.Files = true, FileStamps(m.dir.Path)
	return m.write()
}

// write writes the mark atomically. At a clean end it also syncs the mark to disk.
func (m *Marks) write() error {
	text, err := json.Marshal(m.mark)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.path()), 0o700); err != nil {
		return fmt.Errorf("note the store beside the broker: %w", err)
	}
	if !m.mark.Clean { // the next heartbeat writes it again
		if err := os.WriteFile(m.path()+".new", text, 0o600); err != nil {
			return fmt.Errorf("note the store beside the broker: %w", err)
		}
		return os.Rename(m.path()+".new", m.path())
	}
	return datadir.Write(m.path(), text)
}

// bootID returns the ID of the machine's boot, or "" if there is none.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // only on Linux
	return strings.TrimSpace(string(text))
}

// walkFiles calls do for each file of the broker and the store below dir, with its name
// relative to dir.
func walkFiles(dir string, do func(name, path string, info fs.FileInfo) error) error {
	for _, top := range []string{"broker/data", "store.db", "store.db-wal"} {
		err := filepath.WalkDir(filepath.Join(dir, top), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			return do(strings.TrimPrefix(path, dir+"/"), path, info)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// FileStamps returns the stamps of the files of the broker and the store, by name.
func FileStamps(dir string) map[string]FileStamp {
	all := make(map[string]FileStamp)
	_ = walkFiles(dir, func(name, _ string, info fs.FileInfo) error { // errors show when the files are used
		all[name] = FileStamp{Size: info.Size(), Modified: info.ModTime()}
		return nil
	})
	return all
}

// syncFiles syncs the files of the broker and the store to disk.
func syncFiles(dir string) error {
	return walkFiles(dir, func(_, path string, _ fs.FileInfo) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
