package main

import (
	"errors"
	"flag"

	"github.com/benchmark-ai/bai/services/fetcher"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/blob/bucket"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
)

// settings are what the settings file may say.
type settings struct {
	Log     run.Log          `toml:"log"`
	Health  string           `toml:"health"` // address of /healthz and /readyz; empty means none
	Kafka   kafka.Settings   `toml:"kafka"`
	Store   string           `toml:"store"` // file of the SQLite store
	Objects blob.Settings    `toml:"objects"`
	Buckets bucket.Settings  `toml:"buckets"` // of others, which are read
	Fetcher fetcher.Settings `toml:"fetcher"`
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	var missing error
	if s.Store == "" {
		missing = errors.New("store: the path of the SQLite file is needed")
	}
	return errors.Join(s.Log.Validate(), s.Kafka.Validate(), missing, s.Objects.Validate(), s.Buckets.Validate(), s.Fetcher.Validate())
}

// load returns the settings of the file that the command line names.
func load(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("fetcher", flag.ContinueOnError)
	path := flags.String("config", "/etc/bai/fetcher.toml", "TOML `file` with the settings")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	return s, config.Load(*path, &s)
}
