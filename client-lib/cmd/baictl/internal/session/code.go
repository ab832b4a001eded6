package session

import (
	"fmt"

	"github.com/benchmark-ai/bai/client-lib/bai/script"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
)

// Pack packs the path of --script. Close it after use.
func Pack(path string) (*script.Archive, error) {
	a, err := script.Pack(path)
	if err != nil {
		return nil, &exitcode.UsageError{Message: fmt.Sprintf("--script: %v", err)}
	}
	return a, nil
}

// CheckPack returns an error if the path of --script cannot be packed, and reports
// whether a path is set.
func CheckPack(path string) (bool, error) {
	if path == "" {
		return false, nil
	}
	a, err := Pack(path)
	if err != nil {
		return false, err
	}
	return true, a.Close()
}
