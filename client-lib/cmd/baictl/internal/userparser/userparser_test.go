//go:build unix

package userparser_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/userparser"
)

func TestAParserReadsItsInputByTheRulesOfARun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		command  string
		deadline time.Duration
		want     string
	}{
		"prints a metric": {`sed 's/.*/{"name": "a", "value": &}/'`, time.Minute, "ok a=7"},
		"dies":            {`sh -c "echo oh >&2; exit 3"`, time.Minute, `failed ended with exit code 3; its standard error ends with "oh"`},
		"is killed":       {`sh -c "kill -KILL \$\$"`, time.Minute, "failed ended by SIGKILL"},
		"hangs":           {"sleep 1000", 50 * time.Millisecond, "failed has not ended after 50ms (deadline), and was killed"},
		"reads nothing":   {"true", time.Minute, "empty the parser printed no metric"},
		"is not there":    {"/no/such", time.Minute, "failed cannot be started: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := userparser.Run(tt.command, strings.NewReader("7\n"), tt.deadline, nil)
			got := string(r.State) + " " + r.Reason
			if len(r.Metrics) == 1 && r.Metrics[0].Value == 7 {
				got += r.Metrics[0].Name + "=7"
			}
			if err != nil || got != tt.want {
				t.Errorf("%s (%v), want %s", got, err, tt.want)
			}
		})
	}
}

func TestATextThatIsNoCommandIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "name a program", "'": "partner", "#!/bin/sh\ntrue": "write the script into a file", "true": "the deadline is 0s"} {
		_, err := userparser.Run(text, strings.NewReader(""), 0, nil)
		if _, ok := errors.AsType[*userparser.CommandError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
