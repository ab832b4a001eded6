package parser

import (
	"fmt"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/descriptors/internal/check"
	"github.com/benchmark-ai/bai/descriptors/internal/decode"
)

// complete fills in keys of d from other parts of d.
func complete(d *descriptors.Descriptor, r *decode.Report) {
	if label, ok := d.Info.Labels[check.TaskLabel]; ok && d.Info.TaskName == "" {
		d.Info.TaskName = label
	}
	if d.Info.TaskName != "" && d.Info.Labels[check.TaskLabel] == "" {
		if d.Info.Labels == nil {
			d.Info.Labels = map[string]string{}
		}
		d.Info.Labels[check.TaskLabel] = d.Info.TaskName
	}
	if d.Sweep != nil && d.Sweep.StopWhen != nil {
		d.Sweep.Repetitions = d.Sweep.StopWhen.Max
	}
	d.Env.VarOrder = r.Order("env.vars")
	if len(d.Roles) > 0 {
		d.Hardware.Strategy = descriptors.OwnRoles
	}
	for i := range d.Roles {
		d.Roles[i].VarOrder = r.Order(fmt.Sprintf("roles[%d].vars", i))
	}
	for i := range d.Steps {
		d.Steps[i].VarOrder = r.Order(fmt.Sprintf("steps[%d].vars", i))
	}
	if d.Server == nil {
		return
	}
	d.Server.Env.VarOrder = r.Order("server.env.vars")
	if probe := d.Server.Env.ReadinessProbe; probe != nil && probe.Port == nil && len(d.Server.Env.Ports) > 0 {
		probe.Port = &d.Server.Env.Ports[0]
	}
}
