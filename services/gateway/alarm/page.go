package alarm

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/benchmark-ai/bai/services/internal/store"
)

// position is where a document lies in a list: the newest first, those of one time by key.
type position struct {
	at  time.Time
	key string
}

func (p position) compare(other position) int {
	return cmp.Or(other.at.Compare(p.at), strings.Compare(p.key, other.key))
}

// token returns the page token of the page behind a position.
func (p position) token() string { return p.at.UTC().Format(time.RFC3339Nano) + " " + p.key }

// parseToken returns the position behind which a page begins; nil for the first page.
func parseToken(token string) (*position, error) {
	if token == "" {
		return nil, nil //nolint:nilnil // the first page begins behind no document
	}
	at, key, ok := strings.Cut(token, " ")
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || !ok {
		return nil, &FieldError{
			Field: "page_token", Message: "is not one that this server gave",
			Remedy: "leave it empty for the first page",
		}
	}
	return &position{at: t, key: key}, nil
}

// listed is a document of a list.
type listed[T any] struct {
	position

	value T
}

// newest returns a page of the documents that are wanted, and the token of the next page. It
// keeps one page in memory. A time of a document never changes.
func newest[T any](
	all iter.Seq2[store.Document[T], error], at func(T) time.Time, wanted func(T) bool, p Page,
) (page []T, next string, err error) {
	after, err := parseToken(p.Token)
	if err != nil {
		return nil, "", err
	}
	var found []listed[T]
	for d, err := range all {
		if err != nil {
			return nil, "", err
		}
		one := listed[T]{position{at(d.Value), d.Key}, d.Value}
		if after != nil && one.compare(*after) <= 0 || !wanted(d.Value) {
			continue
		}
		i, _ := slices.BinarySearchFunc(found, one, func(a, b listed[T]) int { return a.compare(b.position) })
		if i > p.Size {
			continue
		}
		found = slices.Insert(found, i, one)
		found = found[:min(len(found), p.Size+1)]
	}
	if len(found) > p.Size {
		found = found[:p.Size]
		next = found[p.Size-1].token()
	}
	for _, one := range found {
		page = append(page, one.value)
	}
	return page, next, nil
}
