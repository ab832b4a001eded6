package results

import (
	"fmt"
	"strconv"
	"strings"
)

// FormatToken returns the token of the page that begins with a cell, after its runs up to an
// inner token.
func FormatToken(cell int, inner string) string { return strconv.Itoa(cell) + "." + inner }

// ParseToken returns the cell with which a page begins, and the token of its runs.
func ParseToken(token string, cells int) (cell int, inner string, err error) {
	if token == "" {
		return 0, "", nil
	}
	first, inner, found := strings.Cut(token, ".")
	cell, err = strconv.Atoi(first)
	if err != nil || !found || cell < 0 || cell >= cells {
		return 0, "", &TokenError{}
	}
	return cell, inner, nil
}

// TokenError refuses a page token that was not given for the cells of a set.
type TokenError struct{}

// Error implements error.
func (*TokenError) Error() string { return "not a page token of this list" }

// SizeError refuses a request for results of a cell that are too large for one response.
type SizeError struct{ Cell string }

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the results of cell %.200q are too large for a response", e.Cell)
}
