//go:build linux

package kubecluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

// Created waits until the API server has created an object of a kind, as in
// jobs, and returns when, as its audit log has it.
func (i Info) Created(ctx context.Context, resource, name string) (at time.Time, err error) {
	err = await(ctx, 5*time.Millisecond, "wait until "+resource+" "+name+" is created", func() error {
		log, err := os.ReadFile(i.Audit)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(log) {
			if at = created(line, resource, name); !at.IsZero() {
				return nil
			}
		}
		return errNotYet
	})
	return at, err
}

// created returns when an object was created, if an audit line records that.
func created(line []byte, resource, name string) time.Time {
	if !bytes.Contains(line, fmt.Appendf(nil, "%q", name)) {
		return time.Time{}
	}
	var e struct {
		Verb           string
		ObjectRef      struct{ Resource, Name string }
		ResponseStatus struct{ Code int }
		StageTimestamp time.Time
	}
	if json.Unmarshal(line, &e) != nil || e.Verb != "create" || e.ObjectRef.Resource != resource || e.ObjectRef.Name != name ||
		e.ResponseStatus.Code != http.StatusCreated {
		return time.Time{}
	}
	return e.StageTimestamp
}
