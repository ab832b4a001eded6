package bai_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/benchmark-ai/bai/client-lib/bai"
	"github.com/benchmark-ai/bai/client-lib/internal/baitest"
	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// platform is one whose runs succeed at once and measure one thing.
func platform() (addr string, stop func() error) {
	p, stop, err := baitest.Serve(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p.OnSubmit(func(id string) {
		p.Sample(id, &baiv1.Sample{Metric: "speed", Value: 42, Unit: "MB/s"})
		p.Log(id, &baiv1.LogLine{Text: "hello"})
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_RUNNING})
		p.Change(id, &baiv1.Change{Phase: baiv1.Phase_PHASE_FINISHED, Outcome: baiv1.Outcome_OUTCOME_SUCCEEDED})
		p.SetCompleteness(id, &baiv1.Completeness{Complete: true, Samples: 1, Lines: 1})
	})
	return p.Addr(), stop
}

// A run is submitted, followed until its end, and read.
func Example() {
	addr, stop := platform()
	defer func() { _ = stop() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	client, err := bai.Dial(addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	run, err := client.Submit(ctx, bai.Submission{File: "speed.toml", Descriptor: []byte("...")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for change, err := range client.Watch(ctx, run.RunID, 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(change.GetRevision(), change.GetPhase())
	}
	if _, err := client.WaitData(ctx, run.RunID); err != nil {
		fmt.Println(err)
		return
	}
	for sample, err := range client.Metrics(ctx, run.RunID) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(sample.GetMetric(), sample.GetValue(), sample.GetUnit())
	}
	// Output:
	// 1 PHASE_RUNNING
	// 2 PHASE_FINISHED
	// speed 42 MB/s
}

// Callers distinguish errors by their types.
func ExampleClient_Get() {
	addr, stop := platform()
	defer func() { _ = stop() }()
	client, err := bai.Dial(addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	_, err = client.Get(context.Background(), "nothing")
	if _, ok := errors.AsType[*bai.NotFoundError](err); ok {
		fmt.Println("not there:", err)
	}
	// Output:
	// not there: get run "nothing": there is no run "nothing"
}

// A program that is patient with a platform that restarts, and says so.
func ExampleSettings_Dial() {
	addr, stop := platform()
	defer func() { _ = stop() }()
	settings := bai.Settings{
		Owner:        "nightly",
		RetryTimeout: 10 * time.Minute,
		Lost:         func(err error) { fmt.Fprintln(os.Stderr, "waiting:", err) },
	}
	client, err := settings.Dial(addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	for run, err := range client.List(context.Background(), bai.Filter{Owner: "nightly"}) {
		fmt.Println(run.GetId(), err)
	}
	// Output:
}

// A descriptor that the platform keeps is submitted with other values, and the
// run remembers both.
func ExampleClient_Submit() {
	addr, stop := platform()
	defer func() { _ = stop() }()
	client, err := bai.Dial(addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	ctx := context.Background()

	pushed, err := client.Push(ctx, "", "speed", bai.Draft{File: "speed.toml", Text: []byte(minimal)})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, origin, err := client.Fetch(ctx, "", fmt.Sprintf("stored:%s@%d", pushed.GetName(), pushed.GetVersion()))
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := client.Submit(ctx, bai.Submission{
		Descriptor: text, Origin: origin, File: origin.GetUri(),
		Overrides: []*baiv1.Override{{Path: "hardware.cpus", Value: "4"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := client.Get(ctx, got.RunID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.GetOrigination().GetUri(), run.GetOverrides()[0].GetPath(), run.GetOverrides()[0].GetValue())
	// Output:
	// stored:speed@1 hardware.cpus 4
}

// Numbers of many runs are read at once, each with its run.
func ExampleClient_Samples() {
	addr, stop := platform()
	defer func() { _ = stop() }()
	client, err := bai.Dial(addr)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	ctx := context.Background()

	for range 2 {
		got, err := client.Submit(ctx, bai.Submission{Descriptor: []byte("..."), Labels: map[string]string{"gpu": "a100"}})
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := client.WaitData(ctx, got.RunID); err != nil {
			fmt.Println(err)
			return
		}
	}
	for m, err := range client.Samples(ctx, bai.Query{Runs: bai.Filter{Labels: map[string]string{"gpu": "a100"}}, Metrics: []string{"speed"}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(m.RunID, m.GetValue(), m.GetUnit())
	}
	// Output:
	// 01kdyt1q880000000000000002 42 MB/s
	// 01kdyt1q880000000000000001 42 MB/s
}
