package perftest

import (
	"fmt"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// A kind is a kind of benchmark of kube-perftest.
type kind struct {
	name    string
	image   string // the end of its name
	about   string // the description of the descriptor
	axis    string // the option that a set without permutations has as its only axis
	options []option
	write   func(d *draft.Draft, v *values)
}

// imagePrefix begins the names of kube-perftest's images, and imageTag ends them.
const (
	imagePrefix = "ghcr.io/stackhpc/kube-perftest-"
	imageTag    = ":latest"
)

func kinds() []kind {
	return []kind{
		{
			"IPerf", "iperf", "Throughput of TCP between two pods, with iperf 2", "streams",
			common(number("duration", 1, 0).needed(), number("streams", 1, 0).needed()), iperf,
		},
		{
			"MPIPingPong", "mpi-benchmarks", "Latency and bandwidth of MPI messages between two pods, with IMB-MPI1", "maxlog",
			common(append(mpiOptions(), number("maxlog", 1, 22))...), pingPong,
		},
		{
			"OpenFOAM", "openfoam", "Time of a lid-driven cavity in OpenFOAM", "problemSize",
			common(append(mpiOptions(), openFOAMOptions()...)...), openFOAM,
		},
		{
			"RDMABandwidth", "perftest", "Bandwidth of RDMA between two pods, with perftest", "mode",
			common(append(rdmaOptions(), number("qps", 1, 1))...), rdmaBandwidth,
		},
		{"RDMALatency", "perftest", "Latency of RDMA between two pods, with perftest", "mode", common(rdmaOptions()...), rdmaLatency},
		{"Fio", "fio", "Throughput and latency of a file system, with fio", "rw", common(fioOptions()...), fio},
		{"PyTorch", "pytorch-benchmarks", "Time of a model of PyTorch's benchmark suite", "model", pyTorchOptions(), pyTorch},
	}
}

// apart has each pod of the run on a node of its own, which other runs do not use.
func apart(d *draft.Draft) *draft.Table {
	return alone(d).Set("apart", "node")
}

// alone has the run on nodes that other runs do not use. Its pods have what the nodes have.
func alone(d *draft.Draft) *draft.Table {
	h := d.Table("hardware").Set("placement", "exclusive")
	return h.Set("gpus", 0)
}

func iperf(d *draft.Draft, v *values) {
	apart(d)
	d.Item("roles").Set("name", "server").Set("benchmark_code", "iperf --server --port $(BAI_PORT_SERVER)").Set("ready",
		draft.Inline{{Key: "port", Value: 5001}})
	client(d).Set("benchmark_code",
		fmt.Sprintf("iperf --client $(BAI_HOSTS_SERVER) --port $(BAI_PORT_SERVER) --time %s --parallel %s --format k",
			v.text("duration"), v.text("streams")))
	d.Item("output.parsers").Set("kind", "iperf2")
}

// client adds the role that starts after the server.
func client(d *draft.Draft) *draft.Table {
	return d.Item("roles").Set("name", "client").Set("starts_after", []string{"server"})
}

// openMPI is where the image of MPIPingPong has Open MPI.
const openMPI = "/usr/lib64/openmpi"

func pingPong(d *draft.Draft, v *values) {
	apart(d).Set("strategy", "mpi")
	d.Table("hardware.distributed").Set("num_instances", 2).Set("processes_per_instance", 1)
	d.Table("ml").Set("benchmark_code", "mpirun --prefix "+openMPI+" --allow-run-as-root --display-map -np 2 --map-by ppr:1:node "+
		"mpitests-IMB-MPI1 -msglog "+v.text("maxlog")+" pingpong")
	d.Item("output.parsers").Set("kind", "imb")
}

func openFOAMOptions() []option {
	return []option{
		choice("problemSize", "S", "S", "M", "XL", "XXL"),
		choice("iterativeMethod", "fixedNORM", "fixedITER", "fixedNORM", "FOAM-DIC-PCG.fixedNORM", "FOAM-GAMG-PCG.fixedNORM",
			"PETSc-AMG-CG.fixedNORM", "PETSc-AMG-CG.fixedNORM.caching", "PETSc-ICC-CG.fixedNORM"),
		number("numProcs", 1, 1),
		number("numNodes", 1, 1).with(nodes).inTables(),
	}
}

// nodes returns the settings for a number of nodes. One node needs no connections, and strategy
// mpi, which the descriptor has where the numbers differ, has two at least.
func nodes(value any) []kube.Setting {
	if value == int64(1) {
		return []kube.Setting{{Key: "hardware.strategy", Value: "single_node"}}
	}
	return []kube.Setting{{Key: "hardware.distributed.num_instances", Value: value}}
}

// foamScript prepares the case as kube-perftest's init container does, and runs the solver. Its
// places are for size, method, and twice the number of processes.
const foamScript = `#!/bin/bash
awk '{ print $1 }' "${BAI_MPI_HOSTFILE:-/dev/null}" > /tmp/hosts
export RSYNC_RSH="${OMPI_MCA_plm_rsh_agent:-ssh}"
openfoam-init %s %s %s /tmp/hosts || exit 1
. /opt/openfoam10/etc/bashrc
cd /opt/benchmark || exit 1
exec /usr/bin/time -p mpirun --allow-run-as-root --display-map -np %s --map-by node -x PATH foamExec icoFoam -parallel
`

func openFOAM(d *draft.Draft, v *values) {
	h := alone(d)
	if v.number("numNodes") > 1 || v.varies("numNodes") {
		h.Set("apart", "node").Set("strategy", "mpi")
		d.Table("hardware.distributed").Set("num_instances", max(v.number("numNodes"), 2)).Set("processes_per_instance", v.text("numProcs"))
	}
	d.Table("ml").Set("benchmark_code",
		draft.Script(fmt.Sprintf(foamScript, v.text("problemSize"), v.text("iterativeMethod"), v.text("numProcs"), v.text("numProcs"))))
	d.Item("output.parsers").Set("kind", "openfoam")
}

func rdmaOptions() []option {
	return []option{choice("mode", "read", "read", "write"), number("iterations", 5, 1000), arguments("extraArgs")}
}

func rdmaBandwidth(d *draft.Draft, v *values) {
	verbs(d, v, "bw -a -F --report_gbits -R -q "+v.text("qps"))
}

func rdmaLatency(d *draft.Draft, v *values) { verbs(d, v, "lat -a -F -R") }

// rdmaPort is the standard port of perftest.
const rdmaPort = "18515"

// verbs writes the two roles of a program of perftest. Its server ends with its client.
func verbs(d *draft.Draft, v *values, program string) {
	apart(d)
	v.rdma = true
	command := "ib_" + v.text("mode") + "_" + program + " -n " + v.text("iterations") + " -p " + rdmaPort
	if extra := v.text("extraArgs"); extra != "" {
		command += " " + extra
	}
	d.Item("roles").Set("name", "server").Set("benchmark_code", "stdbuf -oL "+command).
		Set("ready", draft.Inline{{Key: "log", Value: "Waiting for client"}}).Set("ends_run", true)
	client(d).Set("benchmark_code", command+" $(BAI_HOSTS_SERVER)").Set("ends_run", true)
	d.Item("output.parsers").Set("kind", "perftest").Set("role", "client")
}

func pyTorchOptions() []option {
	return append([]option{
		choice("device", "cpu", "cpu", "cuda"),
		choice("model", "", "alexnet", "resnet50", "llama").needed(),
		choice("benchmarkType", "eval", "train", "eval"),
		{name: "inputBatchSize", standard: int64(64), read: batchSize},
	}, networks("kind PyTorch does not read it, and its one pod sends nothing: left out")...)
}

func batchSize(v document.Value) any {
	n := v.Int(2, most)
	if n%2 != 0 {
		v.Fault("", "is %d, and has to be a multiple of 2", n)
	}
	return n
}

func pyTorch(d *draft.Draft, v *values) {
	h := alone(d)
	if v.read["device"] == "cuda" && !v.hasGPUs() {
		v.spec.Get("device").Remark("cuda needs a GPU, and resources ask for none: one is added")
		h.Set("gpus", 1)
	}
	d.Table("ml").Set("benchmark_code", fmt.Sprintf("/usr/bin/time -v python3 run.py %s -t %s -d %s --bs %s",
		v.text("model"), v.text("benchmarkType"), v.text("device"), v.text("inputBatchSize")))
	d.Item("output.parsers").Set("kind", "torchbench")
}
