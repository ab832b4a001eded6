package executable

import (
	"encoding/json"
	"time"

	"github.com/benchmark-ai/bai/services/internal/cluster"
)

// Calls of a program.
const (
	callStart  = "start"
	callStates = "states"
	callStop   = "stop"
	callDelete = "delete"
	callLog    = "log"
)

// request is one line for the program.
type request struct {
	ID      int64        `json:"id"`
	Call    string       `json:"call"`
	Run     string       `json:"run,omitempty"`
	Attempt int          `json:"attempt,omitempty"`
	Plan    *commandPlan `json:"plan,omitempty"`   // of start
	Cursor  string       `json:"cursor,omitempty"` // of log: that of the answer before, empty for the beginning
}

// answer is one line from the program.
type answer struct {
	ID     int64     `json:"id"`
	Error  *fault    `json:"error"`
	Exists bool      `json:"exists"` // of start: the attempt was started before
	States []state   `json:"states"` // of states and, with one element, of start
	Lines  []logLine `json:"lines"`  // of log
	Cursor string    `json:"cursor"` // of log
	End    bool      `json:"end"`    // of log: no more lines will come
}

// fault is why a call failed.
type fault struct {
	Refused bool   `json:"refused"` // it fails each time
	Message string `json:"message"`
}

// commandPlan is how an attempt is run.
type commandPlan struct {
	Command []string `json:"command"` // with the values of variables; "{dir}" stands for the folder of the files
	Env     []envVar `json:"env"`     // likewise
	Files   []file   `json:"files"`
	Image   string   `json:"image,omitempty"`

	Grace    int64 `json:"grace"`              // seconds from SIGTERM to SIGKILL when it is stopped
	Deadline int64 `json:"deadline,omitempty"` // seconds that it may run; 0 for no limit

	Pull         json.RawMessage `json:"pull,omitempty"`          // data sets and sent code, as the platform's puller gets them
	CustomParams json.RawMessage `json:"custom_params,omitempty"` // of the descriptor, whole

	Record record `json:"record"`
}

type envVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type file struct {
	Name string `json:"name"` // a path below the folder of the files
	Text string `json:"text"`
	Mode int32  `json:"mode"`
}

// record is what the program stores with an attempt, and returns in each state as it was.
type record struct {
	Scope       string            `json:"scope"`
	Job         string            `json:"job"`
	UID         string            `json:"uid"`
	Created     time.Time         `json:"created"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Image       string            `json:"image,omitempty"`
}

// Phases of an attempt.
const (
	phasePending   = "pending"
	phaseRunning   = "running"
	phaseSucceeded = "succeeded"
	phaseFailed    = "failed"
)

// state is an attempt as the program has it. The times are zero as long as they are not
// known.
type state struct {
	Run      string    `json:"run"`
	Attempt  int       `json:"attempt"`
	Phase    string    `json:"phase"`
	ExitCode int32     `json:"exit_code"`
	Reason   string    `json:"reason"`  // of a failure without an exit code: DeadlineExceeded, or a word of the program's own
	Message  string    `json:"message"` // for people
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Deleting bool      `json:"deleting"` // it is gone soon
	Record   record    `json:"record"`

	deletingSince time.Time // when this process first saw Deleting; zero while it is false
}

type logLine struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

func (s state) ref() cluster.Ref {
	return cluster.Ref{Run: s.Run, Attempt: s.Attempt, Scope: s.Record.Scope, Job: s.Record.Job, UID: s.Record.UID}
}
