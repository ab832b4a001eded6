package hostinfo

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// toolTimeout is how long all programs that are asked may take together. A program that
// hangs delays the end of a run by it; on a busy machine an answer takes seconds.
const toolTimeout = 20 * time.Second

// packages are those of Python whose versions decide numbers.
const packages = "torch tensorflow jax mxnet numpy scipy pandas scikit-learn transformers lightning pytorch-lightning keras horovod mpi4py benchmarkai"

// pythonPackages asks for versions without importing anything.
const pythonPackages = `import sys, importlib.metadata as m
for n in sys.argv[1:]:
    try: print(n, m.version(n))
    except Exception: pass
`

// RunFunc runs the program at path to its end, or until ctx is done, and writes its
// standard output to out. It returns an error if the program could not be started or has
// failed.
type RunFunc func(ctx context.Context, out io.Writer, path string, args ...string) error

// AddTools adds the versions of tools and the models of GPUs. It runs only installed
// programs, which are ended after 20 seconds, or once ctx is done; it returns when run has
// returned for all of them. After it the environment is final.
func AddTools(ctx context.Context, run RunFunc, e *event.Environment) {
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	e.Tools = make(map[string]string)
	for name, args := range map[string][]string{
		"python3": {"--version"}, "gcc": {"--version"}, "nvcc": {"--version"}, "mpirun": {"--version"},
	} {
		all.Go(func() {
			if output := versionLine(run.output(ctx, name, args...)); output != "" {
				mu.Lock()
				defer mu.Unlock()
				e.Tools[name] = output
			}
		})
	}
	all.Go(func() {
		output := run.output(ctx, "python3", append([]string{"-c", pythonPackages}, strings.Fields(packages)...)...)
		mu.Lock()
		defer mu.Unlock()
		for line := range strings.Lines(output) {
			if name, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				e.Tools[name] = v
			}
		}
	})
	all.Go(func() { addGPUs(ctx, run, &e.Machine) })
	all.Wait()
	e.Final = true
}

// output returns a program's output, "" if the program is missing or fails.
func (run RunFunc) output(ctx context.Context, name string, args ...string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	var out bytes.Buffer
	if run(ctx, &out, path, args...) != nil {
		return ""
	}
	return string(out.Bytes()[:min(out.Len(), 64<<10)])
}

// lines calls each with the lines of a program's output, until the program at path has
// ended.
func (run RunFunc) lines(ctx context.Context, each func(line string), path string, args ...string) {
	from, to := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = to.CloseWithError(run(ctx, to, path, args...)) // it was ended, or has printed its error
	}()
	all := bufio.NewScanner(from)
	for all.Scan() {
		each(all.Text())
	}
	_ = from.Close()
	<-done
}

// versionLine returns the line of an answer that has the version.
func versionLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.ContainsAny(l, "0123456789") && !strings.HasPrefix(l, "Copyright") })
	if i < 0 {
		return ""
	}
	if release := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "release") }); release >= 0 { // nvcc
		i = release
	}
	return strings.TrimSpace(lines[i][:min(len(lines[i]), 200)])
}

// addGPUs asks nvidia-smi, whose answers are those of nvidia-smi(1), for the GPUs that
// CUDA may use here.
func addGPUs(ctx context.Context, run RunFunc, m *event.Machine) {
	only, ok := visibleGPUs(os.LookupEnv("CUDA_VISIBLE_DEVICES"))
	if !ok {
		return
	}
	output := run.output(ctx, "nvidia-smi",
		append(only, "--query-gpu=name,memory.total,uuid,driver_version", "--format=csv,noheader,nounits")...)
	var gpus []event.GPU
	for line := range strings.Lines(output) {
		parts := strings.Split(strings.TrimSpace(line), ", ")
		if len(parts) != 4 {
			continue
		}
		mib, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			mib = 0
		}
		gpus = append(gpus, event.GPU{Model: parts[0], Memory: mib << 20, UUID: parts[2]})
		m.GPUDriver = parts[3]
	}
	if len(gpus) == 0 {
		return
	}
	m.GPUs = gpus
	if found := regexp.MustCompile(`CUDA Version: *([0-9.]+)`).FindStringSubmatch(run.output(ctx, "nvidia-smi")); found != nil {
		m.CUDA = found[1]
	}
}
