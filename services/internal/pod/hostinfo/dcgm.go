package hostinfo

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// dcgmFields are the fields of DCGM that are read: the utilization in %, the memory in
// use in MiB, and the power in W.
const dcgmFields = "203,252,155"

// byDCGM is GPUs by dcgmi, for the GPUs that nvidia-smi shows here, limited by only: DCGM
// may list others of the machine. It returns if dcgmi is missing or gets no answer.
func byDCGM(ctx context.Context, run RunFunc, every time.Duration, only []string, emit func(line []byte)) {
	path, err := exec.LookPath("dcgmi")
	if err != nil {
		return
	}
	asking, stop := context.WithTimeout(ctx, toolTimeout)
	cards := matchGPUs(run.output(asking, "dcgmi", "discovery", "-l"),
		run.output(asking, "nvidia-smi", append(only, "--query-gpu=index,uuid", "--format=csv,noheader")...))
	stop()
	if len(cards) == 0 {
		return
	}
	emitSamples := func(line string) {
		if l := dcgmLine(line, cards, time.Now()); l != nil {
			emit(l)
		}
	}
	run.lines(ctx, emitSamples, path, "dmon", "-e", dcgmFields, "-d", strconv.FormatInt(every.Milliseconds(), 10))
}

// A card is a GPU as its samples name it.
type gpu struct{ number, uuid string }

// matchGPUs returns the GPUs by DCGM's number for them, from the output of dcgmi and
// nvidia-smi. If nvidia-smi prints nothing, they are all GPUs of DCGM.
func matchGPUs(dcgm, smi string) map[int]gpu {
	shown := make(map[string]string) // UUID → number
	for line := range strings.Lines(smi) {
		if number, uuid, ok := strings.Cut(line, ","); ok {
			shown[strings.TrimSpace(uuid)] = strings.TrimSpace(number)
		}
	}
	gpus := make(map[int]gpu)
	for id, uuid := range parseDiscovery(dcgm) {
		switch number, here := shown[uuid]; {
		case here:
			gpus[id] = gpu{number, uuid}
		case len(shown) == 0:
			gpus[id] = gpu{strconv.Itoa(id), uuid}
		}
	}
	return gpus
}

// parseDiscovery reads the table of dcgmi discovery -l: the numbers of GPUs, and their
// UUIDs.
func parseDiscovery(table string) map[int]string {
	first, uuids := regexp.MustCompile(`^\|\s*(\d{1,5})\s*\|`), regexp.MustCompile(`Device UUID:\s*(GPU-[0-9A-Fa-f-]{1,64})`)
	all, id := make(map[int]string), -1
	for line := range strings.Lines(table) {
		if m := first.FindStringSubmatch(line); m != nil {
			id, _ = strconv.Atoi(m[1]) // digits
		}
		if m := uuids.FindStringSubmatch(line); m != nil && id >= 0 {
			all[id] = m[1]
			id = -1 // switches and others follow in tables of their own
		}
	}
	return all
}

// dcgmLine returns the samples of one line of dcgmi dmon, nothing where it is not that
// of a GPU that is measured.
func dcgmLine(text string, gpus map[int]gpu, now time.Time) []byte {
	var kind string
	var id int
	if n, err := fmt.Sscan(text, &kind, &id); n != 2 || err != nil || kind != "GPU" {
		return nil
	}
	c, ok := gpus[id]
	fields := strings.Fields(text)
	if want := 2 + strings.Count(dcgmFields, ",") + 1; !ok || len(fields) != want {
		return nil
	}
	return gpuSamples(now, fields[2:], map[string]string{"gpu": c.number, "uuid": c.uuid})
}
