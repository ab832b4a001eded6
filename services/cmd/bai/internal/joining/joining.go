// Package joining is the file with which services in other processes join a standalone
// platform.
package joining

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchmark-ai/bai/services/cmd/internal/wiring"
	"github.com/benchmark-ai/bai/services/executor"
	"github.com/benchmark-ai/bai/services/internal/blob"
	"github.com/benchmark-ai/bai/services/internal/cluster/kube"
	"github.com/benchmark-ai/bai/services/internal/config"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/registry"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
	"github.com/benchmark-ai/bai/services/watcher"
)

// file is its name in the data directory of the platform.
const file = "services.toml"

// Settings are the settings with which a service in another process joins a
// platform. The executor and the watcher can join only if pods run in Kubernetes, since
// the pods of one machine belong to one process.
type Settings struct {
	Store string `toml:"store,omitempty"`

	Elasticsearch *elastic.Settings `toml:"elasticsearch,omitempty"`

	Objects    blob.Settings            `toml:"objects"`
	Kafka      kafka.Settings           `toml:"kafka"`
	Kubernetes *kube.Settings           `toml:"kubernetes,omitempty"`
	Engines    map[string]wiring.Engine `toml:"engines,omitempty"`
	Executor   *executor.Settings       `toml:"executor,omitempty"`
	Watcher    *watcher.Settings        `toml:"watcher,omitempty"`
	Registry   *registry.Settings       `toml:"registry,omitempty"`
}

// Validate implements config.Validator. It accepts everything, since a platform wrote
// the settings.
func (s *Settings) Validate() error { return nil }

// Read returns the settings for joining the platform of a data directory.
func Read(data string) (s Settings, err error) {
	path := filepath.Join(data, file)
	if _, err := os.Stat(path); err != nil {
		return s, fmt.Errorf("look for the platform of %s: %w; start it, then try again", data, err)
	}
	return s, config.Load(path, &s)
}

// Write writes the settings into the data directory of a platform, in place of those of its last start.
func (s Settings) Write(data string) error {
	path := filepath.Join(data, file)
	text, err := s.text()
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.Rename(path+".new", path)
}

func (s Settings) text() ([]byte, error) {
	text, err := config.Text(s)
	return append([]byte("# How a service joins this platform from a process of its own.\n"), text...), err
}
