package main

import (
	"errors"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
)

type settings struct {
	Health  string // address of /healthz and /readyz; empty means none
	Store   string // path of the SQLite file
	Cluster struct {
		Dir       string `toml:"dir"`        // of the local cluster; one process at a time may use it
		PodBinary string `toml:"pod_binary"` // the program bai-pod
	}
	Log      run.Log
	Kafka    kafka.Settings
	Executor executor.Settings
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	var errs []error
	if s.Store == "" {
		errs = append(errs, errors.New("store: the path of the SQLite file is needed"))
	}
	if s.Cluster.Dir == "" || s.Cluster.PodBinary == "" {
		errs = append(errs, errors.New("cluster: dir and pod_binary are needed"))
	}
	return errors.Join(append(errs, s.Log.Validate(), s.Kafka.Validate(), s.Executor.Validate())...)
}
