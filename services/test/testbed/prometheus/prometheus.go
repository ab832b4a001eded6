// Package prometheus gives a test a real receiver of Prometheus' remote write:
// Prometheus' own handler over its own storage, in a program that is built the
// first time, which takes some minutes. It is started only where BAI_TEST_REAL
// is 1; else the test is skipped.
package prometheus

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// Server is a receiver that a test may use alone.
type Server struct{ URL string }

// DataPoint is one point in a receiver.
type DataPoint struct {
	Labels map[string]string
	MS     int64
	Value  float64
}

// Start returns a receiver that answers, for as long as the test lasts, or skips
// the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if os.Getenv("BAI_TEST_REAL") != "1" {
		tb.Skip("needs a receiver of Prometheus' remote write: set BAI_TEST_REAL=1 to have one built and started")
	}
	program, err := kit.Program(tb.Context(), "prometheus", "./receiver")
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program, tb.TempDir()) //nolint:noctx // it ends with the test
	cmd.Stderr = tb.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // by our own signal
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("the receiver does not say where it listens: %v", err)
	}
	return &Server{URL: "http://" + strings.TrimSpace(line)}
}

// DataPoints returns all that the receiver has.
func (s *Server) DataPoints(tb testing.TB) []DataPoint {
	tb.Helper()
	resp, err := http.Get(s.URL + "/samples") //nolint:noctx // on loopback
	if err != nil {
		tb.Fatal(err)
	}
	var read []struct {
		Labels map[string]string
		MS     int64
		Bits   uint64
	}
	if err := errors.Join(json.NewDecoder(resp.Body).Decode(&read), resp.Body.Close()); err != nil {
		tb.Fatal(err)
	}
	all := make([]DataPoint, 0, len(read))
	for _, v := range read {
		all = append(all, DataPoint{v.Labels, v.MS, math.Float64frombits(v.Bits)})
	}
	return all
}
