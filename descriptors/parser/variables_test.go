package parser_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
)

func TestAVariableThatThePlatformPutsIntoACommandNeedsNoShell(t *testing.T) {
	const server = "[server.hardware]\ncpus = 1\n[server.env]\ndocker_image = \"a/b:1\"\nports = [80, 81]\n"
	const client = "[hardware]\ncpus = 1\nstrategy = \"inference\"\n[ml]\n"
	tests := map[string]struct {
		text string
		want []string // paths with a warning
	}{
		"the server's address, for its client":       {client + "benchmark_code = \"curl\"\nargs = \"${INFERENCE_SERVER_HOST}:${INFERENCE_SERVER_PORT_1}\"\n" + server + "start_command = \"serve\"\n", nil},
		"without braces":                             {client + "args = \"$INFERENCE_SERVER_HOST\"\n" + server + "start_command = \"serve\"\n", []string{"ml.args"}},
		"for the server itself":                      {client + "args = \"x\"\n" + server + "start_command = \"serve ${INFERENCE_SERVER_PORT}\"\n", []string{"server.env.start_command"}},
		"for a benchmark without a server":           {"[ml]\nargs = \"${INFERENCE_SERVER_HOST}\"\n", []string{"ml.args"}},
		"the folder of the code":                     {"[ml]\nbenchmark_code = \"${BAI_SCRIPTS_PATH}/run.sh\"\n", nil},
		"in a script, which is run by its own shell": {"[ml]\nbenchmark_code = \"#!/bin/sh\\ncurl ${INFERENCE_SERVER_HOST}\"\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, faults := parser.Parse("f.toml", []byte(completeDescriptor(tt.text)))
			if d == nil {
				t.Fatal(faults)
			}
			var got []string
			for _, f := range faults {
				if f.Code == "BAI0106" {
					got = append(got, f.Path)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warned of (-want +got):\n%s", diff)
			}
		})
	}
}
