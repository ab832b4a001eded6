// Package waitready waits until other pods of a run are ready: until each of some
// addresses answers.
package waitready

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Settings list the targets.
type Settings struct {
	Targets   []string      // tcp://host:port, or a URL of HTTP that answers with 200 to 399
	Within    time.Duration // all of them must answer in this time
	Every     time.Duration // between two questions to one
	Timeout   time.Duration // of an answer
	Successes int           // answers in a row
}

// Parse reads a command line.
func Parse(args []string) (Settings, error) {
	flags := flag.NewFlagSet("await", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var s Settings
	flags.DurationVar(&s.Within, "within", 30*time.Minute, "")
	flags.DurationVar(&s.Every, "every", 250*time.Millisecond, "")
	flags.DurationVar(&s.Timeout, "timeout", time.Second, "")
	flags.IntVar(&s.Successes, "successes", 1, "")
	if err := flags.Parse(args); err != nil {
		return s, fmt.Errorf("await: %w", err)
	}
	s.Targets = flags.Args()
	if len(s.Targets) == 0 {
		return s, errors.New("await: nothing to wait for")
	}
	if s.Within <= 0 || s.Every <= 0 || s.Timeout <= 0 || s.Successes < 1 {
		return s, errors.New("await: times and successes must be positive")
	}
	for _, t := range s.Targets {
		if u, err := url.Parse(t); err != nil || u.Host == "" || u.Scheme != "tcp" && u.Scheme != "http" && u.Scheme != "https" {
			return s, fmt.Errorf("await: %q is no address to ask", t)
		}
	}
	return s, nil
}

// maxConcurrent is how many addresses are asked at a time.
const maxConcurrent = 64

// Run returns when every target has succeeded as often as required. Its error lists the
// targets that timed out, and the last answer of the first of them.
func Run(ctx context.Context, s Settings) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	var (
		probes sync.WaitGroup
		slots  = make(chan struct{}, maxConcurrent)
		errs   = make([]error, len(s.Targets))
	)
	for i, t := range s.Targets {
		probes.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = s.waitForTarget(ctx, t)
		})
	}
	probes.Wait()
	unready := 0
	var first error
	for i, err := range errs {
		if err == nil {
			continue
		}
		if unready++; first == nil {
			first = fmt.Errorf("%s: %w", s.Targets[i], err)
		}
	}
	if unready == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d did not answer within %s; the first of them is %w", unready, len(errs), s.Within, first)
}

// waitForTarget waits for one target.
func (s Settings) waitForTarget(ctx context.Context, target string) error {
	successes := 0
	for {
		err := s.probe(ctx, target)
		if err != nil {
			successes = 0
		} else if successes++; successes >= s.Successes {
			return nil
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = ctx.Err()
			}
			return err
		case <-time.After(s.Every):
		}
	}
}

// probe asks a target once.
func (s Settings) probe(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout)
	defer cancel()
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	if u.Scheme == "tcp" {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return err
		}
		return c.Close()
	}
	return probeHTTP(ctx, target)
}

// probeHTTP probes over HTTP, as a kubelet does: it does not verify certificates.
func probeHTTP(ctx context.Context, target string) error {
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
	} //nolint:gosec // a readiness probe
	defer transport.CloseIdleConnections()
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as it matters
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	return nil
}
