package perftest

import (
	"fmt"
	"strings"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/document"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/draft"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/convert/kube"
)

// scratch is where the workers of fio write.
const scratch = "/mnt/benchmark/scratch"

func fioOptions() []option {
	return []option{
		between("fioPort", 1024, 65535, 8765).with(sets("roles.0.ready.port")).inTables(),
		{
			name: "volumeClaimTemplate", read: claim, written: true,
			settings: func(v any) []kube.Setting { all, _ := v.([]kube.Setting); return all },
		},
		number("numWorkers", 1, 1).with(sets("roles.0.replicas")).inTables(),
		direction(),
		amount("bs", "4M", "[kKmMgGtTpP]([iI]?[bB])?", "4M"),
		number("iodepth", 1, 1), number("nrfiles", 1, 1),
		choice("ioengine", "libaio", "libaio"),
		percent("rwmixread", 50), percent("percentageRandom", 100),
		number("numJobs", 1, 1),
		{name: "direct", standard: int64(1), read: func(v document.Value) any { return v.Int(0, 1) }},
		amount("runtime", "30s", "[dDhHmMsS]|ms|us", "30s"),
		amount("size", "10G", "[kKmMgGtTpP]([iI]?[bB])?", "10G"),
		{name: "thread", standard: "", read: func(v document.Value) any {
			if v.Bool() {
				return "thread"
			}
			return ""
		}},
	}
}

// direction is an option with the directions of fio. The operator has one of them under two names at once.
func direction() option {
	o := choice("rw", "read", "read", "write", "randread", "randwrite", "rw,readwrite", "randrw")
	read := o.read
	o.read = func(v document.Value) any {
		if value := read(v); value != "rw,readwrite" {
			return value
		}
		return "rw"
	}
	return o
}

func percent(name string, standard int64) option {
	return option{name: name, standard: standard, read: func(v document.Value) any { return v.Int(0, 100) }}
}

// claim reads the spec of a PersistentVolumeClaim: a volume that all workers share if it can be
// mounted by many, and one for each worker if not.
func claim(v document.Value) any {
	if len(v.Keys()) == 0 {
		return nil
	}
	size, key := v.Get("resources", "requests", "storage"), "ephemeral"
	volume := draft.Inline{{Key: "size", Value: size.Scalar()}}
	if !size.Has() {
		v.Fault("add resources.requests.storage", "has no size")
	}
	if class := v.Get("storageClassName"); class.Has() {
		volume = append(volume, draft.Pair{Key: "storage_class", Value: class.Scalar()})
	}
	for _, mode := range v.Get("accessModes").Strings() {
		if mode == "ReadWriteMany" {
			key, volume = "template", append(volume, draft.Pair{Key: "access", Value: mode})
			break
		}
	}
	return []kube.Setting{{Key: "volumes.0." + key, Value: volume}}
}

// fioLines are the lines of the job file, each with its option.
func fioLines() [][2]string {
	return [][2]string{
		{"bs", "bs"},
		{"iodepth", "iodepth"},
		{"direct", "direct"},
		{"ioengine", "ioengine"},
		{"runtime", "runtime"},
		{"numjobs", "numJobs"},
		{"rw", "rw"},
		{"size", "size"},
		{"percentage_random", "percentageRandom"},
		{"rwmixread", "rwmixread"},
		{"nrfiles", "nrfiles"},
	}
}

func fio(d *draft.Draft, v *values) {
	alone(d)
	if !v.varies("volumeClaimTemplate") && v.read["volumeClaimTemplate"] == nil {
		v.spec.Remark("has no volumeClaimTemplate: the workers write to the file systems of their containers")
	}
	d.Item("roles").Set("name", "worker").Set("replicas", v.number("numWorkers")).
		Set("benchmark_code", draft.Script("#!/bin/sh -e\nmkdir -p "+scratch+"\nexec fio --server=,$BAI_PORT_WORKER\n")).
		Set("ready", draft.Inline{{Key: "port", Value: v.number("fioPort")}})
	d.Item("roles").Set("name", "client").Set("starts_after", []string{"worker"}).Set("benchmark_code", draft.Script(fioScript(v)))
	if volume := v.volume(); volume != nil {
		d.Item("volumes").Set("path", scratch).Set("role", "worker").Set(strings.TrimPrefix(volume[0].Key, "volumes.0."), volume[0].Value)
	}
	d.Item("output.parsers").Set("kind", "fio")
}

// volume returns the settings of the volume; nil without one.
func (v *values) volume() []kube.Setting {
	all, _ := v.read["volumeClaimTemplate"].([]kube.Setting)
	return all
}

// fioScript writes the job file and the list of workers, and runs the job on all of them.
func fioScript(v *values) string {
	var s strings.Builder
	s.WriteString("#!/bin/sh -e\njob=$(mktemp)\nworkers=$(mktemp)\ncat > \"$job\" <<'END'\n[global]\n")
	for _, line := range fioLines() {
		fmt.Fprintf(&s, "%s=%s\n", line[0], v.text(line[1]))
	}
	if thread := v.text("thread"); thread != "" {
		s.WriteString(thread + "\n")
	}
	s.WriteString("time_based\n\n[benchmark]\ndirectory=" + scratch + "\nEND\n")
	s.WriteString("for host in $BAI_HOSTS_WORKER; do echo \"$host,$BAI_PORT_WORKER\"; done > \"$workers\"\n")
	s.WriteString("exec fio --client=\"$workers\" \"$job\" --output-format=json+\n")
	return s.String()
}
