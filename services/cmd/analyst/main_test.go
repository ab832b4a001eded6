package main

import (
	"testing"

	"github.com/benchmark-ai/bai/services/cmd/internal/deployedtest"
	"github.com/benchmark-ai/bai/services/internal/config"
)

func TestTheSettingsThatAreDeployedAreOnesThatThisProgramHas(t *testing.T) {
	deployedtest.WantLoaded(t, func() config.Validator { return &settings{} })
}
