package main

import (
	"errors"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
)

type settings struct {
	Listen  string // address where users are answered; empty means 127.0.0.1:7070
	Health  string // address of /healthz and /readyz; empty means none
	Store   string // path of the SQLite file
	Log     run.Log
	Kafka   kafka.Settings
	Objects blob.Settings // where files that runs leave lie; without a URL none are kept
	Gateway gateway.Settings

	Fetcher  fetcher.Settings  // where descriptors may be read from
	Buckets  bucket.Settings   // how those in buckets are
	Executor executor.Settings // by which descriptors are rendered
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	var missing error
	if s.Store == "" {
		missing = errors.New("store: the path of the SQLite file is needed")
	}
	var objects error
	if s.Objects.URL != "" {
		objects = s.Objects.Validate()
	}
	return errors.Join(missing, objects, s.Log.Validate(), s.Kafka.Validate(), s.Gateway.Validate(), s.Fetcher.Validate(), s.Buckets.Validate(), s.Executor.Validate())
}
