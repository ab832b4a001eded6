package hostinfo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Names of the metrics of each GPU, with its number as the label "gpu".
const (
	MetricGPU       = "system.gpu.utilization" // %
	MetricGPUMemory = "system.gpu.memory"      // B
	MetricGPUPower  = "system.gpu.power"       // W
)

// GPUs measures the use of the GPUs that CUDA may use here at each interval until ctx is
// done, and hands over lines as Meter.Measure returns them: by DCGM if it answers; else,
// and once it has ended, by nvidia-smi. Without both, and without GPUs, it returns at
// once.
func GPUs(ctx context.Context, run RunFunc, every time.Duration, emit func(line []byte)) {
	only, ok := visibleGPUs(os.LookupEnv("CUDA_VISIBLE_DEVICES"))
	if !ok {
		return
	}
	if byDCGM(ctx, run, every, only, emit); ctx.Err() == nil {
		bySMI(ctx, run, every, only, emit)
	}
}

// visibleGPUs returns the argument of nvidia-smi that limits it to the GPUs of
// CUDA_VISIBLE_DEVICES, none where that is not set or names parts of GPUs (MIG), which
// nvidia-smi cannot choose. It is false where CUDA may use no GPU. As in CUDA, the first
// entry that is no number or UUID ends the list:
// https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars
func visibleGPUs(list string, set bool) (args []string, ok bool) {
	if !set || strings.Contains(list, "MIG-") {
		return nil, true
	}
	var ids []string
	for id := range strings.SplitSeq(list, ",") {
		if id = strings.TrimSpace(id); !gpuID.MatchString(id) {
			break
		}
		ids = append(ids, id)
	}
	return []string{"--id=" + strings.Join(ids, ",")}, len(ids) > 0
}

var gpuID = regexp.MustCompile(`^(\d{1,5}|GPU-[0-9A-Fa-f-]{1,64})$`)

// bySMI is GPUs by nvidia-smi.
func bySMI(ctx context.Context, run RunFunc, every time.Duration, only []string, emit func(line []byte)) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return
	}
	emitSamples := func(line string) {
		if l := gpuLine(line, time.Now()); l != nil {
			emit(l)
		}
	}
	run.lines(ctx, emitSamples, path, append(only, "--query-gpu=index,utilization.gpu,memory.used,power.draw",
		"--format=csv,noheader,nounits", fmt.Sprintf("--loop-ms=%d", every.Milliseconds()))...)
}

// gpuLine returns the samples of one line of nvidia-smi, as far as it has
// numbers.
func gpuLine(text string, now time.Time) []byte {
	parts := strings.Split(text, ",")
	if len(parts) != 4 {
		return nil
	}
	return gpuSamples(now, parts[1:], map[string]string{"gpu": strings.TrimSpace(parts[0])})
}

// gpuSamples returns the samples of one GPU from the texts of its utilization, memory
// in MiB and power, nothing where none of them is a number.
func gpuSamples(now time.Time, texts []string, labels map[string]string) []byte {
	l := line{at: now}
	for i, of := range []struct {
		name, unit string
		factor     float64
	}{{MetricGPU, "%", 1}, {MetricGPUMemory, "B", 1 << 20}, {MetricGPUPower, "W", 1}} {
		v, err := strconv.ParseFloat(strings.TrimSpace(texts[i]), 64)
		if err == nil && v >= 0 && v < maxReading { // nor NaN
			l.add(of.name, of.unit, v*of.factor)
		}
	}
	if len(l.values) == 0 {
		return nil
	}
	labelsJSON, err := json.Marshal(labels)
	if err != nil {
		return nil // cannot be: they are texts
	}
	return fmt.Appendf(nil, "{%s\"@time\": %d.%09d, \"@unit\": {%s}, \"@labels\": %s}\n",
		l.values, now.Unix(), now.Nanosecond(), l.units[2:], labelsJSON)
}

// maxReading is more than any valid reading: tools print such a value for a reading that
// they lack.
const maxReading = 1 << 40
