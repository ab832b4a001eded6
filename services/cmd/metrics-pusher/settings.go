package main

import (
	"errors"

	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
	"github.com/benchmark-ai/bai/services/metrics-pusher/index"
)

type settings struct {
	Health string // address of /healthz and /readyz; empty means none
	Store  string // path of the SQLite file
	Log    run.Log
	Kafka  kafka.Settings
	Index  index.Settings `toml:"metrics-pusher"`
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	var missing error
	if s.Store == "" {
		missing = errors.New("store: the path of the SQLite file is needed")
	}
	return errors.Join(missing, s.Log.Validate(), s.Kafka.Validate(), s.Index.Validate())
}
