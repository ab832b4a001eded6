package hostinfo

import "time"

// DCGMLine is dcgmLine of the GPUs that dcgmi and nvidia-smi list.
func DCGMLine(text, table, list string, now time.Time) []byte {
	return dcgmLine(text, matchGPUs(table, list), now)
}
