package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/tooltest"
)

// debianPython is the Python that Debian's packages belong to.
const debianPython = "/usr/bin/python3"

const training = "../../../sample-benchmarks/training"

// epochs last for more than the second after which the system is looked at first,
// on fast machines too.
const epochs = 30

// TestTheTrainingSampleComputesWhatItsScriptComputesByHand runs the sample as it
// is shipped, and its script by hand, and holds every number of the one against
// the other.
func TestTheTrainingSampleComputesWhatItsScriptComputesByHand(t *testing.T) {
	if os.Getenv("BAI_TEST_REAL") == "" {
		t.Skip("set BAI_TEST_REAL to train")
	}
	if out, err := exec.CommandContext(t.Context(), debianPython, "-c", "import torch").CombinedOutput(); err != nil {
		t.Skipf("%s has no PyTorch (apt-get install python3-torch): %v\n%s", debianPython, err, out)
	}
	library, err := filepath.Abs("../../../client-lib/python/src")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t)
	data := httptest.NewServer(http.FileServer(http.Dir(training)))
	defer data.Close()
	args := []string{
		"run", training + "/descriptor.toml", "--script", training, "--set", "data.sources.0.src=" + data.URL + "/digits.csv.gz",
		"--set", "env.vars.PYTHON=" + debianPython, "--set", fmt.Sprintf("env.vars.EPOCHS=\"%d\"", epochs), "--set", "env.vars.PYTHONDONTWRITEBYTECODE=\"1\"",
	}
	want := trainByHand(t, library)
	for name, with := range map[string][]string{
		"with the client library": {"--set", "env.vars.PYTHONPATH=" + library}, "without it": nil,
	} {
		t.Run(name, func(t *testing.T) {
			run := "training-" + strings.ReplaceAll(name, " ", "-")
			out, errs, code := p.baictl(slices.Concat(args, with, []string{"--name", run})...)
			if code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, out, errs)
			}
			if diff := cmp.Diff(want, p.trainingMetrics(t, run)); diff != "" {
				t.Errorf("(-by hand +in the run):\n%s", diff)
			}
			t.Logf("%v", want)
			got, _, _ := p.baictl("get", run)
			t.Log(got)
			if !strings.Contains(got, " of the system, ") && !strings.Contains(got, "of the system") {
				t.Error("nothing is said of the system")
			}
		})
	}
}

// trainingMetrics are the numbers of a run but for its speed, as "step name=value", and
// that each step has a speed.
func (p *platform) trainingMetrics(t *testing.T, run string) []string {
	t.Helper()
	out, errs, code := p.baictl("metrics", run, "-o", "json")
	if code != 0 {
		t.Fatalf("%s%s", out, errs)
	}
	var all []string
	speeds := 0
	for line := range strings.Lines(out) {
		var m struct {
			Metric string
			Value  float64
			Step   json.Number
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		switch {
		case m.Metric == "samples_per_second":
			if speeds++; m.Value <= 0 {
				t.Errorf("%s: %v", m.Metric, m.Value)
			}
		case !strings.HasPrefix(m.Metric, "system."):
			all = append(all, fmt.Sprintf("%s %s=%v", m.Step, m.Metric, m.Value))
		}
	}
	if speeds != epochs {
		t.Errorf("%d speeds", speeds)
	}
	slices.Sort(all)
	return all
}

// trainByHand runs the script in a shell's way.
func trainByHand(t *testing.T, library string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "metrics")
	cmd := exec.CommandContext(t.Context(), debianPython, "train.py")
	cmd.Dir = training
	cmd.Env = append(os.Environ(), "BENCHMARK_AI_FILE="+file, fmt.Sprintf("EPOCHS=%d", epochs), "PYTHONPATH="+library, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var all []string
	for line := range strings.Lines(read(t, file)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		for _, name := range []string{"loss", "accuracy"} {
			all = append(all, fmt.Sprintf("%v %s=%v", m["@step"], name, m[name]))
		}
	}
	for _, found := range regexp.MustCompile(`epoch (\d+): .* gradient=(\S+)`).FindAllStringSubmatch(string(out), -1) {
		v, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s gradient=%v", found[1], v))
	}
	slices.Sort(all)
	if len(all) != 3*epochs {
		t.Fatalf("by hand: %q", all)
	}
	return all
}

// TestTrainingWithoutPyTorchSaysWhatToDo runs the sample under a Python that has
// none.
func TestTrainingWithoutPyTorchSaysWhatToDo(t *testing.T) {
	t.Parallel()
	tooltest.Program(t, "python3", "python3")
	p := start(t)
	data := httptest.NewServer(http.FileServer(http.Dir(training)))
	defer data.Close()
	out, errs, code := p.baictl("run", training+"/descriptor.toml", "--script", training, "--set", "data.sources.0.src="+data.URL+"/digits.csv.gz",
		"--set", `env.vars.PYTHON=python3`, "--set", `env.vars.PYTHONPATH=`+withoutTorch(t))
	if code == 0 || !strings.Contains(out+errs, "has no PyTorch") || !strings.Contains(out+errs, "apt-get install python3-torch") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// withoutTorch returns a folder in which torch is no module that can be had.
func withoutTorch(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "torch.py"), "raise ImportError('it is hidden')\n")
	return dir
}
