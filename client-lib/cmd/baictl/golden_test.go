package main_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	"github.com/benchmark-ai/bai/client-lib/internal/golden"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// allCommands is a name and a command line for each output of each verb.
func allCommands() map[string]string {
	all := map[string]string{
		"list-none":         "list --owner nobody",
		"list-filters":      "list -A --phase finished --outcome failed,canceled -o name",
		"list-limit":        "list -A --limit 2 -o name",
		"list-label":        "list --label model=x -o name",
		"list-framework":    "list --framework pytorch --framework-version 2.4 -o name",
		"list-data-id":      "list -A --data-id words -o name",
		"get-failed":        "get " + failedID,
		"get-by-name":       "get benchmark --name=hello -o name",
		"get-missing":       "get nothing",
		"logs-filters":      "logs hello --tail 4 --stderr --timestamps",
		"logs-tail":         "logs hello --tail 2 --container benchmark --attempt 1 --stdout",
		"logs-follow":       "logs -f hello",
		"logs-name":         "logs hello -o name",
		"metrics-csv":       "metrics hello -o csv",
		"metrics-one":       "metrics hello --metric loss",
		"metrics-none":      "metrics " + runningID,
		"cancel-again":      "cancel hello " + runningID + " nothing",
		"validate-two":      "validate good.toml bad.toml",
		"validate-stdin":    "validate - -o json",
		"validate-missing":  "validate nowhere.toml bad.toml",
		"submit-missing":    "submit nowhere.toml good.toml",
		"submit-two":        "submit good.toml good.toml",
		"submit-noun":       "submit benchmark --descriptor=good.toml --name x --label a=b",
		"submit-name-taken": "submit good.toml --name hello",
		"version-client":    "version --client",
		"help":              "--help",
		"help-run":          "run --help",
		"help-logs":         "help logs",
		"completion":        "__complete get 01",
		"completion-flag":   "__complete list --phase f",
		"no-verb":           "gte hello",
		"no-flag":           "list --fast",
		"no-argument":       "watch",
		"much-arguments":    "watch a b",
		"no-output":         "list -o xml",
		"bad-label":         "submit good.toml --label x",
		"bad-phase":         "list --phase walking",
		"bad-server":        "list --server http://localhost:1",
	}
	maps.Copy(all, authorCommands())
	maps.Copy(all, convertCommands())
	maps.Copy(all, resultCommands())
	maps.Copy(all, changesCommands())
	maps.Copy(all, taskCommands())
	maps.Copy(all, alarmCommands())
	maps.Copy(all, compareCommands())
	maps.Copy(all, dataCommands())
	maps.Copy(all, scheduleCommands())
	maps.Copy(all, setCommands())
	maps.Copy(all, transferCommands())
	for verb, line := range formattedCommands() {
		for _, format := range []string{"table", "wide", "json", "yaml", "name"} {
			if verb != "logs" || format != "name" {
				all[verb+"-"+format] = line + " -o " + format
			}
		}
	}
	return all
}

// formattedCommands are the verbs that have every format.
func formattedCommands() map[string]string {
	return map[string]string{
		"validate":    "validate good.toml",
		"invalid":     "validate bad.toml",
		"preflight":   "preflight good.toml",
		"submit":      "submit good.toml --idempotency-key k",
		"run":         "run good.toml --idempotency-key k",
		"rerun":       "rerun hello --idempotency-key k",
		"watch":       "watch hello",
		"get":         "get hello",
		"list":        "list",
		"logs":        "logs hello",
		"metrics":     "metrics hello",
		"cancel":      "cancel " + runningID,
		"version":     "version",
		"why":         "why hello",
		"repro":       "repro hello",
		"artifacts":   "artifacts list hello",
		"summary":     "metrics hello --summary",
		"environment": "environment hello",
		"changes":     "changes --input results.csv --method otava",
		"compare":     "compare baseline:main hello",
		"task":        "changes --task checksums",
		"history":     "history rate --task checksums",
		"power":       "power --task checksums --metric rate --effect 2%",
		"explain":     "explain BAI0012",
		"diff":        "diff good.toml hello",
		"sweep":       "sweep preview sweep.toml",
		"parser":      "parser test iperf2.txt --kind iperf2",
		"parsers":     "parser list",
		"descriptors": "descriptors list",
		"push":        "descriptors push new good.toml",
		"contexts":    "config get-contexts",
		"view":        "config view",

		"schedules": "schedule list",
		"schedule":  "schedule get nightly",
		"pause":     "schedule pause nightly",
		"backfill":  "schedule backfill nightly --from 2025-12-22 --to 2025-12-27",

		"sets":       "set list",
		"set":        "set get sizes",
		"watch-set":  "set watch 7sq3w8r2v5m1x7d4j9thb0pzcn",
		"cancel-set": "set cancel sizes",
		"results":    "set results sizes",
		"submit-set": "submit sizes.toml --idempotency-key k",
		"notify":     "submit sizes.toml --idempotency-key k --notify submitter,perf-team",
		"run-set":    "run sizes.toml --idempotency-key k",

		"baselines":         "baseline list",
		"baseline":          "baseline get main",
		"baseline-set":      "baseline set main hello --reason=faster",
		"baseline-revision": "baseline history main",
		"baseline-delete":   "baseline delete main",

		"alarms":        "alarms --all",
		"alarm":         "alarms show 7rate",
		"alarm-ack":     "alarms ack 7rate --reason=known --until 2026-02-01T00:00:00Z",
		"alarm-resolve": "alarms resolve 7rate --reason=faster",
		"alarm-mute":    "alarms mute --task checksums --label a=b --until 2026-02-01T00:00:00Z --reason=moving",
		"alarm-mutes":   "alarms mutes --ended",
		"alarm-unmute":  "alarms unmute 6mutes",
		"alarm-log":     "alarms log",
		"alarm-test":    "alarms test perf-team",

		"data":     "data list",
		"verify":   "data verify 9f86 " + damagedSHA256,
		"evict":    "data evict --all",
		"prefetch": "data prefetch https://example.org/hello.toml https://example.org/gone.tar",
	}
}

// authorCommands are the command lines of descriptor authors.
func authorCommands() map[string]string {
	return map[string]string{
		"validate-strict":         "validate folder/sub/warn.toml --strict",
		"parser-failed":           "parser test iperf2-refused.txt",
		"parser-failed-json":      "parser test iperf2-refused.txt -o json",
		"parser-empty":            "parser test good.toml",
		"parser-with":             "parser test lines.jsonl --with cat",
		"parser-with-bad":         "parser test iperf2.txt --with cat",
		"parser-with-kind":        "parser test iperf2.txt --with cat --kind iperf2",
		"parser-unknown":          "parser test iperf2.txt --kind iperf4",
		"parser-missing":          "parser test nowhere.txt",
		"parser-bad-metric":       "parser test iperf2.txt --metric loss",
		"validate-warnings":       "validate folder/sub/warn.toml",
		"validate-sarif":          "validate bad.toml folder/sub/warn.toml nowhere.toml -o sarif",
		"validate-sarif-valid":    "validate good.toml -o sarif",
		"validate-folder":         "validate folder",
		"validate-folder-json":    "validate folder -o json",
		"validate-folder-name":    "validate folder -o name",
		"validate-set":            "validate good.toml --set hardware.gpus=4 --set env.vars.A=b=c",
		"validate-set-bad":        "validate good.toml --set hardware.gpus=many --set hardware.gpu=1",
		"validate-set-none":       "validate good.toml --set hardware.gpus",
		"validate-stored":         "validate stored:hello@1 stored:训练 https://example.org/hello.toml",
		"validate-stored-missing": "validate stored:nothing",
		"validate-s3-missing":     "validate s3://bucket/x.toml",
		"explain-none":            "explain BAI9999",
		"explain-short":           "explain 12 -o name",
		"init-unknown":            "init --kind cluster",
		"init-there":              "init good.toml",
		"render-stdin":            "render -",
		"render-invalid":          "render bad.toml",
		"render-server":           "render --server good.toml --set hardware.gpus=4",
		"render-server-invalid":   "render --server bad.toml",
		"render-server-address":   "render --server localhost:1 good.toml",
		"render-server-nowhere":   "render --server=nowhere good.toml",
		"preflight-fault":         "preflight good.toml --set hardware.gpus=4",
		"preflight-platform":      "preflight good.toml --set info.labels.account=poor",
		"preflight-invalid":       "preflight bad.toml",
		"diff-none":               "diff stored:hello hello",
		"diff-set":                "diff stored:hello hello --set hardware.cpus=4",
		"diff-no-toml":            "diff - hello",
		"diff-cell":               "diff sweep.toml hello --cell size=1M,cpus=2",
		"sweep-none":              "sweep",
		"sweep-single":            "sweep preview good.toml",
		"sweep-invalid":           "sweep preview sweep.toml --set sweep.repetitions=0",
		"sweep-set":               "sweep preview sweep.toml --set sweep.warmup=0 --set sweep.product.size=[inf]",
		"sweep-set-json":          "sweep preview sweep.toml --set sweep.product.size=[inf,-inf,nan] --set sweep.exclude= -o json",
		"validate-sweep":          "validate sweep.toml",
		"suite-preview":           "sweep preview suite/suite.toml",
		"suite-preview-json":      "sweep preview suite/suite.toml -o json",
		"suite-validate":          "validate suite/suite.toml",
		"suite-submit":            "submit suite/suite.toml --idempotency-key k",
		"suite-missing":           "submit suite/missing.toml",
		"suite-fault":             "validate suite/fault.toml -o wide",
		"suite-fault-values":      "validate suite/fault-values.toml",
		"suite-set":               "submit suite/suite.toml --set hardware.cpus=2",
		"suite-values":            "validate suite/suite.toml --values values/large.toml",
		"suite-render":            "render suite/suite.toml --cell large/size=1G,cpus=2",
		"suite-preflight":         "preflight suite/suite.toml",
		"values-preview":          "sweep preview sweep.toml --set sweep.exclude= --values values/small.toml",
		"values-later":            "sweep preview sweep.toml --set sweep.exclude= --values values/small.toml --values values/large.toml --set sweep.repetitions=9",
		"values-fault":            "validate good.toml --values values/bad.toml -o wide",
		"values-refused":          "submit good.toml --values values/bad.toml",
		"values-diff":             "diff stored:hello hello --values values/small.toml",
		"values-missing":          "submit good.toml --values nowhere.toml",
		"render-sweep":            "render sweep.toml",
		"render-cell":             "render sweep.toml --cell size=1M,cpus=2",
		"render-cell-none":        "render sweep.toml --cell size=2G",
		"render-cell-single":      "render good.toml --cell size=2G",
		"render-server-cell":      "render --server sweep.toml --cell size=1M,cpus=2",
		"descriptors-versions":    "descriptors list hello -o name",
		"descriptors-none":        "descriptors list --namespace pets",
		"descriptors-get":         "descriptors get hello@1",
		"descriptors-get-json":    "descriptors get hello -o json",
		"descriptors-get-none":    "descriptors get hello@9",
		"push-again":              "descriptors push hello stored:hello",
		"push-invalid":            "descriptors push new bad.toml",
		"submit-stored":           "submit stored:hello --set hardware.cpus=4 -o json",
		"submit-https":            "submit https://example.org/hello.toml -o name",
		"submit-set-bad":          "submit good.toml --set hardware.gpus=many",
		"submit-wait":             "submit good.toml stored:hello --wait",
		"rerun-set":               "rerun hello --set hardware.cpus=8 --label a=b --name again",
		"rerun-set-bad":           "rerun hello --set hardware.cpus=no",
		"rerun-wait":              "rerun hello --wait",
		"rerun-nothing":           "rerun nothing",
		"no-descriptors-verb":     "descriptors lst",
		"completion-stored":       "__complete submit stored:h",
	}
}

// resultCommands are the command lines that read results.
func resultCommands() map[string]string {
	return map[string]string{
		"list-oldest":        "list -A --sort oldest -o name",
		"list-unsorted":      "list --sort size",
		"list-text":          "list -A --text HEL -o name",
		"list-task":          "list --task hello -o name",
		"list-since":         "list -A --since 2026-01-02T03:01:40Z --until 2026-01-02T03:02:50Z -o name",
		"list-no-time":       "list --since yesterday",
		"logs-since":         "logs hello --since 2026-01-02T03:00:05Z",
		"logs-no-time":       "logs hello --since -5m",
		"logs-grep":          "logs hello --grep EPOCH",
		"logs-grep-nothing":  "logs hello --grep nothing",
		"metrics-many":       "metrics --label model=x",
		"metrics-many-csv":   "metrics --task hello --metric loss -o csv",
		"metrics-many-name":  "metrics -A -o name",
		"metrics-many-none":  "metrics --task nothing",
		"metrics-time":       "metrics hello --since 2026-01-02T03:00:03Z --until 2026-01-02T03:00:05Z -o csv",
		"metrics-of-what":    "metrics",
		"metrics-both":       "metrics hello --task hello",
		"summary-csv":        "metrics hello --summary -o csv",
		"summary-one":        "metrics hello --summary --metric compress",
		"summary-pending":    "metrics --summary " + runningID,
		"summary-many":       "metrics --summary --task hello",
		"environment-none":   "environment " + runningID,
		"artifacts-none":     "artifacts list " + runningID,
		"artifacts-get-none": "artifacts get " + runningID,
		"artifacts-stdout":   "artifacts get hello 1/*/results/*.json --to -",
		"artifacts-two":      "artifacts get hello --to -",
		"artifacts-unknown":  "artifacts get hello 1/benchmark-0/none",
		"completion-files":   "__complete artifacts get hello 1",
		"why-running":        "why " + runningID + " -o name",
		"repro-descriptor":   "repro hello --descriptor",
		"repro-invalid":      "repro " + failedID,
		"get-owner":          "get secret --owner bob -o name",
		"context-none":       "list --context lab",
		"config-use-none":    "config use-context lab",
		"config-bad-name":    "config set-context a/b",
		"config-bad-server":  "config set-context lab --server http://x",
		"config-no-verb":     "config set",
		"config-delete-none": "config delete-context lab",
		"dashboards-none":    "dashboards",
		"dashboards-much":    "dashboards export a b",
		"dashboards-where":   "dashboards install",
		"report-where":       "report hello",
		"manual-nothing":     "manual pdf",
	}
}

// changesCommands are the command lines that find changes. The numbers of one of them,
// changes-segments, are those of the platform's own method.
func changesCommands() map[string]string {
	return map[string]string{
		"changes-segments":      "changes --input results.csv -o json",
		"changes-csv":           "changes --input results.csv --method otava -o csv",
		"changes-jsonl":         "changes --input results.csv --method otava -o jsonl",
		"changes-fail":          "changes --input results.csv --method otava --fail -o name",
		"changes-large":         "changes --input results.csv --method otava --min-magnitude 0.5 --fail",
		"changes-replay":        "changes --input results.csv --method otava --p 0.01 --window 20 --replay",
		"changes-replay-wide":   "changes --input results.csv --method otava --p 0.01 --window 20 --replay -o wide",
		"changes-replay-json":   "changes --input results.csv --method otava --p 0.01 --window 20 --replay -o json",
		"changes-fault":         "changes --input results-bad.csv",
		"changes-stdin":         "changes --input -",
		"changes-missing":       "changes --input nowhere.csv",
		"changes-folder":        "changes --input folder",
		"changes-no-input":      "changes",
		"changes-argument":      "changes results.csv",
		"changes-unknown":       "changes --input results.csv --method hunter",
		"changes-other-window":  "changes --input results.csv --window 20",
		"changes-other-level":   "changes --input results.csv --method otava --confidence 0.9",
		"changes-bad-level":     "changes --input results.csv --confidence 95",
		"changes-no-level":      "changes --input results.csv --confidence 0",
		"changes-bad-p":         "changes --input results.csv --method otava --p 2",
		"changes-no-window":     "changes --input results.csv --method otava --window 0",
		"changes-no-xml":        "changes --input results.csv -o xml",
		"completion-method":     "__complete changes --method o",
		"completion-changes-as": "__complete changes -o j",
	}
}

// taskCommands are the command lines about the series of a task, and about baselines.
func taskCommands() map[string]string {
	return map[string]string{
		"task-fail":            "changes --task checksums --fail -o name",
		"task-csv":             "changes --task checksums -o csv",
		"task-jsonl":           "changes --task checksums -o jsonl",
		"task-none":            "changes --task nothing",
		"task-steady":          "changes --task steady --fail",
		"task-both":            "changes --task checksums --input results.csv",
		"task-method":          "changes --task checksums --method otava --replay",
		"task-metric":          "changes --input results.csv --metric rate --since 3d",
		"task-limit":           "changes --task checksums --limit 5000",
		"history-all":          "history --task checksums",
		"history-csv":          "history --task checksums -o csv",
		"history-svg":          "history rate --task checksums -o svg",
		"history-svg-which":    "history --task checksums -o svg",
		"history-svg-none":     "history speed --task checksums -o svg",
		"history-steady-svg":   "history --task steady -o svg",
		"history-steady":       "history --task steady",
		"history-empty":        "history --task empty",
		"history-empty-metric": "history --task empty --metric speed",
		"history-no-task":      "history rate",
		"history-none":         "history --task nothing",
		"history-no-time":      "history --task checksums --since yesterday",
		"history-bad-label":    "history --task checksums --label x",
		"power-all":            "power --task checksums",
		"power-priced":         "power --task priced --metric rate --effect 2%",
		"power-priced-csv":     "power --task priced --metric rate -o csv",
		"power-csv":            "power --task checksums --effect 0.02 -o csv",
		"power-none":           "power --task nothing",
		"power-no-task":        "power",
		"power-empty":          "power --task empty --metric speed",
		"power-bad-effect":     "power --task checksums --effect 5",
		"power-no-effect":      "power --task checksums --effect 0",
		"power-no-runs":        "power --task checksums --runs=",
		"baseline-nothing":     "baseline",
		"baseline-none":        "baseline get nothing",
		"baseline-set-again":   "baseline set baseline:main checksums@-14d",
		"baseline-set-nothing": "baseline set main",
		"baseline-list-none":   "baseline list --namespace nobody",
		"baseline-delete-none": "baseline delete nothing -o json",
		"completion-baseline":  "__complete baseline get m",
		"completion-operand":   "__complete baseline set main b",
		"completion-history":   "__complete history --task checksums r",
		"completion-task":      "__complete history --task h",
		"help-history":         "history --help",
		"help-power":           "power --help",
		"help-baseline":        "baseline --help",
		"help-baseline-set":    "baseline set --help",
		"help-changes":         "changes --help",
	}
}

// alarmCommands are the command lines about alarms.
func alarmCommands() map[string]string {
	return map[string]string{
		"alarms-open":         "alarms",
		"alarms-limit":        "alarms --limit 1",
		"alarms-no-limit":     "alarms --limit -1",
		"alarms-watch-all":    "alarms --watch --all",
		"alarms-watch-csv":    "alarms --watch -o csv",
		"alarms-state":        "alarms --state resolved -o name",
		"alarms-none":         "alarms --task nothing",
		"alarms-metric":       "alarms --metric latency -o name",
		"alarms-csv":          "alarms --all -o csv",
		"alarms-jsonl":        "alarms --task checksums -o jsonl",
		"alarms-no-verb":      "alarms shw",
		"alarm-show-limit":    "alarms show 7limit",
		"alarm-show-failed":   "alarms show 7failed",
		"alarm-show-drift":    "alarms show 7latency",
		"alarm-show-none":     "alarms show 000000",
		"alarm-show-nothing":  "alarms show",
		"alarm-show-svg":      "alarms show 7rate -o svg",
		"alarm-ack-over":      "alarms ack 7failed --reason=known",
		"alarm-ack-accept":    "alarms ack 7rate --reason=fine --accept",
		"alarm-ack-wrong":     "alarms ack 7rate --reason=noise --wrong",
		"alarm-ack-why":       "alarms ack 7rate",
		"alarm-ack-both":      "alarms ack 7rate --reason=x --accept --wrong",
		"alarm-ack-until":     "alarms ack 7rate --reason=x --accept --until 3d",
		"alarm-ack-no-time":   "alarms ack 7rate --reason=x --until tomorrow",
		"alarm-ack-csv":       "alarms ack 7rate --reason=x -o csv",
		"alarm-mute-all":      "alarms mute --all --until 2026-02-01T00:00:00Z --reason=moving",
		"alarm-mute-whom":     "alarms mute --until 3d --reason=moving",
		"alarm-mute-both":     "alarms mute --all --task x --until 3d --reason=moving",
		"alarm-mute-when":     "alarms mute --task checksums --reason=moving",
		"alarm-mute-why":      "alarms mute --task checksums --until 3d",
		"alarm-mute-label":    "alarms mute --label x --until 3d --reason=moving",
		"alarm-mutes-current": "alarms mutes -o name",
		"alarm-mutes-none":    "alarms mutes --namespace nobody",
		"alarm-mutes-csv":     "alarms mutes -o csv",
		"alarm-unmute-none":   "alarms unmute 000000",
		"alarm-log-receiver":  "alarms log --receiver mail -o name",
		"alarm-log-incident":  "alarms log --incident 7limit -o name",
		"alarm-log-status":    "alarms log --status refused,muted -o name",
		"alarm-log-csv":       "alarms log -o csv",
		"alarm-log-none":      "alarms log --receiver nobody",
		"alarm-test-refused":  "alarms test gone",
		"alarm-test-none":     "alarms test nobody",
		"completion-alarm":    "__complete alarms ack 7",
		"completion-receiver": "__complete alarms test p",
		"completion-notify":   "__complete submit --notify s",
		"completion-unmute":   "__complete alarms unmute 6",
		"completion-state":    "__complete alarms --state f",
		"help-alarms":         "alarms --help",
		"help-alarms-ack":     "alarms ack --help",
		"help-alarms-mute":    "alarms mute --help",
		"help-alarms-log":     "alarms log --help",
		"help-alarms-test":    "alarms test --help",
	}
}

// compareCommands are the command lines that compare two sides.
func compareCommands() map[string]string {
	return map[string]string{
		"benchstat":            "compare bench-old.txt bench-new.txt -o benchstat",
		"benchstat-one":        "compare bench-old.txt -o benchstat",
		"benchstat-three":      "compare bench-old.txt bench-new.txt bench-old.txt -o benchstat",
		"benchstat-labels":     "compare before=bench-old.txt after=bench-new.txt -o benchstat",
		"benchstat-stdin":      "compare bench-old.txt - -o benchstat",
		"benchstat-warnings":   "compare bench-old.txt bench-bad.txt -o benchstat",
		"benchstat-missing":    "compare bench-bad.txt nowhere.txt -o benchstat",
		"benchstat-folder":     "compare bench-old.txt new=folder -o benchstat",
		"benchstat-two-pipes":  "compare - new=- -o benchstat",
		"compare-runs":         "compare baseline:main hello --min-change 2%",
		"compare-benchstat":    "compare baseline:main hello -o benchstat",
		"compare-csv":          "compare baseline:main hello -o csv",
		"compare-md":           "compare baseline:main hello -o md",
		"compare-junit":        "compare baseline:main hello -o junit",
		"rank-table":           "compare task:resnet --by hardware.instance_type --metric cost.per.images",
		"rank-all":             "compare task:resnet --by hardware.instance_type",
		"rank-csv":             "compare task:resnet --by hardware.instance_type -o csv",
		"rank-name":            "compare task:resnet --by hardware.instance_type -o name",
		"rank-json":            "compare task:resnet --by hardware.instance_type --metric rate -o json",
		"rank-md":              "compare task:resnet --by hardware.instance_type -o md",
		"rank-two":             "compare hello sizes --by version",
		"rank-min-change":      "compare hello --by version --min-change 2%",
		"rank-none":            "compare hello --by color",
		"submit-priced":        "submit watched.toml --idempotency-key k --label task_name=priced",
		"compare-metric":       "compare sizes sizes --metric rate",
		"compare-files":        "compare bench-old.txt bench-new.txt",
		"compare-labels":       "compare before=bench-old.txt after=bench-new.txt",
		"compare-series":       "compare results.csv results.csv",
		"compare-same":         "compare results.csv results.csv --min-change 0.03 -o wide",
		"compare-bmf":          "compare bmf-old.json bmf-new.json",
		"compare-warnings":     "compare bench-old.txt bench-bad.txt",
		"compare-mismatch":     "compare results.csv bmf-new.json",
		"compare-bad-csv":      "compare results.csv results-bad.csv",
		"compare-bad-bmf":      "compare bmf-old.json bmf-bad.json",
		"compare-folder":       "compare bench-old.txt folder",
		"compare-two-pipes":    "compare - -",
		"compare-one":          "compare bench-old.txt",
		"compare-mixed":        "compare bench-old.txt hello",
		"compare-absent":       "compare nobody hello",
		"compare-nothing":      "compare",
		"compare-bad-change":   "compare baseline:main hello --min-change much",
		"compare-large-change": "compare bench-old.txt bench-new.txt --min-change 100%",
		"compare-no-xml":       "compare bench-old.txt bench-new.txt -o xml",
		"completion-compare":   "__complete compare bench-old.txt -o b",
		"help-compare":         "compare --help",
	}
}

// dataCommands are the command lines that manage data.
func dataCommands() map[string]string {
	return map[string]string{
		"data-unneeded":       "data list --unneeded -o name",
		"data-nothing":        "data",
		"verify-all":          "data verify --all",
		"verify-whole":        "data verify 9f86",
		"verify-both":         "data verify 9f86 --all",
		"verify-none":         "data verify 77",
		"evict-ambiguous":     "data evict 9f8",
		"evict-needed":        "data evict 9f86",
		"evict-one":           "data evict 2c26b46b68ff -o json",
		"evict-what":          "data evict",
		"prefetch-descriptor": "data prefetch --descriptor stored:hello --detach",
		"prefetch-invalid":    "data prefetch --descriptor bad.toml",
		"prefetch-refused":    "data prefetch ftp://example.org/x",
		"prefetch-what":       "data prefetch",
		"prefetch-pinned":     "data prefetch a b --md5 x",
		"completion-data":     "__complete data evict 9",
	}
}

// scheduleCommands are the command lines that manage schedules.
func scheduleCommands() map[string]string {
	return map[string]string{
		"schedule-nothing":         "schedule",
		"schedule-no-verb":         "schedule lst",
		"schedule-list-all":        "schedule list -A",
		"schedule-list-none":       "schedule list --namespace nobody",
		"schedule-get-paused":      "schedule get 7rp0wrv5k2m8v1xqd3sj4thb6p",
		"schedule-get-none":        "schedule get weekly",
		"schedule-resume":          "schedule resume nightly",
		"schedule-trigger":         "schedule trigger nightly",
		"schedule-trigger-json":    "schedule trigger nightly --idempotency-key k -o json",
		"schedule-trigger-none":    "schedule trigger weekly",
		"schedule-delete":          "schedule delete nightly",
		"schedule-delete-none":     "schedule delete weekly -o json",
		"schedule-delete-runs":     "schedule delete nightly --cancel-runs",
		"schedule-delete-json":     "schedule delete weekly --cancel-runs -o json",
		"schedule-backfill-none":   "schedule backfill nightly",
		"backfill-all-there":       "schedule backfill nightly --from 2025-12-22 --to 2025-12-23",
		"backfill-no-firing":       "schedule backfill nightly --from 2025-12-22T04:00 --to 2025-12-22T05:00",
		"schedule-backfill-when":   "schedule backfill nightly --from yesterday",
		"schedule-backfill-future": "schedule backfill nightly --from 2027-01-01",
		"list-schedule":            "list --schedule nightly -o name",
		"list-schedule-none":       "list --schedule weekly",
		"submit-schedule":          "submit nightly.toml good.toml --idempotency-key= -o table",
		"submit-schedule-json":     "submit nightly.toml --name x --idempotency-key k -o json",
		"submit-schedule-name":     "submit nightly.toml --wait -o name",
		"run-schedule":             "run nightly.toml",
		"completion-schedule":      "__complete schedule get n",
	}
}

// setCommands are the command lines that manage sets.
func setCommands() map[string]string {
	return map[string]string{
		"set-nothing":           "set",
		"set-list-all":          "set list -A",
		"set-list-none":         "set list --namespace nobody",
		"set-list-schedule":     "set list --schedule nightly",
		"set-get-stopped":       "set get 7sq3w8r2v5m1x7d4j9thb0pzcn",
		"set-get-stop-when":     "set get " + gridID,
		"set-get-limit":         "set get sizes --limit 1",
		"set-rerun":             "set rerun sizes",
		"set-rerun-failed":      "set rerun 7sq3w8r2v5m1x7d4j9thb0pzcn --failed -o yaml",
		"set-rerun-early":       "set rerun sizes --failed",
		"set-get-none":          "set get colours",
		"set-results-many":      "set results " + gridID,
		"set-results-metric":    "set results " + gridID + " --metric latency --metric p99",
		"set-results-system":    "set results " + gridID + " --metric system.cpu",
		"set-results-none":      "set results 7sq3w8r2v5m1x7d4j9thb0pzcn",
		"set-results-no-metric": "set results sizes --metric speed",
		"set-results-no-set":    "set results colours",
		"set-results-by":        "set results " + gridID + " --metric latency --by size,num_threads",
		"set-results-by-one":    "set results " + gridID + " --metric latency --by env.num_threads",
		"set-results-by-which":  "set results " + gridID + " --by size",
		"set-results-by-none":   "set results " + gridID + " --metric latency --by colour",
		"set-results-by-same":   "set results " + gridID + " --by size,size",
		"set-results-by-three":  "set results " + gridID + " --by a,b,c",
		"set-results-by-csv":    "set results " + gridID + " --by size -o csv",
		"set-results-many-md":   "set results " + gridID + " -o md",
		"set-results-by-md":     "set results " + gridID + " --metric latency --by size,num_threads -o md",
		"set-results-many-csv":  "set results " + gridID + " -o csv",
		"set-results-jsonl":     "set results " + gridID + " --metric latency -o jsonl",
		"set-results-svg":       "set results " + gridID + " --metric latency -o svg",
		"set-results-by-svg":    "set results " + gridID + " --metric latency --by num_threads,size -o svg",
		"set-results-svg-which": "set results " + gridID + " -o svg",
		"set-results-svg-none":  "set results sizes --metric speed -o svg",
		"set-results-junit":     "set results sizes -o junit",
		"set-results-many-name": "set results " + gridID + " -o name",
		"set-resume":            "set resume 7sq3w8r2v5m1x7d4j9thb0pzcn",
		"set-cancel-none":       "set cancel colours",
		"list-set":              "list -A --set sizes -o name",
		"list-set-cell":         "list -A --set sizes --cell size=1M -o name",
		"list-set-none":         "list --set colours",
		"list-cell":             "list --cell size=1M",
		"submit-set-wait":       "submit sizes.toml good.toml --wait",
		"completion-set":        "__complete set get s",
	}
}

// transferCommands are the command lines that export and import runs.
func transferCommands() map[string]string {
	return map[string]string{
		"export-where":      "export hello",
		"export-in-the-way": "export hello good.toml",
		"export-folder":     "export hello folder --force",
		"export-zip":        "export hello x.zip",
		"export-tar-gz":     "export hello folder/hello.tar.gz",
		"export-scheme":     "export hello gs://bucket/x",
		"export-no-prefix":  "export hello s3://bucket",
		"export-s3-file":    "export hello s3://bucket/x.tar.zst",
		"export-missing":    "export nothing nothing.tar.zst",
		"export-wait":       "export hello x --wait -1s",
		"import-what":       "import",
		"import-missing":    "import nowhere.tar.zst",
		"import-folder":     "import folder",
		"import-file":       "import good.toml",
		"import-scheme":     "import https://example.org/x.tar.zst",
		"completion-export": "__complete export 01",
	}
}

// normalizeOutput replaces the values that differ between tests.
func normalizeOutput(text string, p *baitest.Platform) string {
	text = strings.ReplaceAll(text, p.Addr(), "127.0.0.1:7070")
	text = strings.ReplaceAll(text, runtime.Version(), "go1.99")
	text = strings.ReplaceAll(text, runtime.GOOS+"/"+runtime.GOARCH, "os/arch")
	text = regexp.MustCompile(`/tmp/[^ "]*/\.config`).ReplaceAllString(text, "HOME/.config")
	return regexp.MustCompile(`"?idempotencyKey"?: "?[A-Z2-7]{26}"?`).ReplaceAllString(text, "idempotencyKey: KEY")
}

// finishSubmitted makes each submitted run live for ten seconds of the platform's.
func finishSubmitted(p *baitest.Platform) {
	p.OnSubmit(func(id string) {
		for n := range int32(4) {
			p.ChangeSet(id, func(s *baiv1.Set) { addRun(s, n) })
		}
		addHistory(p, id, func(s int) *timestamppb.Timestamp {
			return timestamppb.New(newYear.Add(245*time.Second + time.Duration(s)*time.Second))
		})
		p.SetCompleteness(id, &baiv1.Completeness{Complete: true, Samples: 3, Lines: 1})
	})
}

// addRun lets a run of a set end, of which one fails, and the last ends the set.
func addRun(s *baiv1.Set, n int32) {
	s.Submitted, s.UpdateTime = n+1, timestamppb.New(s.GetCreateTime().AsTime().Add(time.Duration(n+1)*time.Minute))
	if n == 1 {
		s.Failed++
	} else {
		s.Succeeded++
	}
	if s.GetSubmitted() == s.GetRunCount() {
		s.State, s.Outcome, s.EndTime = baiv1.SetState_SET_STATE_FINISHED, baiv1.Outcome_OUTCOME_FAILED, s.GetUpdateTime()
	}
}

// showsNewSet reports whether a test shows a set as it is after its submission: how far its runs are by then is not known.
func showsNewSet(name string) bool {
	return strings.HasPrefix(name, "submit-set-") && name != "submit-set-wait" || strings.HasPrefix(name, "notify-")
}

// submitTime is when a run was submitted whose age is shown in minutes.
func submitTime(name string) time.Time {
	if strings.HasPrefix(name, "list-table") || strings.HasPrefix(name, "list-wide") || name == "sets-table" || name == "sets-wide" || name == "set-list-all" {
		return time.Now().Add(-5*time.Minute - 10*time.Second)
	}
	return newYear
}

// addGridFor adds the set grid for the tests that show it.
func addGridFor(p *baitest.Platform, name string) {
	if strings.HasPrefix(name, "set-results") || name == "set-get-stop-when" {
		addGrid(p, newYear)
	}
}

func TestOutputInAPipe(t *testing.T) {
	for name, line := range allCommands() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFixture(t, submitTime(name))
			addGridFor(p, name)
			if !showsNewSet(name) {
				finishSubmitted(p)
			}
			cmd := command(t, p.Addr(), strings.Fields(line)...)
			cmd.Path = plain // these are 700; tests of the verbs look for races
			cmd.Stdin = strings.NewReader("[info]\nfoo = 1\n")
			golden.Check(t, filepath.Join("testdata", "pipe", name+".txt"), normalizeOutput(finish(t, cmd).String(), p))
		})
	}
}

func TestOutputOnATerminalOf80Columns(t *testing.T) {
	for _, name := range []string{
		"sets-table", "sets-wide", "set-table", "results-table", "set-results-many", "set-results-by", "submit-set-table", "run-set-table", "schedules-table", "schedules-wide", "schedule-table", "submit-schedule", "submit-priced", "data-table", "data-wide", "verify-table", "why-table", "why-wide", "repro-table", "artifacts-table", "descriptors-table", "diff-table", "explain-table", "metrics-many", "changes-table", "changes-wide", "changes-replay", "task-table", "task-wide", "history-table", "history-wide", "history-all", "power-table", "power-all", "alarms-table", "alarms-wide", "alarm-table", "alarm-mutes-table", "alarm-log-table", "baselines-table", "baseline-table", "baseline-revision-table", "get-wide", "validate-folder",
		"list-table", "list-wide", "get-table", "watch-table", "run-table", "run-json", "metrics-table", "metrics-wide", "logs-table",
		"submit-wide", "validate-two", "version-table", "cancel-table", "get-missing", "list-none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newFixture(t, submitTime(name))
			addGridFor(p, name)
			finishSubmitted(p)
			s := open(t, command(t, p.Addr(), strings.Fields(allCommands()[name])...), 80)
			s.end()
			golden.Check(t, filepath.Join("testdata", "terminal", name+".txt"), normalizeOutput(s.screen(), p))
		})
	}
}
