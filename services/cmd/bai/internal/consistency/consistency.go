// Package consistency finds out at the start whether the store and the broker of one
// data folder are whole and of one time, and has them note each other while they
// run.
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
	markFile          = "store.json" // in the folder of the broker
	markKey           = "broker"     // of the store's document about it
	heartbeatInterval = time.Second  // between two moments at which they note each other
)

// Marks are the notes that store and broker of one data folder keep about each other.
type Marks struct {
	dir       *datadir.Dir
	store     store.Docs
	busEvents func() int64 // how much went through the bus

	mark          brokerMark
	key           string
	lastBusEvents int64

	sealKey string // empty where it lies elsewhere
}

// New returns the marks of a data folder and the store in it.
func New(dir *datadir.Dir, docs store.Docs, busEvents func() int64) *Marks {
	return &Marks{dir: dir, store: docs, busEvents: busEvents}
}

// ReadStartState gathers what there is before anything is opened but the store; not how the
// files were before that.
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

// RestoreKeys puts the keys of the runs' tokens and of the seals back where their files
// are not as the store knows them, and returns which it did.
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

// seals are those that the store notes.
func (m *Marks) seals() kafka.SignaturePolicyStore {
	return kafka.SignaturePolicyStore{Docs: m.store}
}

// RestoreSeals has a store that notes nothing of seals, as one that is new, note what the
// one before did, and reports whether it did.
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

// MarkRunning notes that the platform runs: whatever ends it now ends it uncleanly.
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

// heartbeat has store and broker note each other, the store first.
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

// MarkRecovered notes that all events were heard again.
func (m *Marks) MarkRecovered(ctx context.Context) error {
	m.mark.Recovering = false
	return m.heartbeat(ctx)
}

// Run has them note each other whenever something went through the bus.
func (m *Marks) Run(ctx context.Context) error {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if acts := m.busEvents(); acts != m.lastBusEvents && m.heartbeat(ctx) == nil { // else at the next moment
			m.lastBusEvents = acts
		}
	}
}

// MarkClean notes that the platform has ended, once all that it wrote is on the disk.
func (m *Marks) MarkClean() error {
	if m.mark.Broker == "" {
		return nil // it did not begin
	}
	if err := syncFiles(m.dir.Path); err != nil {
		return err
	}
	m.mark.Clean, m.mark.Files = true, FileStamps(m.dir.Path)
	return m.write()
}

// write writes the mark, whole or not at all, onto the disk at a clean end.
func (m *Marks) write() error {
	text, err := json.Marshal(m.mark)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(m.path()), 0o700); err != nil {
		return fmt.Errorf("note the store beside the broker: %w", err)
	}
	if !m.mark.Clean { // the next moment writes it again
		if err := os.WriteFile(m.path()+".new", text, 0o600); err != nil {
			return fmt.Errorf("note the store beside the broker: %w", err)
		}
		return os.Rename(m.path()+".new", m.path())
	}
	return datadir.Write(m.path(), text)
}

// bootID returns the ID of the machine's start; empty where it tells none.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // Linux
	return strings.TrimSpace(string(text))
}

// walkFiles calls do for each file of the broker and the store below dir, with its
// path there.
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

// FileStamps returns the stamps of the files of broker and store, by name.
func FileStamps(dir string) map[string]FileStamp {
	all := make(map[string]FileStamp)
	_ = walkFiles(dir, func(name, _ string, info fs.FileInfo) error { // what cannot be read is found out later
		all[name] = FileStamp{Size: info.Size(), Modified: info.ModTime()}
		return nil
	})
	return all
}

// syncFiles has the files of broker and store on the disk.
func syncFiles(dir string) error {
	return walkFiles(dir, func(_, path string, _ fs.FileInfo) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
