package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/exitcode"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/printer"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/session"
	"github.com/benchmark-ai/bai/descriptors/parser"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// printArray prints results as json or yaml.
func printArray(s *session.Session, array []byte) error {
	text, err := session.Object(session.Entry{Name: "data", Value: json.RawMessage(array)})
	if err != nil {
		return err
	}
	return s.Print(text)
}

// prefetchFlags are the flags of prefetch.
type prefetchFlags struct {
	file   string
	md5    string
	sha256 string
	detach bool
}

func prefetch(s *session.Session) *cobra.Command {
	var w prefetchFlags
	cmd := &cobra.Command{
		Use:   "prefetch {SRC... | --descriptor FILE}",
		Short: "Fetch data sets before any run wants them",
		Long: `Has the platform fetch data sets before any run wants them, waits until they are
there, and prints their digests. Each SRC is what src of [[data.sources]] may
be; --descriptor takes all data and models of a descriptor. What is there
already is not fetched again.

With -o json or yaml: {"data": [{"src", "sha256", "size", ...}]}. With -o name:
the digests.`,
		Example: `  baictl data prefetch s3://data-sets/imagenet/
  baictl data prefetch --descriptor resnet.toml --detach`,
		Args: session.Arguments(0, -1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := w.sources(cmd, s, args)
			if err != nil {
				return err
			}
			c, err := s.Client()
			if err != nil {
				return err
			}
			return w.fetch(cmd, s, c, all)
		},
	}
	cmd.Flags().StringVar(&w.file, "descriptor", "", "fetch all data and models of the descriptor `FILE`")
	cmd.Flags().StringVar(&w.md5, "md5", "", "`DIGEST` that the one SRC must have")
	cmd.Flags().StringVar(&w.sha256, "sha256", "", "`DIGEST` that the one SRC must have")
	cmd.Flags().BoolVar(&w.detach, "detach", false, "do not wait until they are there")
	_ = cmd.MarkFlagFilename("descriptor", "toml") // fails for flags that do not exist
	return cmd
}

// sources are the sources of the command line.
func (w prefetchFlags) sources(cmd *cobra.Command, s *session.Session, args []string) ([]bai.Wanted, error) {
	switch pinned := w.md5 != "" || w.sha256 != ""; {
	case (w.file == "") == (len(args) == 0):
		return nil, session.UsageErrorf(cmd, "either a SRC or --descriptor")
	case pinned && len(args) != 1:
		return nil, session.UsageErrorf(cmd, "--md5 and --sha256 are of one SRC")
	}
	var all []bai.Wanted
	for _, src := range args {
		all = append(all, bai.Wanted{Src: src, MD5: w.md5, SHA256: w.sha256})
	}
	if w.file == "" {
		return all, nil
	}
	return sourcesOf(cmd, s, w.file)
}

// sourcesOf are the data and the models of a descriptor.
func sourcesOf(cmd *cobra.Command, s *session.Session, file string) ([]bai.Wanted, error) {
	doc, faults, err := s.Reader("").Read(cmd.Context(), file)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, s.FailWithFaults(faults)
	}
	d, found := parser.Parse(doc.Name, doc.Text)
	if errs := found.Errors(); len(errs) > 0 {
		for _, f := range errs {
			s.Screen.Note(printer.Clean(f.String()))
		}
		return nil, &exitcode.FaultsError{Faults: len(errs), Files: 1, Of: 1}
	}
	sources := slices.Clip(d.Data.Sources)
	if d.Server != nil {
		sources = append(sources, d.Server.Models...)
	}
	var all []bai.Wanted
	for _, from := range sources {
		all = append(all, bai.Wanted{Src: from.Src, MD5: from.MD5, SHA256: from.SHA256})
	}
	return all, nil
}

// fetch orders all sources, and then waits for each of them.
func (w prefetchFlags) fetch(cmd *cobra.Command, s *session.Session, c *bai.Client, all []bai.Wanted) error {
	var names []string
	for _, want := range all {
		name, err := c.Prefetch(cmd.Context(), want)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	var ended []*baiv1.GetPrefetchResponse
	var failed error
	for i, name := range names {
		res := &baiv1.GetPrefetchResponse{State: baiv1.GetPrefetchResponse_STATE_FETCHING}
		if !w.detach {
			s.Screen.Live("fetching " + printer.Clean(all[i].Src))
			var err error
			res, err = c.FollowPrefetch(cmd.Context(), name, func(why string) { w.showWaiting(s, all[i].Src, why) })
			if err != nil {
				s.Screen.Live("")
				return err
			}
		}
		if res.GetState() == baiv1.GetPrefetchResponse_STATE_FAILED {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", res.GetReason(), res.GetMessage()))
		}
		ended = append(ended, res)
	}
	s.Screen.Live("")
	return errors.Join(printFetched(s, all, ended), failed)
}

// showWaiting shows the reason for which a source is delayed.
func (prefetchFlags) showWaiting(s *session.Session, src, why string) {
	if why == "" {
		s.Screen.Live("fetching " + printer.Clean(src))
		return
	}
	s.Screen.Note("baictl: " + printer.Clean(src+": "+why))
}

func printFetched(s *session.Session, all []bai.Wanted, ended []*baiv1.GetPrefetchResponse) error {
	if s.Structured() {
		return printEnded(s, all, ended)
	}
	for i, res := range ended {
		line := ""
		switch state := res.GetState(); {
		case state == baiv1.GetPrefetchResponse_STATE_FETCHED && s.Output == "name":
			line = res.GetSha256() + "\n"
		case state == baiv1.GetPrefetchResponse_STATE_FETCHED:
			line = fmt.Sprintf("%s fetched (%s) from %s\n", digits(res.GetSha256(), s.Output == "wide"), printer.Bytes(res.GetSize()),
				printer.Clean(all[i].Src))
		case state == baiv1.GetPrefetchResponse_STATE_FETCHING && s.Output != "name":
			line = "fetching " + printer.Clean(all[i].Src) + "\n"
		}
		if err := session.WriteText(s.Env.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func printEnded(s *session.Session, all []bai.Wanted, ended []*baiv1.GetPrefetchResponse) error {
	objects := []byte{'['}
	for i, res := range ended {
		src, err := session.Object(session.Entry{Name: "src", Value: all[i].Src})
		if err != nil {
			return err
		}
		if i > 0 {
			objects = append(objects, ',')
		}
		objects = append(objects, session.Join(src, printer.JSON(res))...)
	}
	return printArray(s, append(objects, ']'))
}
