// Package postgres gives a test a real server of PostgreSQL, of Debian's packages. It is started only where testbed.EnvReal is 1; else the
// test is skipped.
package postgres

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/jvm"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
	"github.com/benchmark-ai/bai/services/test/testbed/port"
)

// The owner of all databases.
const (
	user     = "bai"
	password = "s3cret"
)

// Server is a server that a test may use alone, with an empty database.
type Server struct{ addr string }

// Start returns a server that answers, for as long as the test lasts, or skips the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if os.Getenv(testbed.EnvReal) == "" {
		tb.Skip("needs PostgreSQL: set " + testbed.EnvReal + "=1 to have one started")
	}
	programs, err := kit.NewPostgres(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	var env []string
	if programs.Lib != "" {
		env = append(env, "LD_LIBRARY_PATH="+programs.Lib)
	}
	home, at := jvm.NewHome(tb, "postgres"), strconv.Itoa(port.ForTest(tb, 1)[0])
	home.Write(tb, "password", password+"\n")
	data := home.Path("data")
	home.Run(tb, env, filepath.Join(programs.Bin, "initdb"), "-D", data, "-U", user,
		"--pwfile="+home.Path("password"), "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--no-sync")
	home.Begin(tb, answerFunc(home, programs, env, at), env, filepath.Join(programs.Bin, "postgres"), "-D", data, "-p", at,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off")
	return &Server{addr: net.JoinHostPort("127.0.0.1", at)}
}

// DSN is the address of the database, with the password.
func (s *Server) DSN() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: s.addr, Path: "/postgres", RawQuery: "sslmode=disable"}
	return u.String()
}

// answerFunc returns a function that returns nil once the server answers.
func answerFunc(home *jvm.Home, programs kit.Postgres, env []string, port string) func(context.Context) error {
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, filepath.Join(programs.Bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", port) //nolint:gosec // Debian's
		cmd.Dir, cmd.Env = home.Dir, append(os.Environ(), env...)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("ask PostgreSQL whether it answers: %w", err)
		}
		return nil
	}
}
