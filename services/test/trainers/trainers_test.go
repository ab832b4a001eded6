package trainers_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/internal/tooltest"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// libraries are versions that work with each other, and the tests that need them.
func libraries() map[string]struct {
	install func(context.Context) (string, error)
	tests   []string
} {
	return map[string]struct {
		install func(context.Context) (string, error)
		tests   []string
	}{
		// Debian's PyTorch 1.13 calls itself 1.13.0a0, which later versions of Lightning take for one before 1.13. Wheels of
		// PyTorch on PyPI have CUDA in them.
		"Lightning and transformers": {
			func(ctx context.Context) (string, error) {
				return kit.DebianPython(ctx, "lightning", "2.0.9.post0", "pytorch-lightning==2.0.9.post0", "torchmetrics==1.2.1",
					"transformers==4.44.2", "accelerate==0.34.2", "torch<1.13.1", "numpy<2")
			},
			[]string{
				"test_lightning_itself_takes_the_callback", "test_the_older_package_of_lightning_takes_the_callback",
				"test_hugging_face_itself_takes_the_callback", "test_a_trainer_of_hugging_face_emits_what_it_logs",
			},
		},
		"Keras": {
			func(ctx context.Context) (string, error) {
				return kit.Python(ctx, "tensorflow-cpu", "2.19.1", "keras==3.15.1")
			},
			[]string{"test_keras_itself_takes_the_callback"},
		},
	}
}

func TestTheCallbacksEmitInsideTheLibrariesThemselves(t *testing.T) {
	if os.Getenv("BAI_TRAINERS") != "1" {
		t.Skip("needs Lightning, transformers and Keras: set BAI_TRAINERS=1 to have them installed from PyPI")
	}
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import torch").CombinedOutput(); err != nil {
		tooltest.Missing(t, "PyTorch is missing: apt-get install python3-torch\n%s", out)
	}
	root, err := kit.Root()
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range libraries() {
		t.Run(name, func(t *testing.T) {
			python, err := l.install(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"-m", "unittest"}
			for _, test := range l.tests {
				args = append(args, "test_trainers.Trainers."+test)
			}
			cmd := exec.CommandContext(t.Context(), python, args...) //nolint:gosec // installed here
			cmd.Dir = filepath.Join(root, "client-lib", "python", "tests")
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "HF_HUB_OFFLINE=1", "TF_CPP_MIN_LOG_LEVEL=2")
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "skipped") || !strings.Contains(string(out), fmt.Sprintf("Ran %d test", len(l.tests))) {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
