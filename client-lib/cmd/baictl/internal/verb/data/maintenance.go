package data

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// result is the outcome for one data set.
type result struct {
	data *baiv1.StoredData
	word string // whole, damaged, evicted, needed
	why  string // it is needed
}

// entries are the outcome's fields, beside those of the data.
func (d result) entries() []session.Entry {
	all := []session.Entry{{Name: "result", Value: d.word}}
	if d.why != "" {
		all = append(all, session.Entry{Name: "why", Value: d.why})
	}
	return all
}

func (d result) line(wide bool) string {
	line := fmt.Sprintf("%s %s (%s)", digits(d.data.GetSha256(), wide), d.word, printer.Bytes(d.data.GetSize()))
	if d.why != "" {
		line += ": " + printer.Clean(d.why)
	}
	return line + "\n"
}

func verify(s *session.Session) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "verify {DIGEST... | --all}",
		Short: "Read data sets again, and verify their digests",
		Long: `Makes the platform read data sets again, and reports whether they are what was
fetched. Data that are damaged are forgotten, and fetched again when a run
wants them; then baictl exits with 3.

With -o json or yaml: {"data": [{"result": "whole" | "damaged", ...}]}. With -o
name: the digests of those that are damaged.`,
		Args:              session.Arguments(0, -1, ""),
		ValidArgsFunction: digests(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.Client()
			if err != nil {
				return err
			}
			chosen, err := choose(cmd, c, all, args)
			if err != nil {
				return err
			}
			return verifyAll(cmd, s, c, chosen)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that is stored")
	return cmd
}

func verifyAll(cmd *cobra.Command, s *session.Session, c *bai.Client, chosen []*baiv1.StoredData) error {
	var all []result
	damaged := 0
	for _, d := range chosen {
		whole, err := c.VerifyData(cmd.Context(), d.GetSha256(), func(read, total int64) {
			s.Screen.Live(fmt.Sprintf("%s  %s of %s", digits(d.GetSha256(), false), printer.Bytes(read), printer.Bytes(total)))
		})
		s.Screen.Live("")
		if err != nil {
			return errors.Join(err, printResults(s, all, "damaged"))
		}
		word := "whole"
		if !whole {
			word = "damaged"
			damaged++
		}
		all = append(all, result{data: d, word: word})
	}
	err := printResults(s, all, "damaged")
	if err == nil && damaged > 0 {
		err = fmt.Errorf("%d of %d data sets are damaged: they are forgotten, and fetched again when a run wants them", damaged,
			len(chosen))
	}
	return err
}

func evict(s *session.Session) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "evict {DIGEST... | --all}",
		Short: "Remove data sets that no run needs",
		Long: `Removes data sets from the platform's store. One that a run needs, or that was
used just now, is not removed: that is an error where it is named, and said
where --all is given. A run that wants it later has it fetched again.

With -o json or yaml: {"data": [{"result": "evicted" | "needed", "why", ...}]}.
With -o name: the digests of those that were removed.`,
		Args:              session.Arguments(0, -1, ""),
		ValidArgsFunction: digests(s),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.Client()
			if err != nil {
				return err
			}
			chosen, err := choose(cmd, c, all, args)
			if err != nil {
				return err
			}
			return evictAll(cmd, s, c, chosen, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that is stored and that no run needs")
	return cmd
}

func evictAll(cmd *cobra.Command, s *session.Session, c *bai.Client, chosen []*baiv1.StoredData, lenient bool) error {
	var all []result
	for _, d := range chosen {
		_, err := c.EvictData(cmd.Context(), d.GetSha256())
		needed, _ := errors.AsType[*bai.InvalidError](err)
		switch {
		case needed != nil && lenient:
			all = append(all, result{data: d, word: "needed", why: needed.Message})
		case err != nil:
			return errors.Join(err, printResults(s, all, "evicted"))
		default:
			all = append(all, result{data: d, word: "evicted"})
		}
	}
	return printResults(s, all, "evicted")
}

// printResults prints the outcomes; with -o name, the named ones.
func printResults(s *session.Session, all []result, named string) error {
	if s.Structured() {
		return printObjects(s, all)
	}
	for _, d := range all {
		line := d.data.GetSha256() + "\n"
		switch {
		case s.Output != "name":
			line = d.line(s.Output == "wide")
		case d.word != named:
			continue
		}
		if err := session.WriteText(s.Env.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func printObjects(s *session.Session, all []result) error {
	objects := []byte{'['}
	for i, d := range all {
		text, err := session.Merge(printer.JSON(d.data), d.entries()...)
		if err != nil {
			return err
		}
		if i > 0 {
			objects = append(objects, ',')
		}
		objects = append(objects, text...)
	}
	return printArray(s, append(objects, ']'))
}
