package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
	"github.com/benchmark-ai/bai/services/internal/tooltest"
	"github.com/benchmark-ai/bai/services/test/testbed"
	"github.com/benchmark-ai/bai/services/test/testbed/kit"
)

// suites are the descriptors of tools.
const suites = "../../../sample-benchmarks/suite/"

// tools returns the programs of the image of a suite, for this machine.
func tools(t *testing.T, image string, programs ...string) kit.Suite {
	t.Helper()
	s, err := kit.NewSuite(t.Context(), image, programs...)
	if err != nil {
		tooltest.Missing(t, "the packages of the image %s: %v", image, err)
	}
	return s
}

// requireLong skips a test that only the long form of the check has.
func requireLong(t *testing.T) {
	t.Helper()
	if os.Getenv("BAI_TEST_REAL") == "" || os.Getenv(testbed.EnvShort) != "" {
		t.Skip("make test-real runs it: it takes a minute, and large packages")
	}
}

// submitSuite runs a suite of one cell to its end, with values as --set takes them and with the
// programs of an image, and returns its run.
func (p *platform) submitSuite(file string, s kit.Suite, values ...string) string {
	p.t.Helper()
	p.sets++
	name := fmt.Sprintf("suite-%d", p.sets)
	args := []string{"run", suites + file, "--name", name, "--set", fmt.Sprintf("env.vars.PATH=%q", s.Bin+":"+os.Getenv("PATH"))}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	if strings.HasPrefix(file, "training/") {
		args = append(args, "--script", training) // which has the data
	}
	out, errs, code := p.baictl(args...)
	runs := p.setRuns(name)
	if len(runs) != 1 {
		p.t.Fatalf("%s: exit code %d, %d runs\n%s%s", file, code, len(runs), out, errs)
	}
	return runs[0].GetId()
}

// runSuite is submitSuite for a run that has to succeed.
func (p *platform) runSuite(file string, s kit.Suite, values ...string) string {
	p.t.Helper()
	run := p.submitSuite(file, s, values...)
	if r := p.awaitComplete(run); r.GetOutcome() != baiv1.Outcome_OUTCOME_SUCCEEDED {
		p.t.Fatalf("%s ended as %v: %s\n%s", file, r.GetOutcome(), r.GetMessage(), strings.Join(p.lines(run), "\n"))
	}
	return run
}

// labelled returns the values of a metric of a run whose samples have some labels, in base units.
func (p *platform) labelled(run, metric string, labels map[string]string) (values []float64) {
	p.t.Helper()
	stream, err := p.api.QueryMetrics(p.t.Context(), &baiv1.QueryMetricsRequest{Run: run})
	if err != nil {
		p.t.Fatal(err)
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return values
		}
		if err != nil {
			p.t.Fatalf("metrics of %s: %v", run, err)
		}
		for _, s := range r.GetSamples() {
			matches := s.GetMetric() == metric
			for name, value := range labels {
				matches = matches && s.GetLabels()[name] == value
			}
			if matches {
				values = append(values, s.GetValue())
			}
		}
	}
}

// wantHeadline compares a number of the platform with the one that the tool has printed.
func (p *platform) wantHeadline(run, metric string, labels map[string]string, printed float64) {
	p.t.Helper()
	got := p.labelled(run, metric, labels)
	p.t.Logf("%s %v: the tool prints %v, the platform has %v", metric, labels, printed, got)
	if len(got) != 1 || math.Abs(got[0]-printed) > 1e-6*math.Abs(printed) || printed <= 0 {
		p.t.Errorf("%s %v: the tool prints %v, the platform has %v", metric, labels, printed, got)
	}
}

// printed returns the number in the last line of a run that matches a pattern.
func (p *platform) printed(run, pattern string) float64 {
	p.t.Helper()
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(strings.Join(p.lines(run), "\n"), -1)
	if len(all) == 0 {
		p.t.Fatalf("no line of the tool matches %s:\n%s", pattern, strings.Join(p.lines(run), "\n"))
	}
	number, err := strconv.ParseFloat(all[len(all)-1][1], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return number
}

// document returns the JSON that a run has printed to standard output.
func (p *platform) document(run string, into any) {
	p.t.Helper()
	var text strings.Builder
	for _, line := range p.lines(run) {
		if out, ok := strings.CutPrefix(line, "out "); ok {
			text.WriteString(out + "\n")
		}
	}
	whole := text.String()
	begin, end := strings.Index(whole, "{"), strings.LastIndex(whole, "}")
	if begin < 0 || end < begin {
		p.t.Fatalf("no JSON in\n%s", whole)
	}
	if err := json.Unmarshal([]byte(whole[begin:end+1]), into); err != nil {
		p.t.Fatalf("%v in\n%s", err, whole)
	}
}

func TestTheSuiteIperfHasTheNumbersThatIperfPrints(t *testing.T) {
	t.Parallel()
	p, s := start(t), tools(t, "iperf", "iperf", "iperf3")
	run := p.runSuite("iperf/descriptor.toml", s, "sweep.product.duration=[1]", "sweep.product.streams=[3]", "roles.0.ready.port=5007")
	p.wantHeadline(run, "bandwidth", map[string]string{"stream": "sum"}, 1000*p.printed(run, `\[SUM\].* (\d+) Kbits/sec`))
	if streams := slices.DeleteFunc(p.labelled(run, "bandwidth", nil), func(v float64) bool { return v <= 0 }); len(streams) != 4 {
		t.Errorf("3 streams and their sum have the rates %v", streams)
	}
	wantNoPod(t, p, run)
}

func TestTheSuiteIperf3HasTheNumbersThatIperf3Prints(t *testing.T) {
	t.Parallel()
	p, s := start(t), tools(t, "iperf", "iperf", "iperf3")
	run := p.runSuite("iperf/iperf3.toml", s, "sweep.product.duration=[1]", "sweep.product.streams=[2]")
	var printed struct {
		End struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	p.document(run, &printed)
	p.wantHeadline(run, "bandwidth", map[string]string{"stream": "sum"}, printed.End.SumReceived.BitsPerSecond)
}

func TestTheSuiteFioHasTheNumbersOfItsTwoWorkersThatFioPrints(t *testing.T) {
	t.Parallel()
	p, s := start(t), tools(t, "fio", "fio")
	run := p.runSuite("fio/descriptor.toml", s, `sweep.product.directory=["`+t.TempDir()+`"]`, `sweep.product.rw=["randrw"]`, `sweep.product.bs=["4k"]`,
		`sweep.product.size=["1M"]`, `sweep.product.runtime=["1s"]`, `sweep.product.direct=[0]`, `sweep.product.ioengine=["psync"]`, "roles.0.replicas=2")
	var printed struct {
		Clients []struct {
			Name string `json:"jobname"`
			Read struct {
				Bandwidth int64 `json:"bw"` // KiB/s
				IOPS      float64
			}
		} `json:"client_stats"`
	}
	p.document(run, &printed)
	if len(printed.Clients) != 3 || printed.Clients[2].Name != "All clients" {
		t.Fatalf("fio has the clients %v", printed.Clients)
	}
	all := printed.Clients[2].Read
	p.wantHeadline(run, "iops", map[string]string{"job": "all", "op": "read"}, all.IOPS)
	if got := p.labelled(run, "bandwidth", map[string]string{"job": "all", "op": "read"}); len(got) != 1 || math.Abs(got[0]-1024*float64(all.Bandwidth)) > 1024 {
		t.Errorf("bandwidth %v, and fio prints %d KiB/s", got, all.Bandwidth)
	}
}

func TestTheSuiteOpenFOAMHasTheTimeThatGNUTimePrints(t *testing.T) {
	t.Parallel()
	requireLong(t)
	requirePrograms(t, map[string]string{"mpirun": "openmpi-bin", "/usr/sbin/sshd": "openssh-server"})
	p, s := start(t), tools(t, "openfoam", "icoFoam", "blockMesh", "decomposePar", "time")
	share := s.Root + "/usr/share/openfoam"
	run := p.runSuite("openfoam/descriptor.toml", s, `sweep.product.problem_size=["XS"]`, `sweep.product.directory=["`+t.TempDir()+`"]`,
		"env.vars.WM_PROJECT_DIR="+share, "env.vars.FOAM_ETC="+share+"/etc", "env.vars.LD_LIBRARY_PATH=")
	p.wantHeadline(run, "wall_clock_time", nil, p.printed(run, `(?m)^err real (\S+)$`))
	p.wantHeadline(run, "execution_time", nil, p.printed(run, `ExecutionTime = (\S+) s`))
	p.wantHeadline(run, "steps", nil, 15)
}

func TestTheSuitePyTorchHasTheTimesOfTwoModelsInTrainingAndEvaluation(t *testing.T) {
	t.Parallel()
	requireLong(t)
	p, s := start(t), tools(t, "pytorch", "python3")
	for _, model := range []string{"squeezenet1_1", "mobilenet_v3_small"} {
		for _, mode := range []string{"eval", "train"} {
			run := p.runSuite("pytorch/torchvision.toml", s, fmt.Sprintf("sweep.product.model=[%q]", model), fmt.Sprintf("sweep.product.benchmark_type=[%q]", mode),
				"sweep.product.input_batch_size=[2]", "sweep.product.batches=[3]", "env.vars.PYTHONHOME="+s.Root+"/usr")
			var printed map[string]float64
			p.document(run, &printed)
			for _, metric := range []string{"time_per_batch", "items_per_second", "peak_memory"} {
				p.wantHeadline(run, metric, nil, printed[metric])
			}
		}
	}
}

func TestTheSuiteOfDistributedTrainingHasTheNumbersThatItPrints(t *testing.T) {
	t.Parallel()
	requireLong(t)
	p, s := start(t), tools(t, "pytorch", "python3")
	run := p.runSuite("training/pytorch-ddp/descriptor.toml", s, "sweep.product.epochs=[5]", "env.vars.PYTHONHOME="+s.Root+"/usr")
	var printed map[string]float64
	p.document(run, &printed)
	for _, metric := range []string{"samples_per_second", "training_time", "accuracy", "loss"} {
		p.wantHeadline(run, metric, nil, printed[metric])
	}
	if printed["ranks"] != 2 || printed["accuracy"] < 0.5 {
		t.Errorf("two pods learn together, and not %v", printed)
	}
}

// Of all programs named IMB-MPI1 only that of Intel's MPI can be had as a package. It is linked
// to that MPI, whose mpiexec starts it here on the workers of the suite.
func TestTheSuiteMPIPingPongHasTheNumbersThatIMBPrints(t *testing.T) {
	t.Parallel()
	requireLong(t)
	requirePrograms(t, map[string]string{"mpirun": "openmpi-bin", "/usr/sbin/sshd": "openssh-server", "python3": "python3-venv"})
	python, err := kit.Python(t.Context(), "impi-rt", "2021.12.1")
	if err != nil {
		tooltest.Missing(t, "impi-rt of PyPI: %v", err)
	}
	root := filepath.Dir(filepath.Dir(python))
	p := start(t)
	run := p.runSuite("mpi-pingpong/descriptor.toml", kit.Suite{Bin: filepath.Join(root, "bin")}, `sweep.product.maxlog=[16]`, `ml.benchmark_code="""
#!/bin/sh -e
export I_MPI_ROOT=`+root+` FI_PROVIDER=tcp FI_PROVIDER_PATH=`+root+`/lib/libfabric/prov
export LD_LIBRARY_PATH=$I_MPI_ROOT/lib:$I_MPI_ROOT/lib/mpi/release:$I_MPI_ROOT/lib/libfabric
hosts=$(cut -d' ' -f1 "$BAI_MPI_HOSTFILE" | paste -sd,)
exec mpiexec.hydra -bootstrap ssh -bootstrap-exec "$OMPI_MCA_plm_rsh_agent" -hosts "$hosts" -ppn 1 -np {{processes}} IMB-MPI1 -msglog {{maxlog}} {{benchmark}}
"""`)
	var latency, bandwidth float64
	for _, line := range p.lines(run) {
		var bytes, repetitions int
		var micro, mega float64
		if n, err := fmt.Sscanf(line, "out %d %d %f %f", &bytes, &repetitions, &micro, &mega); err != nil || n != 4 {
			continue
		}
		if latency == 0 || micro < latency {
			latency = micro
		}
		bandwidth = max(bandwidth, mega)
	}
	p.wantHeadline(run, "minimum_latency", nil, latency/1e6)
	p.wantHeadline(run, "peak_bandwidth", nil, bandwidth*1e6)
}

// The server knows when it sent each token: LLMeter says the same of them.
func TestTheSuiteLLMHasTheDelaysOfItsServer(t *testing.T) {
	t.Parallel()
	requireLong(t)
	requirePrograms(t, map[string]string{"python3": "python3-venv"})
	python, err := kit.Python(t.Context(), "llmeter[openai]", "0.2.0", "openai==3.57.0", "httpx<1", "boto3==1.43.117", "aiobotocore==3.10.0")
	if err != nil {
		tooltest.Missing(t, "LLMeter of PyPI: %v", err)
	}
	p, server := start(t), newTokenServer(t)
	run := p.runSuite("llm/descriptor.toml", kit.Suite{Bin: filepath.Dir(python)}, "env.vars.PYTHON="+python, fmt.Sprintf("sweep.product.url=[%q]", server.URL+"/v1"),
		"sweep.product.clients=[2]", "sweep.product.requests=[5]", fmt.Sprintf("sweep.product.output_tokens=[%d]", tokensOfAnswer), "sweep.product.first_token_limit=[1.5]",
		"sweep.product.token_limit=[1]")
	var printed map[string]float64
	p.document(run, &printed)
	for metric, v := range printed {
		p.wantHeadline(run, metric, nil, v)
	}
	first, token, seconds := server.measured(t)
	for metric, want := range map[string]float64{
		"time_to_first_token_average": first, "time_per_output_token_average": token, "requests_per_second": 10 / seconds, "goodput": 8 / seconds,
		"output_tokens_per_second": 10 * tokensOfAnswer / seconds,
	} {
		if got := printed[metric]; math.Abs(got-want) > 0.15*want {
			t.Errorf("%s is %g, and the server measures %g", metric, got, want)
		}
	}
	if printed["good_requests"] != 0.8 || printed["failed_requests"] != 0 {
		t.Errorf("2 of 10 requests are slow, and not %v", printed)
	}
}

// Nothing is trained: the command prints a log that was published.
func TestTheSuiteMLPerfHasTheTimeOfAPublishedLog(t *testing.T) {
	t.Parallel()
	log, err := filepath.Abs("../../parsers/mlperf/testdata/published-v0.6-transformer.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t)
	run := p.runSuite("mlperf/descriptor.toml", kit.Suite{}, `sweep.product.command=["cat `+log+`"]`, "hardware.gpus=0")
	var begin, end float64
	for _, line := range p.lines(run) {
		_, text, _ := strings.Cut(line, ":::MLL ")
		at, text, _ := strings.Cut(text, " ")
		seconds, _ := strconv.ParseFloat(at, 64) // none in other lines
		switch {
		case strings.HasPrefix(text, "run_start:"):
			begin = seconds
		case strings.HasPrefix(text, "run_stop:"):
			end = seconds
		}
	}
	p.wantHeadline(run, "time_to_train", nil, end-begin)
}

// No machine of the checks has a card for RDMA: the run of a suite says so, and ends.
func TestTheSuitesOfRDMAEndWithWhatPerftestSaysWithoutACard(t *testing.T) {
	t.Parallel()
	if cards, _ := filepath.Glob("/sys/class/infiniband/*"); len(cards) > 0 {
		t.Skip("this machine has a card")
	}
	p, s := start(t), tools(t, "perftest", "ib_read_bw", "ib_read_lat")
	for _, suite := range []string{"rdma-bandwidth", "rdma-latency"} {
		run := p.submitSuite(suite+"/descriptor.toml", s)
		r := p.awaitComplete(run)
		log := strings.Join(p.lines(run), "\n")
		if r.GetOutcome() != baiv1.Outcome_OUTCOME_FAILED || r.GetFailureClass() != baiv1.FailureClass_FAILURE_CLASS_USER || !strings.Contains(log, "Did not detect devices") {
			t.Errorf("%s: %v of class %v: %s\n%s", suite, r.GetOutcome(), r.GetFailureClass(), r.GetMessage(), log)
		}
	}
}
