package mlflow

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"github.com/benchmark-ai/bai/services/internal/post"
)

// answerError is an answer that is no success.
type answerError struct {
	Status  int
	Code    string // MLflow's word for the reason; empty if the answer is not MLflow's
	Message string
}

// Error implements error. The texts of failures within the server may have the addresses of its database: they are left out.
func (e *answerError) Error() string {
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return fmt.Sprintf("MLflow does not let the platform in with the credentials that it was given (%d)", e.Status)
	case e.Status/100 == 3:
		return fmt.Sprintf("MLflow answers with a redirect (%d), which the platform does not follow: the settings need the final address",
			e.Status)
	case e.Status == http.StatusTooManyRequests, e.Status == http.StatusServiceUnavailable:
		return fmt.Sprintf("MLflow is busy (%d)", e.Status)
	case e.Status/100 == 4 && e.Code != "":
		return fmt.Sprintf("MLflow refused: %s (%s)", valueOf(e.Message, 300), e.Code)
	}
	return fmt.Sprintf("MLflow answers %d %s", e.Status, http.StatusText(e.Status))
}

// isCode reports whether an error is an answer with that code.
func isCode(err error, code string) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.Code == code
}

// refusedError is an error that a user may read as it is.
type refusedError struct{ Reason string }

// Error implements error.
func (e *refusedError) Error() string { return e.Reason }

// readable returns an error without addresses and secrets, which the texts of the HTTP client have.
func readable(err error) error {
	var (
		refused     *refusedError
		answer      *answerError
		certificate *tls.CertificateVerificationError
		errno       syscall.Errno
	)
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &answer):
		return answer
	case errors.Is(err, post.ErrTooLong):
		return fmt.Errorf("MLflow answers more than %d MB", maxAnswer>>20)
	case errors.As(err, &certificate):
		return errors.New("the certificate of MLflow is not one that the platform trusts")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return errors.New("MLflow did not answer in time")
	case errors.As(err, &errno):
		return fmt.Errorf("MLflow cannot be reached: %s", errno.Error())
	}
	return errors.New("MLflow cannot be reached")
}
