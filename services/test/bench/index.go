package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// indexed measures the rate at which the index service brings a filled topic into
// Elasticsearch, next to a bare BulkIndexer with the same documents, and its memory. Of
// alternating pairs, the best counts: both share the machine with the server. It needs
// Kafka and Elasticsearch, which its test starts if BAI_TEST_REAL is 1.
func indexed(ctx context.Context, _ bench) (results []result, err error) {
	const bar = 0.8
	if os.Getenv("BAI_TEST_REAL") != "1" {
		return []result{unmeasured("IndexOverBulkIndexer", "ratio", bar, "needs Kafka and Elasticsearch: set BAI_TEST_REAL=1")}, nil
	}
	dir, err := os.MkdirTemp("", "bai-bench-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "index.test")
	if _, err := printed(ctx, ".", "go", "test", "-c", "-o", program, "./metrics-pusher/index"); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-test.run", "TestIndexOnRealServers", "-test.v", "-test.timeout", "40m")
	cmd.Dir = "metrics-pusher/index"
	cmd.Env = append(os.Environ(), "BAI_INDEX_PAIR=400000", "BAI_INDEX_PAIRS=3", "BAI_INDEX_DOCS=1000000")
	out, failed := cmd.CombinedOutput() // it fails where the bar is not reached
	ratio, against := 0.0, ""
	for _, m := range regexp.MustCompile(`pair \d+: (indexed \d+/s, bare \d+/s), ratio ([\d.]+)`).FindAllStringSubmatch(string(out), -1) {
		if r, err := strconv.ParseFloat(m[2], 64); err == nil && r > ratio {
			ratio, against = r, m[1]
		}
	}
	peaks := regexp.MustCompile(`indexed (\d+) documents, .* after each tenth: \[([\d ]+)\]`).FindStringSubmatch(string(out))
	if ratio == 0 || peaks == nil {
		return nil, fmt.Errorf("index into Elasticsearch: %w: %s", failed, out)
	}
	tenths := strings.Fields(peaks[2])
	peak, err := strconv.ParseFloat(tenths[len(tenths)-1], 64)
	return []result{
		atLeast("IndexOverBulkIndexer", ratio, "ratio", bar, against),
		reported("IndexMemory", peak, "MiB", fmt.Sprintf("peak over %s documents; after a fifth of them %s", peaks[1], tenths[1])),
	}, err
}
