package input_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/client-lib/cmd/baictl/internal/input"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

const one = "spec_version = \"1.0\"\n[info]\ndescription = \"x\"\n[hardware]\ncpus = 1\n[env]\ndocker_image = \"alpine:3\"\n"

// suiteOf is a suite with an entry for each descriptor.
func suiteOf(descriptors ...string) string {
	text := "[suite]\nname = \"s\"\n"
	for i, d := range descriptors {
		text += "[[suite.entries]]\nname = \"e" + string(rune('0'+i)) + "\"\ndescriptor = \"" + d + "\"\n"
	}
	return text
}

func TestASuiteIsReadWithItsDescriptors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"one.toml": one, "suites/s.toml": suiteOf("../one.toml", "stored:x", dir+"/one.toml")} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := input.Reader{Fetch: func(context.Context, string) ([]byte, *baiv1.Origination, error) {
		return []byte(one), &baiv1.Origination{Uri: "stored:x@3"}, nil
	}}
	doc, faults, err := r.Read(t.Context(), dir+"/suites/s.toml")
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	checked := doc.Check(nil, true)
	if len(checked.Faults) > 0 || checked.Plan() == nil || checked.Plan().Entries() != 3 {
		t.Fatalf("%+v", checked)
	}
	plan := checked.Plan()
	if got := plan.File(0) + " " + plan.File(1); got != dir+"/one.toml stored:x@3" {
		t.Errorf("files %s", got)
	}
}

func TestDescriptorsOfASuiteThatCannotBeRead(t *testing.T) {
	remote := func(text string) input.Reader {
		return input.Reader{In: strings.NewReader(text), Fetch: func(_ context.Context, uri string) ([]byte, *baiv1.Origination, error) {
			switch uri {
			case "stored:suite":
				return []byte(text), &baiv1.Origination{Uri: "stored:suite@1"}, nil
			case "stored:large":
				return []byte(strings.Repeat("# \n", 100_000)), &baiv1.Origination{Uri: "stored:large@1"}, nil
			}
			return nil, nil, errors.New("no " + uri)
		}}
	}
	for name, tt := range map[string]struct{ read, text, fault, err string }{
		"a file, of a suite that is none": {"stored:suite", suiteOf("one.toml"), `"one.toml" is a file, and the suite is not: name https://… or stored:NAME`, ""},
		"a suite":                         {"-", suiteOf("stored:suite"), `"stored:suite" is a suite, and an entry is a descriptor`, ""},
		"a text that is too large":        {"-", suiteOf("stored:large"), `"stored:large" is larger than 256 KiB, the most that is taken`, ""},
		"the standard input":              {"-", suiteOf("-"), `"-" is the standard input, and not a file`, ""},
		"nothing on the platform":         {"-", suiteOf("stored:none"), "", "read the descriptors of <stdin>: no stored:none"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults, err := remote(tt.text).Read(t.Context(), tt.read)
			switch {
			case tt.err != "":
				if err == nil || err.Error() != tt.err {
					t.Errorf("%v", err)
				}
			case err != nil || len(faults) != 1 || faults[0].GetMessage() != tt.fault || faults[0].GetLine() != 5:
				t.Errorf("%v, %v", faults, err)
			}
		})
	}
}

func TestASuiteWithFaultsOfItsOwnIsReadAsItIs(t *testing.T) {
	doc, faults, err := input.Reader{In: strings.NewReader("[suite]\n")}.Read(t.Context(), "-")
	if err != nil || len(faults) > 0 || len(doc.Check(nil, false).Faults) != 2 {
		t.Errorf("%v %v %+v", faults, err, doc.Check(nil, false))
	}
}
