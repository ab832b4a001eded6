package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/benchmark-ai/bai/services/analyst/notice"
)

// maxCheckPages is how many pages of check runs of one name are read: GitHub keeps 1,000 of them.
const maxCheckPages = 10

// checkRun is a check run of a commit, as the API takes it and has it.
type checkRun struct {
	ID         int64       `json:"id,omitempty"`
	Name       string      `json:"name"`
	HeadSHA    string      `json:"head_sha,omitempty"`
	ExternalID string      `json:"external_id"`
	DetailsURL string      `json:"details_url,omitempty"`
	Status     string      `json:"status"`
	Conclusion string      `json:"conclusion"`
	Output     checkOutput `json:"output"`
	App        *checkApp   `json:"app,omitempty"`
}

// checkOutput is what a check run says, in Markdown.
type checkOutput struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
}

// checkApp is the App that made a check run.
type checkApp struct {
	Slug string `json:"slug"`
}

// check writes what a notice says of a task into the check run of the commit, and says what it did.
func (r *Receiver) check(ctx context.Context, t target, receiver string, c check) (did string, err error) {
	is, found, err := r.findCheck(ctx, t, c)
	if err != nil {
		return "", err
	}
	next := c.after(is, receiver)
	did = "check run " + next.Conclusion + " of " + t.commit[:8]
	path := "/repos/" + t.repository + "/check-runs"
	switch {
	case !found:
		next.HeadSHA = t.commit
		return did, r.call(ctx, http.MethodPost, path, next, nil)
	case is.Output == next.Output && is.Conclusion == next.Conclusion:
		return did + " has it", nil
	}
	return "edited the " + did, r.call(ctx, http.MethodPatch, path+"/"+strconv.FormatInt(is.ID, 10), next, nil)
}

// findCheck returns the check run of a commit and a task that the App has made.
func (r *Receiver) findCheck(ctx context.Context, t target, c check) (is checkRun, found bool, err error) {
	for page := 1; page <= maxCheckPages; page++ {
		var all struct {
			Runs []checkRun `json:"check_runs"`
		}
		path := fmt.Sprintf("/repos/%s/commits/%s/check-runs?check_name=%s&filter=all&per_page=%d&page=%d",
			t.repository, t.commit, url.QueryEscape(c.name), pageSize, page)
		if err := r.call(ctx, http.MethodGet, path, nil, &all); err != nil {
			return is, false, err
		}
		for _, one := range all.Runs {
			if one.ExternalID == c.id && one.App != nil && strings.EqualFold(one.App.Slug+botSuffix, r.settings.Account) {
				return one, true, nil
			}
		}
		if len(all.Runs) < pageSize {
			break
		}
	}
	return is, false, nil
}

// checks writes a notice into the check runs of a commit, one for each task, and says what it did.
func (r *Receiver) checks(ctx context.Context, t target, n notice.Notice) (did []string, err error) {
	for _, c := range checksOf(n) {
		one, err := r.check(ctx, t, n.Receiver, c)
		if err != nil {
			return nil, err
		}
		did = append(did, one)
	}
	return did, nil
}
