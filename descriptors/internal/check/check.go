// Package check has the rules between the keys of a descriptor. Each reports faults of values in the file, and skips values that could not
// be read.
package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/cron"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/fault"
	"github.com/benchmark-ai/bai/descriptors/internal/suggest"
	"github.com/benchmark-ai/bai/descriptors/internal/types"
	"github.com/benchmark-ai/bai/descriptors/internal/words"
)

// Platform is what is known of the platform that the descriptor is for. Its fields are those of parser.Parser.
type Platform struct {
	Instances    descriptors.Instances
	Zones        []string
	NodeSelector map[string]string
	PullPolicy   string
	Placements   []string
	Engines      []string
	OneMachine   bool
	CustomParams bool
	Allow        descriptors.Allowlists
	Destinations map[string][]string
	Receivers    map[string][]string
	Manifests    []string
	Namespace    string
	Accepted     bool
}

// Descriptor reports the faults between the keys of d, which was decoded with r. In a damaged file a part could not be read, which may hold
// the missing keys.
func Descriptor(d *descriptors.Descriptor, r *decode.Report, p Platform, damaged bool) {
	rules{d: d, r: r, platform: p, damaged: damaged}.all()
}

// TaskLabel is the label that equals info.task_name.
const TaskLabel = "task_name"

// rules has the rules for one descriptor.
type rules struct {
	d        *descriptors.Descriptor
	r        *decode.Report
	platform Platform
	damaged  bool
}

func (c rules) all() {
	c.info()
	c.hardware("hardware", &c.d.Hardware)
	c.tolerations("hardware", c.d.Hardware.Tolerations)
	c.distributed()
	c.severalPods()
	c.network()
	c.env("env", c.d.Env)
	c.ml()
	c.roles()
	c.steps()
	c.manifest()
	c.command()
	c.variables()
	c.sources("data.sources", c.d.Data.Sources)
	c.volumes()
	c.references()
	c.output("output", c.d.Output)
	c.destinations()
	c.receivers("info.notify", c.d.Info.Notify)
	c.cost()
	c.alarms()
	c.secretFiles("", c.d.Env, c.d.Output)
	c.server()
	c.oneMachine()
	if c.d.Sweep != nil {
		c.sweep(c.d.Sweep)
	}
	if c.r.Has("custom_params") && !c.platform.CustomParams {
		c.r.Warn("custom_params", fault.NotRead, "is kept, but only an engine of kind exec reads it", "")
	}
}

func (c rules) sweep(s *descriptors.Sweep) {
	if s.Order != descriptors.Random && c.r.Has("sweep.seed") && !c.r.HasError("sweep.order") {
		c.r.Warn("sweep.seed", fault.NotRead, fmt.Sprintf("order %s has no seed", s.Order), `write order = "random", or leave this out`)
	}
	if s.StopWhen == nil {
		return
	}
	if c.r.Has("sweep.repetitions") {
		c.r.Fault("sweep.repetitions", fault.BadStopWhen, "sweep.stop_when decides the number of repetitions",
			"leave this out, or sweep.stop_when")
	}
	if s.Order == descriptors.Random {
		c.r.Fault("sweep.order", fault.BadStopWhen, "order random has no stop_when", `write order = "interleaved" or "sequential"`)
	}
	if c.r.IsValid("sweep.stop_when.max") && !c.r.HasError("sweep.stop_when.min") && s.StopWhen.Min > s.StopWhen.Max {
		c.r.Fault("sweep.stop_when.max", fault.BadStopWhen, fmt.Sprintf("is less than min, %d", s.StopWhen.Min), "write max as min or more")
	}
}

func (c rules) info() {
	info := c.d.Info
	if label, ok := info.Labels[TaskLabel]; ok && c.r.IsValid("info.task_name") && label != info.TaskName {
		c.r.Fault("info.task_name", fault.TaskName,
			fmt.Sprintf("says %q, the label %s says %q", info.TaskName, TaskLabel, label), "keep one of the two")
	}
	if c.r.Has("info.timezone") && !info.Scheduled() && !c.r.HasError("info.scheduling") {
		c.r.Warn("info.timezone", fault.NotRead, "only a schedule has a time zone, and this runs once",
			"give info.scheduling, or leave this out")
	}
	c.engine(info.ExecutionEngine)
	c.schedule()
}

// schedule checks the keys that only a schedule reads.
func (c rules) schedule() {
	const at = "schedule"
	info, s := c.d.Info, c.d.Schedule
	if c.r.Has(at) && !info.Scheduled() && !c.r.HasError("info.scheduling") && !c.r.HasError(at) {
		c.r.Warn(at, fault.NotRead, "only a schedule reads it, and this runs once", "give info.scheduling, or leave this out")
		return
	}
	if s.Missed == descriptors.SkipMissed && c.r.Has(at+".missed_window") && c.r.IsValid(at+".missed") {
		c.r.Warn(at+".missed_window", fault.NotRead, "no firing that was missed is made, however early", "leave it out")
	}
	if !c.r.IsValid(at+".end") || c.r.HasError(at+".start") || c.r.HasError("info.timezone") {
		return
	}
	start, end := c.d.Firing()
	first := start
	if fires, err := cron.Parse(info.Scheduling); err == nil {
		zone, _ := info.Zone() // it is one of the language's
		first = fires.Next(start.Add(-time.Nanosecond).In(zone))
	}
	switch {
	case !end.After(start):
		c.r.Fault(at+".end", fault.NoTime, "is not later than start", "choose a later time, or leave it out")
	case !start.IsZero() && !first.Before(end):
		c.r.Fault(at+".end", fault.NoTime, "comes before the schedule fires for the first time", "choose a later time, or leave it out")
	}
}

// engine looks at the engine that is named: of those of the platform, where they are
// known, else of those that a platform can have.
func (c rules) engine(engine string) {
	const at = "info.execution_engine"
	engines, known := []string{"default", "kubernetes", "local"}, c.platform.Engines != nil && !c.platform.Accepted
	if known {
		engines = c.platform.Engines
	}
	if slices.Contains(engines, engine) || c.r.HasError(at) {
		return
	}
	if known {
		c.r.Fault(at, fault.NoEngine, fmt.Sprintf("this platform has no engine %q", engine),
			"use one of "+strings.Join(engines, ", ")+", or leave it out")
		return
	}
	remedy := "a platform has default, one of kubernetes and local, and those that its settings name"
	if suggestion := suggest.Find(engine, engines); suggestion != "" {
		remedy = fmt.Sprintf("did you mean %q?", suggestion)
	}
	c.r.Warn(at, fault.UnknownEngine, fmt.Sprintf("a platform without an engine %q refuses the run", engine), remedy)
}

// hardware looks at the table at path, and takes the number of GPUs from the
// instances where only they know it.
func (c rules) hardware(path string, h *descriptors.Hardware) {
	if !c.r.Has(path) || c.r.HasError(path) {
		return
	}
	specified := false
	for _, key := range []string{"instance_type", "gpus", "cpus", "memory", "requests", "limits", "node_selector"} {
		specified = specified || c.r.Has(path+"."+key)
	}
	if !specified && !c.damaged {
		c.r.Fault(path, fault.NoHardware, "says nothing about the machine", "add instance_type, or gpus, cpus, memory or node_selector")
	}
	c.zone(path, h)
	c.nodes(path, *h)
	c.gpus(path, h)
	c.resources(path, *h)
}

// zone looks at the zone at path: a platform knows the IDs that its settings map
// to names.
func (c rules) zone(path string, h *descriptors.Hardware) {
	at := path + ".aws_zone_id"
	switch {
	case c.platform.OneMachine || !c.r.Has(at):
	case c.r.Has(path + ".availability_zone"):
		c.r.Warn(at, fault.NotRead, "availability_zone wins over it", "leave one of the two out")
	case c.platform.Zones == nil || c.platform.Accepted || !c.r.IsValid(at) || slices.Contains(c.platform.Zones, h.AWSZoneID):
	case len(c.platform.Zones) == 0:
		c.r.Fault(at, fault.UnknownZone, "this platform has no map of zone IDs", "use availability_zone, which takes the name of a zone")
	default:
		c.r.Fault(at, fault.UnknownZone, fmt.Sprintf("this platform does not know the zone %q", h.AWSZoneID),
			"use one of "+strings.Join(c.platform.Zones, ", ")+", or availability_zone, which takes the name of a zone")
	}
}

// oneMachine warns once that a platform of one machine has no zones.
func (c rules) oneMachine() {
	if !c.platform.OneMachine {
		return
	}
	for _, at := range []string{
		"hardware.aws_zone_id", "hardware.availability_zone", "server.hardware.aws_zone_id",
		"server.hardware.availability_zone",
	} {
		if c.r.Has(at) {
			c.r.Warn(at, fault.NotRead, "the local cluster has no zones: this machine stands for all of them", "")
			return
		}
	}
}

func (c rules) gpus(path string, h *descriptors.Hardware) {
	if !c.r.IsValid(path+".instance_type") || c.r.HasError(path+".gpus") {
		return
	}
	count, known := c.platform.Instances.GPUs(h.InstanceType)
	switch {
	case !known && h.GPUs == nil && c.needsGPUs(path):
	case !known && h.GPUs == nil:
		c.r.Warn(path+".instance_type", fault.UnknownType,
			fmt.Sprintf("the number of GPUs of %s is not known; none is asked for", h.InstanceType), "add gpus = 0, or how many it has")
	case known && h.GPUs == nil:
		if here, ok := descriptors.Instances("").GPUs(h.InstanceType); !ok || here != count {
			h.GPUs = &count
		}
	case known && *h.GPUs > count:
		c.r.Warn(path+".gpus", fault.GPUsDiffer, fmt.Sprintf("more than the %d of %s", count, h.InstanceType), "")
	}
}

// needsGPUs reports whether the GPUs of the machine at path are unknown, which is a fault
// and makes other rules moot.
func (c rules) needsGPUs(path string) bool {
	h := c.d.Hardware
	return path == "hardware" && h.Strategy == descriptors.MPI && h.Distributed.ProcessesPerInstance.OnePerGPU
}

func (c rules) tolerations(path string, all []descriptors.Toleration) {
	for i, t := range all {
		at := fmt.Sprintf("%s.tolerations[%d]", path, i)
		switch {
		case t.Operator == "Exists" && t.Value != "":
			c.r.Fault(at+".value", fault.BadToleration, "operator Exists compares no value", "leave value out, or use operator Equal")
		case t.Operator == "Equal" && t.Key == "" && !c.r.Has(at+".key"):
			c.r.Fault(at, fault.BadToleration, "operator Equal needs a key", `add key, or operator = "Exists"`)
		}
		if t.Seconds != nil && t.Effect != "NoExecute" && !c.r.HasError(at+".effect") {
			c.r.Fault(at+".toleration_seconds", fault.BadToleration, "only effect NoExecute has a time",
				`add effect = "NoExecute", or leave this out`)
		}
	}
}

// distributed checks the keys that only strategy mpi reads. With other strategies they
// may have any value of the right type.
func (c rules) distributed() {
	const at = "hardware.distributed"
	c.slots(at + ".processes_per_instance")
	switch {
	case c.r.HasError("hardware.strategy") || !c.r.Has("hardware"):
		return
	case c.d.Hardware.Strategy != descriptors.MPI:
		c.r.Drop(at, fault.UnknownKey, fault.WrongType)
		if c.r.Has(at) && !c.r.HasError(at) {
			c.r.Warn(at, fault.NotRead, c.strategy()+" does not read it", "")
		}
		return
	}
	const least, most = 2, 100_000
	dist := c.d.Hardware.Distributed
	if !c.r.HasError(at+".num_instances") && (dist.NumInstances < least || dist.NumInstances > most) {
		c.r.Fault(at+".num_instances", fault.FewInstances,
			fmt.Sprintf("is %d; strategy mpi runs on %d to %d", dist.NumInstances, least, most), "")
	}
	if dist.ProcessesPerInstance.OnePerGPU {
		c.onePerGPU(at + ".processes_per_instance")
	}
}

// slots gives each pod as many processes as it has GPUs where the key at is not
// there, and one where it has none or its strategy is another one.
func (c rules) slots(at string) {
	if c.r.Has(at) {
		return
	}
	n := 1
	if gpus, known := c.d.Hardware.GPUCount(); known && c.d.Hardware.Strategy == descriptors.MPI {
		n = max(n, gpus)
	}
	c.d.Hardware.Distributed.ProcessesPerInstance = descriptors.Processes{Number: n}
}

func (c rules) onePerGPU(at string) {
	count, known := c.d.Hardware.GPUCount()
	if c.r.HasError("hardware.gpus") || c.r.HasError("hardware.instance_type") {
		return
	}
	switch {
	case !known && c.platform.Accepted:
	case !known:
		c.r.Fault(at, fault.GPUsUnknown, fmt.Sprintf("the number of GPUs of %s is not known", c.d.Hardware.InstanceType),
			"add gpus to [hardware]")
	case count == 0:
		c.r.Fault(at, fault.NoGPUs, "there is no GPU to run a process on", "write a number, or choose an instance type with GPUs")
	}
}

// mostVariable is how many bytes Linux takes of one variable, as NAME=VALUE.
const mostVariable = 128<<10 - 1

func (c rules) env(at string, env descriptors.Env) {
	if own, fixed := env.PullPolicy.Kubernetes(), c.platform.PullPolicy; own != "" && fixed != "" && own != fixed && !c.platform.Accepted {
		c.r.Fault(at+".pull_policy", fault.OtherPullPolicy, fmt.Sprintf("this platform pulls all images by the policy %s", fixed),
			"leave it out")
	}
	for name := range env.Secrets {
		if _, ok := env.Vars[name]; ok {
			c.r.Fault(at+".secrets."+decode.Quoted(name), fault.DuplicateVariable, "is a variable of vars too", "keep one of the two")
		}
	}
	for name, value := range env.Vars {
		if n := len(name) + len("=") + len(value); n > mostVariable && !c.platform.Accepted {
			c.r.Fault(at+".vars."+decode.Quoted(name), fault.BadVariable, fmt.Sprintf("NAME=VALUE has %d bytes; the kernel takes %d", n,
				mostVariable), "put the value into a file of a data source or of the code that is sent along")
		}
	}
}

// references finds objects of the cluster that the descriptor may not name, and rights that
// its pods may not have. The local cluster reads no claims, priority classes and queues, and
// pulls no images; its pods have the rights of its user.
func (c rules) references() {
	namespace := cmp.Or(c.platform.Namespace, "default")
	for _, r := range c.d.References() {
		message, remedy := c.platform.Allow.Refusal(namespace, r)
		switch {
		case message == "" || c.platform.Accepted || c.r.HasError(r.Path) && r.Path != c.d.ObjectsKey():
		case r.Reserved():
			c.faultOf(r, fault.PlatformObject, message, remedy)
		case c.platform.Allow == nil || c.platform.OneMachine && (r.Pull || r.Kind != descriptors.RefSecret):
		default:
			c.faultOf(r, refusalCode(r.Kind), message, remedy)
		}
	}
}

// refusalCode is the code of a name that the platform does not let descriptors give.
func refusalCode(k descriptors.ReferenceKind) string {
	switch k {
	case descriptors.RefPriority:
		return fault.OtherPriority
	case descriptors.RefQueue:
		return fault.OtherQueue
	case descriptors.RefRight:
		return fault.OtherRight
	case descriptors.RefSecret, descriptors.RefClaim:
	}
	return fault.NotAllowed
}

func (c rules) ml() {
	ml := c.d.ML
	if ml == nil {
		return
	}
	if c.r.IsValid("ml.framework_version") && ml.FrameworkVersion != "" && ml.Framework == "" && !c.r.HasError("ml.framework") &&
		!c.damaged {
		c.r.Fault("ml.framework_version", fault.Framework, "a version of which framework?", "add framework")
	}
}

// command finds a run of strategy mpi without a command: mpirun starts no image's
// entrypoint.
func (c rules) command() {
	const at = "hardware.strategy"
	if c.d.Hardware.Strategy != descriptors.MPI || !c.r.IsValid(at) || c.damaged || c.r.HasError("ml") ||
		c.r.HasError("ml.benchmark_code") {
		return
	}
	if argv, _, err := c.d.Command(); err == nil && len(argv) == 0 {
		c.r.Fault(at, fault.NoCommand, "strategy mpi needs ml.benchmark_code: mpirun cannot start the entrypoint of an image",
			"add benchmark_code to [ml]")
	}
}

// variables finds commands with variables of the platform that only other commands have:
// a server has no address of a server, nor does a benchmark without one.
func (c rules) variables() {
	provided := types.IsPlatformVariable
	if c.d.Hardware.Strategy != descriptors.Inference {
		provided = types.IsCodeVariable
	}
	for i, r := range c.d.Roles {
		if _, _, script := types.Script(r.BenchmarkCode); !script {
			c.unexpandedVariables(fmt.Sprintf("roles[%d].benchmark_code", i), r.BenchmarkCode, provided)
		}
		c.unexpandedVariables(fmt.Sprintf("roles[%d].args", i), r.Args, provided)
	}
	for i, step := range c.d.Steps {
		if _, _, script := types.Script(step.Command); !script {
			c.unexpandedVariables(fmt.Sprintf("steps[%d].command", i), step.Command, types.IsCodeVariable)
		}
	}
	if ml := c.d.ML; ml != nil {
		if _, _, script := c.d.Script(); !script {
			c.unexpandedVariables("ml.benchmark_code", ml.BenchmarkCode, provided)
		}
		c.unexpandedVariables("ml.args", ml.Args, provided)
	}
	if s := c.d.Server; s != nil {
		none := func(string) bool { return false }
		if _, _, script := s.Env.Script(); !script {
			c.unexpandedVariables("server.env.start_command", s.Env.StartCommand, none)
		}
		c.unexpandedVariables("server.env.start_command_args", s.Env.StartCommandArgs, none)
	}
}

// unexpandedVariables warns of a variable in the command at path that the platform gives to
// other commands only. Of those that it gives to none there is a warning already.
func (c rules) unexpandedVariables(path, command string, provided func(name string) bool) {
	all, err := words.Read(command)
	if err != nil || !c.r.IsValid(path) || words.NeedsShell(all, types.IsPlatformVariable) != "" {
		return
	}
	if word := words.NeedsShell(all, provided); word != "" {
		c.r.Warn(path, fault.NoShell, types.Unexpanded(word), types.WithoutShell)
	}
}

// sources finds equal paths, and paths inside others, among those of each role.
func (c rules) sources(at string, sources []descriptors.Source) {
	c.shared(at, sources)
	byRole := map[string][]string{}
	for i, s := range sources {
		c.role(fmt.Sprintf("%s[%d].role", at, i), s.Role)
		for _, role := range c.d.Readers(s) {
			if byRole[role] == nil {
				byRole[role] = make([]string, len(sources))
			}
			byRole[role][i] = s.Path
		}
	}
	for _, role := range slices.Sorted(maps.Keys(byRole)) {
		c.checkPathOverlap(at, byRole[role])
	}
}

// checkPathOverlap finds equal paths, and paths inside others; those that are empty are not
// looked at.
func (c rules) checkPathOverlap(at string, paths []string) {
	c.paths(at, paths)
	var outer []int // sources in one another, each in the one before
	for _, i := range byFolder(paths) {
		for len(outer) > 0 && !strings.HasPrefix(paths[i], paths[outer[len(outer)-1]]+"/") {
			outer = outer[:len(outer)-1]
		}
		if len(outer) > 0 && !c.r.HasError(fmt.Sprintf("%s[%d].path", at, i)) { // of another role
			j := outer[len(outer)-1]
			c.r.Fault(fmt.Sprintf("%s[%d].path", at, i), fault.NestedPath,
				fmt.Sprintf("%q lies inside %q, the path of %s[%d]", paths[i], paths[j], at, j), "choose folders beside each other")
		}
		outer = append(outer, i)
	}
}

// byFolder are the indices of the paths, each of which occurs once, in an order in which
// a folder's content directly follows it.
func byFolder(paths []string) []int {
	var order []int
	seen := map[string]bool{"": true}
	for i, p := range paths {
		if !seen[p] {
			seen[p] = true
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return strings.Compare(paths[i]+"/", paths[j]+"/") })
	return order
}

// paths finds duplicates.
func (c rules) paths(at string, paths []string) {
	first := map[string]int{}
	for i, p := range paths {
		j, twice := first[p]
		switch {
		case p == "" || c.r.HasError(fmt.Sprintf("%s[%d].path", at, i)):
		case twice:
			c.r.Fault(fmt.Sprintf("%s[%d].path", at, i), fault.SamePath,
				fmt.Sprintf("%q is the path of %s[%d] too", p, at, j), "choose another path")
		default:
			first[p] = i
		}
	}
}

func (c rules) output(at string, out *descriptors.Output) {
	if out == nil || c.r.HasError(at) {
		return
	}
	if len(c.given(at, "metrics", "parsers", "artifacts", "system", "prometheus", "otlp", "destinations")) == 0 &&
		!c.damaged && !c.r.HasErrorBelow(at) {
		c.r.Fault(at, fault.NoOutput, "has neither metrics nor artifacts", fmt.Sprintf("add [[%s.metrics]], or metrics = []", at))
	}
	for _, key := range []string{"prometheus_interval", "prometheus_names"} {
		if c.r.Has(at+"."+key) && !c.r.Has(at+".prometheus") {
			c.r.Warn(at+"."+key, fault.NotRead, "there is nothing to read", "add prometheus, or leave it out")
		}
	}
	c.blocks(at+".metrics", out.Metrics)
	c.withoutPattern(at+".metrics", out.Metrics)
	c.parsers(at, out)
	c.parsedUnits(at, out)
	first := map[string]int{}
	for i, m := range out.Metrics {
		j, twice := first[m.Name]
		switch {
		case m.Name == "":
		case twice:
			c.r.Fault(fmt.Sprintf("%s.metrics[%d].name", at, i), fault.SameMetric,
				fmt.Sprintf("%q is the name of %s.metrics[%d] too", m.Name, at, j), "choose another name")
		default:
			first[m.Name] = i
		}
	}
	paths := make([]string, len(out.Artifacts))
	for i, a := range out.Artifacts {
		paths[i] = a.Path
	}
	c.paths(at+".artifacts", paths)
}

// given returns those of keys that a table has.
func (c rules) given(at string, keys ...string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { return !c.r.Has(at + "." + key) })
}

// maxBlocks is how many different kinds of blocks there may be.
const maxBlocks = 32

// blocks checks the keys that only the parser blocks reads.
func (c rules) blocks(at string, metrics []descriptors.Metric) {
	different := map[descriptors.Metric]bool{}
	for i, m := range metrics {
		path := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case c.r.HasError(path+".parser") || !c.r.Has(path+".pattern"):
		case m.Parser != descriptors.BlockParser:
			for _, key := range []string{"block", "block_lines", "block_time"} {
				if c.r.Has(path + "." + key) {
					c.r.Warn(path+"."+key, fault.NotRead, fmt.Sprintf("parser %s does not read it", m.Parser),
						`write parser = "blocks", or leave it out`)
				}
			}
		case !c.r.Has(path+".block") && !c.damaged:
			c.r.Fault(path, fault.NoBlock, "parser blocks does not know where a block begins", `add block = 'PATTERN' of its first line`)
		default:
			different[descriptors.Metric{Block: m.Block, BlockLines: m.BlockLines, BlockTime: m.BlockTime}] = true
		}
	}
	if len(different) > maxBlocks {
		c.r.Fault(at, fault.ManyBlocks, fmt.Sprintf("%d different kinds of blocks, %d at most", len(different), maxBlocks),
			"have metrics share block, block_lines and block_time")
	}
}

func (c rules) server() {
	strategy := c.d.Hardware.Strategy
	if c.d.Server == nil {
		if strategy == descriptors.Inference && c.r.IsValid("hardware.strategy") && !c.r.Has("server") && !c.damaged {
			c.r.Fault("hardware.strategy", fault.NoServer, "strategy inference needs a server",
				"add the tables [server.hardware] and [server.env]")
		}
		return
	}
	switch {
	case strategy == descriptors.Inference || c.r.HasError("hardware.strategy") || !c.r.Has("hardware"):
	case strategy == descriptors.OwnRoles:
		c.r.Warn("server", fault.NotRead, c.strategy()+" does not read it", "leave it out")
	default:
		c.r.Warn("server", fault.NotRead, c.strategy()+" does not read it", `write strategy = "inference" in [hardware], or leave it out`)
	}
	c.hardware("server.hardware", &c.d.Server.Hardware)
	c.tolerations("server.hardware", c.d.Server.Hardware.Tolerations)
	c.env("server.env", c.d.Server.Env.Env)
	c.sources("server.models", c.d.Server.Models)
	c.models()
	c.output("server.output", c.d.Server.Output)
	c.secretFiles("server.", c.d.Server.Env.Env, c.d.Server.Output)
}
