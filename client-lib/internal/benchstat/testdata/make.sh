#!/bin/sh
# Writes the expected outputs. Each folder here has the files of one call of
# benchstat, and its arguments in the file args, one a line; the script adds what
# the benchstat of the version below prints, in the files stdout and stderr. A
# file that would be empty is left out. The version is the one of go.mod.
set -eu
version=v0.0.0-20250813145418-2f7363a06fe1

cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOWORK=off GOBIN=$bin go install "golang.org/x/perf/cmd/benchstat@$version"
for args in */args; do
	(
		cd "$(dirname "$args")"
		xargs -d '\n' "$bin/benchstat" <args >stdout 2>stderr
		find stdout stderr -empty -delete
	)
done
