package consistency

import (
	"fmt"
	"strings"
)

// LostWithStore names the data that the topics do not have.
const LostWithStore = "what only the store knew is lost: schedules, descriptors that were kept, names of artifacts and data sets, events older than the topics keep"

// UnreadableStore adds the remedy for a store at path that cannot be read.
func UnreadableStore(path string, err error) error {
	return fmt.Errorf("%w\nto begin without it, keep it and start again: mv %[2]s %[2]s.damaged && rm -f %[2]s-wal %[2]s-shm\nthen what the topics have is heard again; %[3]s", err, shellQuote(path), LostWithStore)
}

// shellQuote returns a path quoted for a shell.
func shellQuote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
