package roles

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/benchmark-ai/bai/descriptors"
	"github.com/benchmark-ai/bai/services/internal/pod"
	"github.com/benchmark-ai/bai/services/plan/refusal"
)

// addParsers adds the parsers of a descriptor.
func (r *Role) addParsers(all []descriptors.Parser) error {
	for i, p := range all {
		made, script := pod.Parser{Kind: p.Kind, Path: p.Path, Stream: p.Stream, Metrics: p.Metrics, Optional: !p.Required}, ""
		if p.Kind == descriptors.CommandParser {
			argv, text, err := p.Program()
			if err != nil {
				return refusal.Descriptor("the command of a parser cannot be read: %v", err)
			}
			if text != "" {
				argv = append(argv, ScriptDir+"/"+parserFile(i))
			}
			made.Command = useKubernetesVariables(argv, slices.Concat(r.Vars, []corev1.EnvVar{{Name: pod.EnvScripts}}))
			made.Deadline, made.Memory, script = p.Deadline, p.Memory, text
		}
		r.Parsers, r.ParserScripts = append(r.Parsers, made), append(r.ParserScripts, script)
	}
	return nil
}

// parserFile returns the name of the script of a parser.
func parserFile(i int) string { return fmt.Sprintf("parser-%d", i) }
