package executable

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// readAnswer reads the answer to a request. The error says what is not the schema.
func readAnswer(line []byte, q request) (answer, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, fmt.Errorf("the line is not an answer: %w", err)
	}
	if a.ID != q.ID {
		return answer{}, fmt.Errorf("the answer has id %d, want %d", a.ID, q.ID)
	}
	if a.Error != nil {
		return a, nil
	}
	if q.Call == callStart && (len(a.States) != 1 || a.States[0].Run != q.Run || a.States[0].Attempt != q.Attempt) {
		return answer{}, errors.New("the answer to start has not the one state of the attempt")
	}
	for i, s := range a.States {
		if err := s.check(); err != nil {
			return answer{}, fmt.Errorf("states[%d]: %w", i, err)
		}
	}
	for i, l := range a.Lines {
		if l.Time.IsZero() || strings.ContainsAny(l.Text, "\n") {
			return answer{}, fmt.Errorf("lines[%d]: has no time, or a line break", i)
		}
	}
	return a, nil
}

// check returns what is not the schema in a state.
func (s state) check() error {
	if s.Run == "" || s.Attempt < 1 || s.Record.Job == "" || s.Record.UID == "" {
		return errors.New("run, attempt or the record of the plan is missing")
	}
	if !slices.Contains([]string{phasePending, phaseRunning, phaseSucceeded, phaseFailed}, s.Phase) {
		return fmt.Errorf("phase is %q, want pending, running, succeeded or failed", s.Phase)
	}
	if s.Phase != phasePending && s.Started.IsZero() && (s.Phase != phaseFailed || s.ExitCode != 0) {
		return fmt.Errorf("phase is %s, and started is missing", s.Phase)
	}
	if (s.Phase == phaseSucceeded || s.Phase == phaseFailed) && s.Ended.IsZero() {
		return fmt.Errorf("phase is %s, and ended is missing", s.Phase)
	}
	if s.Phase == phaseFailed && s.ExitCode == 0 && s.Reason == "" {
		return errors.New("a failure has an exit code or a reason")
	}
	return nil
}

// quoted returns the beginning of what a program wrote, for a message.
func quoted(text []byte) string {
	const most = 200
	s := strings.ToValidUTF8(strings.TrimSpace(string(text)), "�")
	if len(s) > most {
		cut := most
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return fmt.Sprintf("%q", s)
}
