package price

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Table has prices by the name of an instance type, as texts that Parse reads.
type Table map[string]string

// Validate names every price at fault, as one of the settings "prices".
func (t Table) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if _, err := Parse(t[name]); err != nil {
			errs = append(errs, fmt.Errorf("prices.%q: %w", name, err))
		}
		if strings.TrimSpace(name) != name || name == "" {
			errs = append(errs, fmt.Errorf("prices.%q: the name of an instance type has no blanks at its ends, and is not empty", name))
		}
	}
	return errors.Join(errs...)
}

// Of returns the price of an instance type. It is false if there is none, or if its text is no
// price.
func (t Table) Of(instanceType string) (Price, bool) {
	text, found := t[instanceType]
	if !found {
		return Price{}, false
	}
	p, err := Parse(text)
	return p, err == nil
}
