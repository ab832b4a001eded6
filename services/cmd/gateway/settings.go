package main

import (
	"errors"

	"github.com/benchmark-ai/bai/services/gateway"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
)

type settings struct {
	Listen  string // address where users are answered; empty means 127.0.0.1:7070
	Health  string // address of /healthz and /readyz; empty means none
	Store   string // path of the SQLite file
	Log     run.Log
	Kafka   kafka.Settings
	Gateway gateway.Settings
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	var missing error
	if s.Store == "" {
		missing = errors.New("store: the path of the SQLite file is needed")
	}
	return errors.Join(missing, s.Log.Validate(), s.Kafka.Validate(), s.Gateway.Validate())
}
