package clustertest_test

import (
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/benchmark-ai/bai/services/internal/clustertest"
)

func TestTheFakeKeepsTheContractOfACluster(t *testing.T) {
	clustertest.Run(t, clustertest.Suite{Scope: "default", NoPrograms: true, New: func(*testing.T) clustertest.Cluster {
		fake := clustertest.NewFake()
		fake.Script = func(j *batchv1.Job) []clustertest.Action {
			command := j.Spec.Template.Spec.Containers[0].Command
			_, script, _ := strings.Cut(command[len(command)-1], "; ")
			code, ends := strings.CutPrefix(script, "exit ")
			if !ends {
				return []clustertest.Action{clustertest.Start}
			}
			n, _ := strconv.ParseInt(code, 10, 32)
			return []clustertest.Action{clustertest.Start, clustertest.Exit(int32(n))}
		}
		return fake
	}})
}
