package storetest_test

import (
	"testing"

	"github.com/benchmark-ai/bai/services/internal/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Store { return storetest.NewMemory() })
}
