package data

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// Fault says what is wrong with one field of a request.
type Fault struct {
	Field   string
	Message string
	Remedy  string
}

// Pages of a list.
const (
	defaultPageSize = 50
	maxPageSize     = 1000
)

// Hex digits of digests.
const (
	md5Digits    = 32
	sha256Digits = 64
)

// maxURL is how many bytes a URL can have.
const maxURL = 4096

// pageOf returns after which digest a page begins, and how many it has.
func pageOf(req *baiv1.ListDataRequest) (after string, limit int, fault *Fault) {
	if req.GetPageSize() < 0 {
		return "", 0, &Fault{"page_size", "must be 0 or more", "leave it out"}
	}
	if fault := digest("page_token", req.GetPageToken(), sha256Digits, false); fault != nil {
		return "", 0, &Fault{"page_token", "is not one that this server gave for this list", "leave it empty for the first page"}
	}
	return req.GetPageToken(), min(cmp.Or(int(req.GetPageSize()), defaultPageSize), maxPageSize), nil
}

// paginate returns those of all, which are in order, that come after a digest, and
// the token of the next page.
func paginate(all []Dataset, after string, limit int) (page []Dataset, next string) {
	from, found := slices.BinarySearchFunc(all, after, func(d Dataset, sha256 string) int { return strings.Compare(d.SHA256, sha256) })
	if found {
		from++
	}
	page = all[from:min(from+limit, len(all))]
	if from+len(page) < len(all) {
		next = page[len(page)-1].SHA256
	}
	return page, next
}

// digest says what is wrong with a digest.
func digest(field, text string, digits int, needed bool) *Fault {
	switch {
	case text == "" && !needed:
		return nil
	case len(text) != digits || strings.Trim(text, "0123456789abcdef") != "":
		return &Fault{field, fmt.Sprintf("%.100q is not %d hexadecimal digits in lower case", text, digits), ""}
	}
	return nil
}

// sourceOf returns what a request wants fetched, whether it can be had or not.
func sourceOf(req *baiv1.PrefetchDataRequest) (Source, *Fault) {
	s := Source{URL: req.GetSrc(), MD5: strings.ToLower(req.GetMd5()), SHA256: strings.ToLower(req.GetSha256())}
	switch {
	case s.URL == "":
		return Source{}, &Fault{"src", "is missing", "give the URL of the data"}
	case len(s.URL) > maxURL:
		return Source{}, &Fault{"src", fmt.Sprintf("has %d bytes, %d at most", len(s.URL), maxURL), ""}
	}
	return s, cmp.Or(digest("md5", s.MD5, md5Digits, false), digest("sha256", s.SHA256, sha256Digits, false))
}

// validPrefetchName reports whether a prefetch can have that name.
func validPrefetchName(name string) bool {
	return len(name) < 100 && strings.HasPrefix(name, "prefetch-") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
