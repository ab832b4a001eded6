package session

import (
	"fmt"

	"github.com/benchmark-ai/bai/client-lib/bai/script"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
)

// Pack packs what --script names. Close it after use.
func Pack(path string) (*script.Archive, error) {
	a, err := script.Pack(path)
	if err != nil {
		return nil, &exitcode.UsageError{Message: fmt.Sprintf("--script: %v", err)}
	}
	return a, nil
}

// CheckPack says why what --script names cannot be sent along, and whether it names
// anything.
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
