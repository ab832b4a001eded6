package spool

import "fmt"

func overLimit(key string, limit int64) string {
	return fmt.Sprintf("limits.max_log_size: only the first %[2]d bytes of the samples of %[1]s are kept", key, limit)
}
