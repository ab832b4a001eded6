// Package docker runs the servers of test beds in containers, where Docker is.
package docker

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// Container is a server in a container.
type Container struct{ c testcontainers.Container }

// Healthy says whether there is a Docker that answers. It asks only where one
// may be.
func Healthy(ctx context.Context) bool {
	if os.Getenv("DOCKER_HOST") == "" {
		if _, err := os.Stat("/var/run/docker.sock"); err != nil {
			return false
		}
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return false
	}
	healthy := provider.Health(ctx) == nil
	return provider.Close() == nil && healthy
}

// Run runs a container until the test ends.
func Run(tb testing.TB, image string, opts ...testcontainers.ContainerCustomizer) *Container {
	tb.Helper()
	c, err := testcontainers.Run(tb.Context(), image, opts...)
	testcontainers.CleanupContainer(tb, c)
	if err != nil {
		tb.Fatalf("run %s: %v", image, err)
	}
	return &Container{c}
}

// Address returns where a port of the container is found from here.
func (c *Container) Address(tb testing.TB, port string) string {
	tb.Helper()
	addr, err := c.c.PortEndpoint(tb.Context(), port, "")
	if err != nil {
		tb.Fatal(err)
	}
	return addr
}

// Kill ends the server at once, as a crash would.
func (c *Container) Kill(tb testing.TB) {
	tb.Helper()
	now := time.Duration(0)
	if err := c.c.Stop(tb.Context(), &now); err != nil {
		tb.Fatal(err)
	}
}

// Restart restarts the server with its data.
func (c *Container) Restart(tb testing.TB) {
	tb.Helper()
	if err := c.c.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}
