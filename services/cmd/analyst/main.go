// Command analyst finds incidents in the points of runs, and notifies receivers.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/benchmark-ai/bai/services/analyst"
	"github.com/benchmark-ai/bai/services/analyst/dispatch"
	receivers "github.com/benchmark-ai/bai/services/analyst/receiver/open"
	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/internal/service"
)

func main() { program.Main("analyst", &settings{}) }

type settings struct {
	program.Settings

	Analyst   analyst.Settings
	Receivers receivers.Settings // places for notices of incidents, which descriptors name
}

// Validate implements config.Validator.
func (s *settings) Validate() error {
	return errors.Join(s.Settings.Validate(), s.Analyst.Validate(), s.Receivers.Validate())
}

// Parts implements program.Service.
func (s *settings) Parts(_ context.Context, c *program.Common) (map[string]service.Runnable, error) {
	d, err := dispatch.New(s.Receivers, c.Store, time.Now, c.Log)
	if err != nil {
		return nil, err
	}
	return analyst.New(s.Analyst, analyst.Deps{
		Bus: c.Bus, Store: c.Store, Index: c.Incidents, Receivers: s.Receivers.Resolver(c.Log), Dispatch: d.Count(c.Meter()).Run,
		Meter: c.Meter(), Wake: d.Wake, Now: time.Now, Log: c.Log,
	}), nil
}
