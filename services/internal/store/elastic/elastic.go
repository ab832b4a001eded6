// Package elastic stores the platform's records in Elasticsearch: the store of a team.
//
// A document exists once the method that writes it has returned; reading by ID (documents, a run) shows it at once, lists and searches
// after the next refresh, Settings.Refresh later at most. Every document has a deterministic ID and is created at most once, so that
// writing again changes nothing, from any process, at any time.
//
// The records of a run are in indices named by the month in which the run was submitted, according to its ID. So a repeated write meets its
// first copy whatever the clock says, and old runs are deleted by whole indices. All samples and lines of one source are in one shard and
// are written in their order: a reader sees them in that order, without a gap, whatever was refreshed when. Cursors name the last document
// that was read in each source. They use no resources of the server and never expire.
package elastic

import (
	"context"
	"fmt"

	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
	"github.com/benchmark-ai/bai/services/internal/store/notifier"
)

// Settings are those of the client; the store has no others.
type Settings = client.Settings

// Store implements every part of a store, and may be used by several goroutines.
type Store struct {
	*docStore
	*runStore
	*streamStore
	*pointStore
	*incidentStore

	client *client.Client
	schema *schema.Schema
}

// Open returns the store at an Elasticsearch, and does not wait for the server: the first call creates the missing indices, or returns why
// it cannot.
func Open(s Settings) (*Store, error) {
	c, err := client.Open(s)
	if err != nil {
		return nil, err
	}
	indices := schema.New(c)
	c.Prepare = indices.Ensure
	changes := &notifier.Notifier{}
	opened := &Store{client: c, schema: indices}
	opened.docStore = &docStore{client: c, schema: indices}
	opened.runStore = &runStore{client: c, schema: indices, notifier: changes}
	opened.pointStore = &pointStore{client: c, docs: opened.docStore, runs: opened.runStore}
	opened.incidentStore = &incidentStore{client: c, schema: indices}
	opened.streamStore = &streamStore{client: c, schema: indices, notifier: changes}
	return opened, nil
}

// Setup brings the indices to this version: see schema.Schema.
func (s *Store) Setup(ctx context.Context) (done []string, err error) { return s.schema.Setup(ctx) }

// Check returns an error if Setup has to be run: see schema.Schema.
func (s *Store) Check(ctx context.Context) error { return s.schema.Check(ctx) }

// Close closes the idle connections.
func (s *Store) Close() error {
	s.client.Close()
	return nil
}

// positive refuses a limit below 1.
func positive(limit int) error {
	if limit < 1 {
		return fmt.Errorf("limit %d: %w: it must be 1 or more", limit, store.ErrRefused)
	}
	return nil
}
