package alarm

import (
	"encoding/csv"
	"fmt"
	"iter"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/screen"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
)

// listing is how a list is printed.
type listing[M proto.Message] struct {
	name  string // in JSON
	id    func(M) string
	csv   func([]M) [][]string
	table func(all []M, wide bool) printer.Table
	none  string // where the list is empty
}

// pageSize is how many things one request asks for; 0 is the default.
func pageSize(limit int) int32 {
	if limit <= 0 {
		return 0
	}
	return int32(min(limit+1, 500)) //nolint:gosec // it is 500 at most
}

// printList prints as many things as the limit allows, as -o says.
func printList[M proto.Message](cmd *cobra.Command, s *session.Session, limit int, things iter.Seq2[M, error], l listing[M]) error {
	if limit < 0 {
		return session.UsageErrorf(cmd, "--limit must not be negative")
	}
	var all []M
	more := false
	for one, err := range things {
		if err != nil {
			return err
		}
		if more = limit > 0 && len(all) == limit; more {
			break
		}
		all = append(all, one)
	}
	if err := l.print(s, all); err != nil {
		return err
	}
	if more {
		s.Screen.Note(fmt.Sprintf("baictl: showing %d; more match (--limit 0 shows all)", limit))
	}
	return nil
}

func (l listing[M]) print(s *session.Session, all []M) error {
	switch s.Output {
	case "json", "yaml":
		text, err := session.Object(session.Entry{Name: l.name, Value: session.Array(all)})
		if err != nil {
			return err
		}
		return s.Print(text)
	case "csv":
		if err := csv.NewWriter(s.Env.Out).WriteAll(l.csv(all)); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		return nil
	case "jsonl", "name":
		return l.lines(s, all)
	}
	if len(all) == 0 {
		s.Screen.Note("baictl: " + l.none)
		return nil
	}
	return s.PrintTable(l.table(all, s.Output == "wide"))
}

// lines prints a line for each thing: JSON, or its ID.
func (l listing[M]) lines(s *session.Session, all []M) error {
	for _, one := range all {
		line := printer.Clean(l.id(one))
		if s.Output == "jsonl" {
			line = string(printer.JSON(one))
		}
		if err := session.WriteText(s.Env.Out, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// stateStyles are the colours of states and statuses.
func stateStyles() map[string]screen.Style {
	return map[string]screen.Style{
		"firing": screen.Bad, "refused": screen.Bad, "suspected": screen.Muted, "confirming": screen.Muted,
		"waiting": screen.Muted, "resolved": screen.Good,
		"sent": screen.Good,
	}
}

// painted is a table whose first column, a state or a status, has colours.
func (v *verbs) painted(t printer.Table) printer.Table {
	styles := stateStyles()
	t.Paint = func(row, column int, text string) string {
		if column > 0 {
			return text
		}
		return v.Screen.Paint(styles[t.Rows[row][0]], text)
	}
	return t
}
