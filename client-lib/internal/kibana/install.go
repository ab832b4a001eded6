package kibana

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Server is a Kibana.
type Server struct {
	URL    string
	Space  string // empty means the default one
	APIKey string // base64, as Elasticsearch gives it out; or else User and Password, or nothing
	User   string

	Password string
}

// Install imports objects, replaces those that exist, and returns the count. On an error
// no object was imported, unless the error reports a count.
func (s Server) Install(ctx context.Context, objects []byte) (int, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", "benchmark-ai.ndjson")
	if err == nil {
		_, err = file.Write(objects)
	}
	if err = errors.Join(err, form.Close()); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.importURL(), &body)
	if err != nil {
		return 0, fmt.Errorf("install dashboards: %w", err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("kbn-xsrf", "baictl") // Kibana takes no call without
	switch {
	case s.APIKey != "":
		req.Header.Set("Authorization", "ApiKey "+s.APIKey)
	case s.User != "":
		req.SetBasicAuth(s.User, s.Password)
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		return 0, fmt.Errorf("install dashboards: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	return readImportResult(resp)
}

func (s Server) importURL() string {
	base := strings.TrimSuffix(s.URL, "/")
	if s.Space != "" {
		base += "/s/" + url.PathEscape(s.Space)
	}
	return base + "/api/saved_objects/_import?overwrite=true"
}

// readImportResult reads Kibana's answer to an import.
func readImportResult(resp *http.Response) (int, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("install dashboards: read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("install dashboards: Kibana answers %s: %s", resp.Status,
			strings.TrimSpace(string(text[:min(len(text), 300)])))
	}
	var answer struct {
		Success      bool
		SuccessCount int
		Errors       []struct {
			Type, ID string
			Error    struct{ Type, Message string }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, fmt.Errorf("install dashboards: %s is not what Kibana answers: %w", resp.Request.URL.Redacted(), err)
	}
	var errs []error
	for _, e := range answer.Errors {
		errs = append(errs, fmt.Errorf("%s %s: %s %s", e.Type, e.ID, e.Error.Type, e.Error.Message))
	}
	if !answer.Success && len(errs) == 0 {
		errs = append(errs, errors.New("Kibana says no, and not why")) //nolint:staticcheck // its name
	}
	if err := errors.Join(errs...); err != nil {
		return answer.SuccessCount, fmt.Errorf("install dashboards: %d were taken: %w", answer.SuccessCount, err)
	}
	return answer.SuccessCount, nil
}
