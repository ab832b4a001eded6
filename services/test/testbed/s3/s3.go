// Package s3 gives a test a real server of S3's protocol: versitygw, which keeps
// objects in files.
//
// It is started only where BAI_TEST_REAL is 1, from bin/testbed, where it is
// built the first time, which takes some minutes. Else the test is skipped.
package s3

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// Version is that of the server.
const Version = "1.8.0"

// Server is one that a test may use alone.
type Server struct {
	Endpoint  string // URL
	AccessKey string
	SecretKey string
	Region    string
	Dir       string // of its objects: a bucket is a folder, an object a file

	process *exec.Cmd
}

// Start returns a server that answers, for as long as the test lasts, or skips
// the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if os.Getenv("BAI_TEST_REAL") != "1" {
		tb.Skip("needs a server of S3's protocol: set BAI_TEST_REAL=1 to have one built and started")
	}
	program, addr := build(tb), port.Addr(tb)
	s := &Server{
		Endpoint: "http://" + addr, AccessKey: "bai-test", SecretKey: "bai-test-secret", Region: "us-east-1",
		Dir: filepath.Join(tb.TempDir(), "objects"),
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil { //nolint:gosec // the server may run as another
		tb.Fatal(err)
	}
	s.process = exec.Command(program, "--quiet", "--port", addr, "--region", s.Region, "--keep-alive", "posix", s.Dir) //nolint:noctx // it ends with the test
	s.process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey)
	if err := kit.Start(s.process); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = s.process.Process.Kill() // it may have ended
		_ = s.process.Wait()         // by our own signal
	})
	s.await(tb)
	return s
}

// Bucket makes a bucket.
func (s *Server) Bucket(tb testing.TB, name string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Join(s.Dir, name), 0o755); err != nil { //nolint:gosec // as the server does
		tb.Fatal(err)
	}
}

func (s *Server) await(tb testing.TB) {
	tb.Helper()
	for end := time.Now().Add(5 * time.Minute); ; {
		answer, err := http.Get(s.Endpoint) //nolint:noctx // on loopback
		if err == nil {
			_ = answer.Body.Close() // nothing is wanted of it
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("the server of S3's protocol does not answer: %v", err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// build returns the path of the program, built once for all tests.
func build(tb testing.TB) string {
	tb.Helper()
	root, err := kit.Root()
	if err != nil {
		tb.Fatal(err)
	}
	out := filepath.Join(root, "bin", "testbed")
	program := filepath.Join(out, "versitygw-"+Version)
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // as the rest of bin
		tb.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(out, "s3.lock"))
	if err != nil {
		tb.Fatal(err)
	}
	defer lock.Close() //nolint:errcheck // the lock ends with the file
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		tb.Fatal(err)
	}
	if _, err := os.Stat(program); err == nil {
		return program
	}
	c := exec.CommandContext(tb.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program+".new",
		"github.com/versity/versitygw/cmd/versitygw")
	c.Dir = filepath.Join(root, "services", "test", "testbed", "s3", "program")
	c.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if output, err := c.CombinedOutput(); err != nil {
		tb.Fatal(fmt.Errorf("build versitygw: %w\n%s", err, output))
	}
	if err := os.Rename(program+".new", program); err != nil {
		tb.Fatal(err)
	}
	return program
}
