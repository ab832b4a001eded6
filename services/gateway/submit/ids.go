package submit

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// IDs makes the IDs of runs. Several goroutines may use it.
type IDs struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

// NewIDs returns IDs that takes its randomness from entropy.
func NewIDs(entropy io.Reader) *IDs { return &IDs{entropy: ulid.Monotonic(entropy, 0)} }

// New returns a new unique ID: a ULID in lower case. IDs of one millisecond sort in the
// order in which they were made.
func (i *IDs) New(at time.Time) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(at), i.entropy)
	if err != nil {
		return "", fmt.Errorf("make a run's ID: %w", err)
	}
	return strings.ToLower(id.String()), nil
}

// DeriveID returns an ID that parts identify: the same parts always have the same ID.
func DeriveID(parts ...string) string {
	sum := sha256.Sum256([]byte(event.Derive(parts...)))
	var id ulid.ULID
	copy(id[:], sum[:])
	return strings.ToLower(id.String())
}
