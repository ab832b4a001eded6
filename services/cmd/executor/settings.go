package main

import (
	"errors"

	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/run"
)

type settings struct {
	Health  string // address of /healthz and /readyz; empty means none
	Store   string // path of the SQLite file
	Cluster struct {
		Dir       string `toml:"dir"`        // of the local cluster, one process at a time may use it; empty means that pods run in Kubernetes
		PodBinary string `toml:"pod_binary"` // the program bai-pod, for the local cluster
		Secrets   string `toml:"secrets"`    // folder with users' secrets, for the local cluster
	}
	Kubernetes kube.Settings // where the local cluster is not used
	Log        run.Log
	Kafka      kafka.Settings
	Executor   executor.Settings
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	var errs []error
	if s.Store == "" {
		errs = append(errs, errors.New("store: the path of the SQLite file is needed"))
	}
	if (s.Cluster.Dir == "") != (s.Cluster.PodBinary == "") {
		errs = append(errs, errors.New("cluster: dir and pod_binary go together"))
	}
	errs = append(errs, s.Kubernetes.Validate())
	return errors.Join(append(errs, s.Log.Validate(), s.Kafka.Validate(), s.Executor.Validate())...)
}

// executor returns the executor's settings for the cluster that is named.
func (s settings) executor() executor.Settings {
	if s.Cluster.Dir != "" {
		s.Executor.Engine = executor.EngineLocal
		return s.Executor
	}
	s.Executor.Engine, s.Executor.Pods.Scope = executor.EngineKubernetes, s.Kubernetes.Scope()
	return s.Executor
}
