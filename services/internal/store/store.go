// Package store defines the interface to the platform's store: the types, the errors and the contract of the methods that every driver
// implements. A user of the store declares the methods that it needs; the drivers are in the folders below, and package storetest has the
// suite that each of them passes.
//
// Several goroutines and several processes may use a driver at once. All its methods take a context, return early when that ends, and can
// be repeated. Lists take a limit of 1 or more. An error other than those below means that the store cannot be reached, for every caller,
// and that the same call may succeed later.
package store

import "errors"

// Errors that callers can tell apart.
var (
	// ErrNotFound means that the store has no record of that name.
	ErrNotFound = errors.New("not found")
	// ErrExists means that the record to be created exists already.
	ErrExists = errors.New("exists already")
	// ErrConflict means that another writer has changed the record since it was read.
	ErrConflict = errors.New("was changed by somebody else")
	// ErrCursor means that the store did not return this page token or cursor for this query.
	ErrCursor = errors.New("not a cursor of this store")
	// ErrRefused means that the store does not accept the data, now or later: the same call never succeeds.
	ErrRefused = errors.New("refused")
)
