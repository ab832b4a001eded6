package submit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/parser"
	"github.com/benchmark-ai/bai/services/gateway/submit"
	"github.com/benchmark-ai/bai/services/internal/event"
)

const (
	runID = "01k8h4fzqh3v7x9y2m5n8p0r4t"
	valid = `spec_version = "0.1.0"

[info]
description = "hello"

[info.labels]
color = "red"
size = "small"

[hardware]
instance_type = "t3.small"

[env]
docker_image = "alpine"

[ml]
benchmark_code = "echo hello"
`
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func request(change func(*submit.Request)) submit.Request {
	req := submit.Request{Descriptor: []byte(valid), File: "bench.toml", Owner: "ann"}
	if change != nil {
		change(&req)
	}
	return req
}

func TestARunOfAConfirmationHasAllLabelsOfTheRunThatItRepeats(t *testing.T) {
	labels := make(map[string]string)
	for n := range 65 {
		labels[fmt.Sprint("l", n)] = "x"
	}
	for name, tt := range map[string]struct {
		change  func(*submit.Request)
		refused bool
	}{
		"of a user":         {func(r *submit.Request) { r.Labels = labels }, true},
		"of a confirmation": {func(r *submit.Request) { r.Labels, r.Confirms = labels, &submit.ConfirmingRun{Confirmation: "c"} }, false},
	} {
		if _, err := submit.Decide(parser.Parser{}, request(tt.change), runID, noon()); (err != nil) != tt.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARequestBecomesAnEvent(t *testing.T) {
	plan, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) {
		r.Name = "nightly-1"
		r.Labels = map[string]string{"size": "large", "empty": ""}
	}), runID, noon())
	if err != nil {
		t.Fatal(err)
	}
	want := event.Submitted{
		Header: event.NewHeader(event.Derive("submitted", runID), runID, "default", "ann", noon()),
		Name:   "nightly-1", File: "bench.toml", Descriptor: valid,
		Labels: map[string]string{"color": "red", "size": "large", "empty": ""},
		Use:    event.Use{Description: "hello"},
	}
	if diff := cmp.Diff(want, plan.Submitted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := plan.Submitted.Validate(); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfARequestAreAllToldAtOnceBeforeThoseOfItsDescriptor(t *testing.T) {
	_, err := submit.Decide(parser.Parser{}, submit.Request{
		Key:        strings.Repeat("k", 129),
		Descriptor: []byte(strings.Replace(valid, "instance_type", "instance_tipe", 1)),
		File:       "a\nb.toml",
		Owner:      "ann smith",
		Namespace:  "-team",
		Name:       strings.ToUpper(runID),
		Labels:     map[string]string{"run": "x", "a/b": "x", "benchmark-ai.dev/run": "x", "fine": "no\x00good", "good": "fine"},
	}, runID, noon())
	var invalid *submit.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("decided with %v, want *InvalidError", err)
	}
	var got []string
	for _, f := range invalid.Faults {
		if f.Line == 0 {
			got = append(got, f.Code+" "+f.Path)
		}
	}
	want := []string{
		"BAI9001 idempotency_key", "BAI9002 descriptor_file", "BAI9003 owner", "BAI9004 namespace", "BAI9005 name",
		"BAI9006 labels.a/b", "BAI9006 labels.benchmark-ai.dev/run", "BAI9006 labels.fine", "BAI9006 labels.run",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := invalid.Faults[len(invalid.Faults)-1]; last.Line == 0 {
		t.Errorf("the last fault is %v, want one of the descriptor", last)
	}
}

func TestWords(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*submit.Request)
		fault  string // path of the fault; empty for none
	}{
		"nothing more than a descriptor and an owner is needed": {nil, ""},
		"a name may have points, dashes and underscores":        {func(r *submit.Request) { r.Name = "a.b-c_d" }, ""},
		"a name has 63 characters at most":                      {func(r *submit.Request) { r.Name = strings.Repeat("a", 64) }, "name"},
		"a name has no letters of other alphabets":              {func(r *submit.Request) { r.Name = "größe" }, "name"},
		"a name is not of the form of a run's ID":               {func(r *submit.Request) { r.Name = runID }, "name"},
		"a name of 26 letters that is no ULID is a name":        {func(r *submit.Request) { r.Name = strings.Repeat("z", 26) }, ""},
		"a name is no path":                                     {func(r *submit.Request) { r.Name = ".." }, "name"},
		"an owner may be an address":                            {func(r *submit.Request) { r.Owner = "ann@example.com" }, ""},
		"an owner is needed":                                    {func(r *submit.Request) { r.Owner = "" }, "owner"},
		"a key of 128 bytes is taken":                           {func(r *submit.Request) { r.Key = strings.Repeat("é", 64) }, ""},
		"a label's key is needed":                               {func(r *submit.Request) { r.Labels = map[string]string{"": "x"} }, "labels."},
		"a label that the platform gives itself is refused":     {func(r *submit.Request) { r.Labels = map[string]string{"Owner": "x"} }, "labels.Owner"},
		"65 labels are too many": {func(r *submit.Request) {
			r.Labels = make(map[string]string)
			for i := range 65 {
				r.Labels[fmt.Sprint("k", i)] = ""
			}
		}, "labels"},
		"an empty descriptor is refused":    {func(r *submit.Request) { r.Descriptor = nil }, "descriptor"},
		"a descriptor over 256 KiB, too":    {func(r *submit.Request) { r.Descriptor = make([]byte, 256<<10+1) }, "descriptor"},
		"a descriptor that is not text too": {func(r *submit.Request) { r.Descriptor = []byte{0xff, 0xfe, 0} }, "descriptor"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := submit.Decide(parser.Parser{}, request(tt.change), runID, noon())
			var invalid *submit.InvalidError
			switch {
			case tt.fault == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.fault != "" && !errors.As(err, &invalid):
				t.Errorf("decided with %v, want *InvalidError", err)
			case tt.fault == "descriptor" && invalid.Faults[0].File != "bench.toml":
				t.Errorf("fault %v, want one of the file", invalid.Faults[0])
			case tt.fault != "" && tt.fault != "descriptor" && (len(invalid.Faults) != 1 || invalid.Faults[0].Path != tt.fault):
				t.Errorf("faults %v, want one of %s", invalid.Faults, tt.fault)
			}
		})
	}
}

// scheduledRequest returns a request for a schedule.
func scheduledRequest(with func(*submit.Request)) submit.Request {
	return request(func(r *submit.Request) {
		r.Descriptor = []byte(strings.Replace(valid, "[info]", "[info]\nscheduling = \"0 3 * * *\"", 1))
		with(r)
	})
}

func TestAScheduleIsNoRun(t *testing.T) {
	for name, with := range map[string]func(*submit.Request){
		"by a name": func(*submit.Request) {},
		"by its ID": func(r *submit.Request) { r.Name = "01k8h4fzqh3v7x9y2m5n8p0r4s" },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := submit.Decide(parser.Parser{}, scheduledRequest(with), runID, noon())
			asked := new(submit.ScheduleError)
			if !errors.As(err, &asked) || asked.Descriptor.Info.Scheduling != "0 3 * * *" || asked.Digest == "" || !strings.Contains(string(asked.Text), "0 3 * * *") {
				t.Errorf("decided with %v, %+v", err, asked)
			}
		})
	}
}

func TestAFiringOfAScheduleAndWhatRepeatsItAreRuns(t *testing.T) {
	firing := &submit.Firing{Schedule: "01k8h4fzqh3v7x9y2m5n8p0r4s", Time: noon()}
	for name, tt := range map[string]struct {
		with func(*submit.Request)
		want event.Lineage
	}{
		"a firing":     {func(r *submit.Request) { r.Firing = firing }, event.Lineage{Schedule: firing.Schedule, Firing: &firing.Time}},
		"a run again":  {func(r *submit.Request) { r.RerunOf = runID }, event.Lineage{RerunOf: runID}},
		"a comparison": {func(r *submit.Request) { r.RerunOf, r.Compares = runID, "c" }, event.Lineage{RerunOf: runID, Compares: "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := submit.Decide(parser.Parser{}, scheduledRequest(tt.with), runID, noon())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, plan.Submitted.Lineage); diff != "" {
				t.Errorf("its lineage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEngineIsRefusedWhereThoseOfThePlatformAreKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		engines []string
		refused bool
	}{"unknown": {}, "known, with it": {engines: []string{"default", "aws.sagemaker"}}, "known, without it": {[]string{"default", "local"}, true}} {
		_, err := submit.Decide(parser.Parser{Engines: tt.engines}, request(func(r *submit.Request) {
			r.Descriptor = []byte(strings.Replace(valid, "[info]", "[info]\nexecution_engine = \"aws.sagemaker\"", 1))
		}), runID, noon())
		if invalid := new(submit.InvalidError); (err != nil) != tt.refused || tt.refused && (!errors.As(err, &invalid) || invalid.Faults[0].Code != "BAI0029") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAtMost50FaultsAreToldErrorsFirst(t *testing.T) {
	var b strings.Builder
	b.WriteString(valid)
	for i := range 80 {
		fmt.Fprintf(&b, "unknown_key_%d = 1\n", i)
	}
	_, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) { r.Descriptor = []byte(b.String()) }), runID, noon())
	var invalid *submit.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Faults) != 50 {
		t.Fatalf("decided with %v, want 50 faults", err)
	}
}

func TestDigestTellsRequestsApartByWhatTheyAskFor(t *testing.T) {
	digest := func(change func(*submit.Request)) string {
		plan, err := submit.Decide(parser.Parser{}, request(change), runID, noon())
		if err != nil {
			t.Fatal(err)
		}
		return plan.Digest
	}
	base := digest(nil)
	if base != digest(func(r *submit.Request) { r.File, r.Key, r.Namespace = "other.toml", "k", "default" }) {
		t.Error("another file name, key or the default namespace makes another request")
	}
	for name, change := range map[string]func(*submit.Request){
		"descriptor": func(r *submit.Request) { r.Descriptor = append(r.Descriptor, '\n') },
		"name":       func(r *submit.Request) { r.Name = "n" },
		"namespace":  func(r *submit.Request) { r.Namespace = "n" },
		"labels":     func(r *submit.Request) { r.Labels = map[string]string{"n": ""} },
	} {
		if base == digest(change) {
			t.Errorf("another %s makes no other request", name)
		}
	}
}

func TestTheLargestDescriptorTravels(t *testing.T) {
	fill := valid + "# " // JSON doubles each of these bytes
	text := fill + strings.Repeat(`"`, 256<<10-len(fill))
	plan, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) { r.Descriptor = []byte(text) }), runID, noon())
	if err != nil {
		t.Fatal(err)
	}
	m, err := event.Encode(plan.Submitted)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.Value); n > 600<<10 {
		t.Errorf("the event has %d bytes", n)
	}
}

// swept is a descriptor with a sweep.
const swept = valid + `
[sweep.product]
"hardware.cpus" = [1, 2]
`

func TestADescriptorWithASweepIsASetAndACellOfItIsARun(t *testing.T) {
	_, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) { r.Descriptor = []byte(swept) }), runID, noon())
	var asked *submit.SetError
	if !errors.As(err, &asked) || string(asked.Text) != swept || asked.Digest == "" || asked.Descriptor.Sweep == nil {
		t.Fatalf("decided with %v, want *SetError", err)
	}
	plan, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) {
		r.Cell = &submit.CellRun{Set: "s", Cell: "cpus=1", Repetition: 2, Warmup: true}
	}), runID, noon())
	if diff := cmp.Diff(event.Lineage{Set: "s", Cell: "cpus=1", Repetition: 2, Warmup: true}, plan.Submitted.Lineage); err != nil || diff != "" {
		t.Errorf("%v, lineage (-want +got):\n%s", err, diff)
	}
}

func TestASweepIsRefusedInARepetitionOfARun(t *testing.T) {
	_, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) { r.Descriptor, r.RerunOf = []byte(swept), runID }), runID, noon())
	var invalid *submit.InvalidError
	if !errors.As(err, &invalid) || invalid.Faults[0].Path != "sweep" || invalid.Faults[0].Code != submit.CodeSweep {
		t.Errorf("decided with %v, want *InvalidError", err)
	}
}

func TestASweepInAScheduleIsAScheduleAndEachFiringASet(t *testing.T) {
	text := []byte(strings.Replace(swept, "[info]", "[info]\nscheduling = \"@daily\"", 1))
	var scheduled *submit.ScheduleError
	_, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) { r.Descriptor = text }), runID, noon())
	if !errors.As(err, &scheduled) || scheduled.Descriptor.Sweep == nil {
		t.Errorf("decided with %v, want *ScheduleError", err)
	}
	var asked *submit.SetError
	_, err = submit.Decide(parser.Parser{}, request(func(r *submit.Request) {
		r.Descriptor, r.Firing = text, &submit.Firing{Schedule: "s", Time: noon()}
	}), runID, noon())
	if !errors.As(err, &asked) || string(asked.Text) != string(text) {
		t.Errorf("decided about a firing with %v, want *SetError", err)
	}
	cell := []byte(strings.Split(string(text), "[sweep")[0])
	plan, err := submit.Decide(parser.Parser{}, request(func(r *submit.Request) {
		r.Descriptor, r.Cell = cell, &submit.CellRun{Set: "s", Cell: "cpus=1", Repetition: 1}
	}), runID, noon())
	if err != nil || plan.Submitted.Schedule != "" {
		t.Errorf("decided about a cell with %+v, %v, want a run", plan.Submitted.Lineage, err)
	}
}
