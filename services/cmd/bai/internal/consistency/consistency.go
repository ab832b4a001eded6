package main

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

	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/store"
)

const (
	markFile          = "store.json" // in the folder of the broker
	markKey           = "broker"     // of the store's document about it
	heartbeatInterval = time.Second  // between two moments at which they note each other
)

// consistencyMarks keeps what store and broker of one data folder know of each other.
type consistencyMarks struct {
	dir       *dataDir
	store     store.Docs
	busEvents func() int64 // how much went through the bus

	mark          brokerMark
	key           string
	lastBusEvents int64

	sealKey string // empty where it lies elsewhere
}

// readStartState gathers what there is before anything is opened but the store; not how the
// files were before that.
func (m *consistencyMarks) readStartState(ctx context.Context, id string) (startState, error) {
	f := startState{Store: id, Boot: bootID()}
	text, err := os.ReadFile(m.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("look how the platform ended: %w", err)
	}
	var stored brokerMark
	if json.Unmarshal(text, &stored) == nil && stored.Broker != "" {
		f.Mark, m.mark = &stored, stored
	}
	_, err = os.Stat(m.dir.join("broker/data"))
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

func (m *consistencyMarks) path() string { return m.dir.join(filepath.Join("broker", markFile)) }

// restoreKeys puts the keys of the runs' tokens and of the seals back where their files
// are not as the store knows them, and returns which it did.
func (m *consistencyMarks) restoreKeys(c *storeMark) (restored []string, err error) {
	if c == nil {
		return nil, nil
	}
	if text, err := os.ReadFile(m.dir.join("token.key")); c.Key != "" && (err != nil || string(text) != c.Key) {
		if err := writeWhole(m.dir.join("token.key"), []byte(c.Key)); err != nil {
			return nil, err
		}
		restored = append(restored, "the key of the runs' tokens")
	}
	text, err := os.ReadFile(m.dir.join("seal.key"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the key of the seals: %w", err)
	}
	if damagedKeys(c.Seal, string(text)) {
		if err := writeWhole(m.dir.join("seal.key"), []byte(c.Seal)); err != nil {
			return nil, err
		}
		restored = append(restored, "the key of the seals")
	}
	return restored, nil
}

// seals are those that the store notes.
func (m *consistencyMarks) seals() kafka.SignaturePolicyStore {
	return kafka.SignaturePolicyStore{Docs: m.store}
}

// restoreSeals has a store that notes nothing of seals, as one that is new, note what the
// one before did, and reports whether it did.
func (m *consistencyMarks) restoreSeals(ctx context.Context) (done bool, err error) {
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

// markRunning notes that the platform runs: whatever ends it now ends it uncleanly.
func (m *consistencyMarks) markRunning(ctx context.Context, id string, recovering bool) error {
	key, err := m.dir.keyFile()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return fmt.Errorf("read the key of the runs' tokens: %w", err)
	}
	m.key = string(text)
	if text, err = os.ReadFile(m.dir.join("seal.key")); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
func (m *consistencyMarks) heartbeat(ctx context.Context) error {
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

// markRecovered notes that all events were heard again.
func (m *consistencyMarks) markRecovered(ctx context.Context) error {
	m.mark.Recovering = false
	return m.heartbeat(ctx)
}

// run has them note each other whenever something went through the bus.
func (m *consistencyMarks) run(ctx context.Context) error {
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

// markClean notes that the platform has ended, once all that it wrote is on the disk.
func (m *consistencyMarks) markClean() error {
	if m.mark.Broker == "" {
		return nil // it did not begin
	}
	if err := syncFiles(m.dir.path); err != nil {
		return err
	}
	m.mark.Clean, m.mark.Files = true, fileStamps(m.dir.path)
	return m.write()
}

// write writes the mark, whole or not at all, onto the disk at a clean end.
func (m *consistencyMarks) write() error {
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
	return writeWhole(m.path(), text)
}

// writeWhole writes a file, whole or not at all, also where the machine stops.
func writeWhole(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // in the data folder
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
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

// fileStamps returns by which the files of broker and store are known.
func fileStamps(dir string) map[string]fileStamp {
	all := make(map[string]fileStamp)
	_ = walkFiles(dir, func(name, _ string, info fs.FileInfo) error { // what cannot be read is found out later
		all[name] = fileStamp{Size: info.Size(), Modified: info.ModTime()}
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
