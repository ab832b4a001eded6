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
	markFile = "store.json" // in the folder of the broker
	markKey  = "broker"     // of the store's document about it
	pulse    = time.Second  // between two moments at which they note each other
)

// marks keeps what store and broker of one data folder know of each other.
type marks struct {
	dir   *dataDir
	store store.Docs
	acts  func() int64 // how much went through the bus

	mark  mark
	key   string
	acted int64

	sealKey string // empty where it lies elsewhere
}

// look gathers what there is before anything is opened but the store; not how the
// files were before that.
func (m *marks) look(ctx context.Context, id string) (found, error) {
	f := found{Store: id, Boot: boot()}
	text, err := os.ReadFile(m.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("look how the platform ended: %w", err)
	}
	var was mark
	if json.Unmarshal(text, &was) == nil && was.Broker != "" {
		f.Mark, m.mark = &was, was
	}
	_, err = os.Stat(m.dir.in("broker/data"))
	f.Broker = err == nil
	c, _, err := store.Get[counter](ctx, m.store, store.KindMark, markKey)
	switch {
	case err == nil:
		f.Counter = &c
	case !errors.Is(err, store.ErrNotFound):
		return f, err
	}
	return f, nil
}

func (m *marks) path() string { return m.dir.in(filepath.Join("broker", markFile)) }

// restore puts the keys of the runs' tokens and of the seals back where their files
// are not as the store knows them, and returns which it did.
func (m *marks) restore(c *counter) (put []string, err error) {
	if c == nil {
		return nil, nil
	}
	if text, err := os.ReadFile(m.dir.in("token.key")); c.Key != "" && (err != nil || string(text) != c.Key) {
		if err := writeWhole(m.dir.in("token.key"), []byte(c.Key)); err != nil {
			return nil, err
		}
		put = append(put, "the key of the runs' tokens")
	}
	text, err := os.ReadFile(m.dir.in("seal.key"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the key of the seals: %w", err)
	}
	if damagedKeys(c.Seal, string(text)) {
		if err := writeWhole(m.dir.in("seal.key"), []byte(c.Seal)); err != nil {
			return nil, err
		}
		put = append(put, "the key of the seals")
	}
	return put, nil
}

// seals are those that the store notes.
func (m *marks) seals() kafka.SealsIn { return kafka.SealsIn{Docs: m.store} }

// demand has a store that notes nothing of seals, as one that is new, note what the
// one before did, and reports whether it did.
func (m *marks) demand(ctx context.Context) (done bool, err error) {
	if len(m.mark.Seals) == 0 {
		return false, nil
	}
	_, err = m.seals().Change(ctx, func(was kafka.Seals) kafka.Seals {
		if done = len(was.Topics) == 0; done {
			was.Topics = m.mark.Seals
		}
		return was
	})
	return done, err
}

// begin notes that the platform runs: whatever ends it now ends it uncleanly.
func (m *marks) begin(ctx context.Context, id string, recovering bool) error {
	key, err := m.dir.keyFile()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return fmt.Errorf("read the key of the runs' tokens: %w", err)
	}
	m.key = string(text)
	if text, err = os.ReadFile(m.dir.in("seal.key")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the key of the seals: %w", err)
	}
	m.sealKey = string(text)
	if m.mark.Broker == "" {
		m.mark.Broker = rand.Text()
	}
	m.mark.Store, m.mark.Boot, m.mark.Clean, m.mark.Files = id, boot(), false, nil
	m.mark.Recovering = recovering
	if c, _, err := store.Get[counter](ctx, m.store, store.KindMark, markKey); err == nil {
		m.mark.Pulse = max(m.mark.Pulse, c.Pulse)
	}
	return m.beat(ctx)
}

// beat has store and broker note each other, the store first.
func (m *marks) beat(ctx context.Context) error {
	m.mark.Pulse++
	if seals, err := m.seals().Seals(ctx); err != nil {
		return err
	} else if len(seals.Topics) > 0 {
		m.mark.Seals = seals.Topics
	}
	next := counter{Broker: m.mark.Broker, Pulse: m.mark.Pulse, Key: m.key, Seal: m.sealKey}
	_, version, err := store.Get[counter](ctx, m.store, store.KindMark, markKey)
	if errors.Is(err, store.ErrNotFound) {
		err = store.Create(ctx, m.store, store.KindMark, markKey, next)
	} else if err == nil {
		_, err = store.Replace(ctx, m.store, store.KindMark, markKey, version, next)
	}
	if err != nil {
		return fmt.Errorf("note the broker in the store: %w", err)
	}
	return m.write()
}

// recovered notes that all events were heard again.
func (m *marks) recovered(ctx context.Context) error {
	m.mark.Recovering = false
	return m.beat(ctx)
}

// run has them note each other whenever something went through the bus.
func (m *marks) run(ctx context.Context) error {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if acts := m.acts(); acts != m.acted && m.beat(ctx) == nil { // else at the next moment
			m.acted = acts
		}
	}
}

// end notes that the platform has ended, once all that it wrote is on the disk.
func (m *marks) end() error {
	if m.mark.Broker == "" {
		return nil // it did not begin
	}
	if err := flush(m.dir.path); err != nil {
		return err
	}
	m.mark.Clean, m.mark.Files = true, stamps(m.dir.path)
	return m.write()
}

// write writes the mark, whole or not at all, onto the disk at a clean end.
func (m *marks) write() error {
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

// boot returns the ID of the machine's start; empty where it tells none.
func boot() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // Linux
	return strings.TrimSpace(string(text))
}

// each calls do for each file of the broker and the store below dir, with its
// path there.
func each(dir string, do func(name, path string, info fs.FileInfo) error) error {
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

// stamps returns by which the files of broker and store are known.
func stamps(dir string) map[string]stamp {
	all := make(map[string]stamp)
	_ = each(dir, func(name, _ string, info fs.FileInfo) error { // what cannot be read is found out later
		all[name] = stamp{Size: info.Size(), Modified: info.ModTime()}
		return nil
	})
	return all
}

// flush has the files of broker and store on the disk.
func flush(dir string) error {
	return each(dir, func(_, path string, _ fs.FileInfo) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
