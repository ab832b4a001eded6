package verb

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/show"
	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/verdict"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

func validateCommand(s *session) *cobra.Command {
	return withNoun(&cobra.Command{
		Use:   "validate FILE...",
		Short: "Check descriptors without a platform",
		Long: `Checks descriptors without a platform and says all that is wrong with them, each
fault as file:line:column: key: what is wrong (how to mend it), on standard
error. FILE - is the standard input. Warnings alone leave a descriptor valid.

With -o json or yaml: {"files": [{"file", "valid", "faults": [...]}]} on
standard output. With -o name: the valid files.`,
		Args: arguments(1, -1, "a descriptor's FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return s.validate(args) },
	})
}

// A checked file with its faults.
type checked struct {
	name   string
	faults []*baiv1.Fault
}

func (v checked) valid() bool { return errorsIn(v.faults) == 0 }

func (s *session) validate(names []string) error {
	all := make([]checked, len(names))
	for i, name := range names {
		all[i] = s.check(name)
	}
	if err := s.printChecked(all); err != nil {
		return err
	}
	return summary(all)
}

func (s *session) check(name string) checked {
	doc, faults := s.read(name)
	if len(faults) == 0 {
		faults = doc.faults()
	}
	return checked{doc.name, faults}
}

func (s *session) printChecked(all []checked) error {
	if s.structured() {
		return s.printCheckedObjects(all)
	}
	for _, v := range all {
		s.complain(v.faults)
		if !v.valid() {
			continue
		}
		text := v.name
		if s.output != "name" {
			text += ": valid"
			if n := len(v.faults); n > 0 {
				text += fmt.Sprintf(", %s", verdict.Plural(n, "warning"))
			}
		}
		s.screen.Line(show.Clean(text))
	}
	return nil
}

func (s *session) printCheckedObjects(all []checked) error {
	files := make([]json.RawMessage, len(all))
	for i, v := range all {
		file, err := object(entry{"file", v.name}, entry{"valid", v.valid()}, entry{"faults", array(v.faults)})
		if err != nil {
			return err
		}
		files[i] = file
	}
	text, err := object(entry{"files", files})
	if err != nil {
		return err
	}
	return s.print(text)
}

// summary is nil if every file is valid.
func summary(all []checked) error {
	e := &verdict.FaultsError{Of: len(all)}
	for _, v := range all {
		e.Faults += errorsIn(v.faults)
		if !v.valid() {
			e.Files++
		}
	}
	if e.Files == 0 {
		return nil
	}
	return e
}
