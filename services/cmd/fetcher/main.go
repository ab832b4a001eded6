// Command fetcher brings the data of each submitted run into the object store.
package main

import (
	"context"
	"errors"

	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/git"
	"github.com/benchmark-ai/bai/services/internal/service"
)

func main() { program.Main("fetcher", &settings{}) }

type settings struct {
	program.Settings

	Objects blob.Settings
	Buckets bucket.Settings // of others, which are read
	Fetcher fetcher.Settings
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Objects.Validate(), s.Buckets.Validate(), s.Fetcher.Validate())
}

// Parts implements program.Service.
func (s *settings) Parts(ctx context.Context, c *program.Common) (map[string]service.Part, error) {
	objects, err := blob.Open(ctx, s.Objects)
	if err != nil {
		return nil, err
	}
	c.OnClose(objects.Close)
	buckets, err := bucket.New(s.Buckets)
	if err != nil {
		return nil, err
	}
	return fetcher.New(s.Fetcher, fetcher.Deps{
		Bus: c.Bus, Store: c.Store, Objects: objects, Log: c.Log,
		Buckets: fetcher.OpenBuckets(buckets), Repositories: fetcher.OpenRepositories(git.Opener{}),
	})
}
