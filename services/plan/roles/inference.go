package roles

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// Roles of strategy inference.
const (
	roleServer = "server"
	roleClient = "client"
)

// inference returns the server, and the client that sends requests to it.
func inference(in Input, client Role) ([]Role, error) {
	d := in.Descriptor.Server
	if d == nil {
		return nil, refusal.Descriptor("strategy inference needs a table [server] (add it)")
	}
	server := Role{
		Name: roleServer, Replicas: 1, Env: d.Env.Env, Hardware: d.Hardware, Ports: servicePorts(d.Env),
		Probe: probeOf(d.Env.ReadinessProbe),
		Image: in.image(d.Env.DockerImage), PodNetwork: in.Descriptor.Network,
	}
	server.listen(server.Ports...)
	if err := server.setProgram(d.Env); err != nil {
		return nil, err
	}
	data, _ := in.sources(roleServer)
	models, _ := in.modelsAndScripts()
	server.Data = slices.Concat(data, models)
	if err := server.setOutput(d.Output); err != nil {
		return nil, err
	}

	host := in.Names.Host(server)
	client.Name = roleClient
	client.addVars(serverAddressVars(host, d.Env.Ports)...)
	client.AwaitArgs = in.awaitServer(host, d.Env)
	return []Role{server, client}, nil
}

// servicePorts returns the ports of a server's Service: the ports in the descriptor,
// and the port of the readiness probe.
func servicePorts(e descriptors.ServerEnv) []int {
	p := e.ReadinessProbe
	if p == nil || slices.Contains(e.Ports, portOf(p)) {
		return e.Ports
	}
	return append(slices.Clone(e.Ports), portOf(p))
}

// serverAddressVars returns the variables with the server's address for the client.
func serverAddressVars(host string, ports []int) []corev1.EnvVar {
	vars := []corev1.EnvVar{{Name: "INFERENCE_SERVER_HOST", Value: host}}
	for i, port := range ports {
		name := "INFERENCE_SERVER_PORT"
		if i > 0 {
			name += "_" + strconv.Itoa(i)
		}
		vars = append(vars, corev1.EnvVar{Name: name, Value: strconv.Itoa(port)})
	}
	return vars
}

// awaitServer returns the arguments that wait for a server: until its probe succeeds,
// or without a probe until each of its ports answers.
func (in Input) awaitServer(host string, e descriptors.ServerEnv) []string {
	p := e.ReadinessProbe
	if p == nil {
		var targets []string
		for _, port := range e.Ports {
			targets = append(targets, tcpTarget(host, port))
		}
		return in.awaitArgs(250*time.Millisecond, time.Second, 1, targets...)
	}
	every := min(time.Second, time.Duration(p.PeriodSeconds)*time.Second)
	target := strings.ToLower(p.Scheme) + "://" + net.JoinHostPort(host, strconv.Itoa(portOf(p))) + "/" + strings.TrimPrefix(p.Path, "/")
	return in.awaitArgs(every, time.Duration(p.TimeoutSeconds)*time.Second, p.SuccessThreshold, target)
}

func portOf(p *descriptors.Probe) int {
	if p.Port == nil {
		return 80
	}
	return *p.Port
}

// probeOf converts a readiness probe to Kubernetes.
func probeOf(p *descriptors.Probe) *corev1.Probe {
	if p == nil {
		return nil
	}
	n := func(i int) int32 { return int32(i) } //nolint:gosec // a descriptor bounds them
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: p.Path, Port: intstr.FromInt32(n(portOf(p))), Scheme: corev1.URIScheme(strings.ToUpper(p.Scheme)),
		}},
		InitialDelaySeconds: n(p.InitialDelaySeconds), PeriodSeconds: n(p.PeriodSeconds), TimeoutSeconds: n(p.TimeoutSeconds),
		SuccessThreshold: n(p.SuccessThreshold), FailureThreshold: n(p.FailureThreshold),
	}
}
