// Package links_test checks the packages that programs link.
package links_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

const module = "github.com/benchmark-ai/bai/services/"

func TestProgramsThatRunInPodsLinkNoClientOfACluster(t *testing.T) {
	program := tooltest.Program(t, "go", "golang-go")
	for _, name := range []string{"bai-pod", "bai-pod-ship", "puller"} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), program, "list", "-deps", module+"cmd/"+name).Output()
			if err != nil {
				t.Fatal(err)
			}
			for pkg := range strings.Lines(string(out)) {
				pkg = strings.TrimSpace(pkg)
				if pkg == module+"internal/control/queue" || strings.HasPrefix(pkg, "k8s.io/client-go") {
					t.Errorf("%s is linked: the program must stay small", pkg)
				}
			}
		})
	}
}
