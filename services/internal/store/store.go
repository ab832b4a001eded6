// Package store is the vocabulary of what the platform remembers: the types,
// the errors and the contract of the verbs that every driver keeps. Who uses
// the store declares the verbs that it needs; the drivers lie in the folders
// below, and package storetest holds the suite that each of them passes.
//
// A driver may be used by several goroutines and several processes at once. All
// its verbs take a context, return what it has when that ends, and can be
// repeated. Lists take a limit of 1 or more. What is not one of the errors below
// means that the store is away, for everybody, and that the same call may succeed
// later.
package store

import "errors"

// Errors that can be told apart.
var (
	// ErrNotFound says that the store has nothing of that name.
	ErrNotFound = errors.New("not found")
	// ErrExists says that what was to be created is there already.
	ErrExists = errors.New("exists already")
	// ErrConflict says that somebody else has changed it since it was read.
	ErrConflict = errors.New("was changed by somebody else")
	// ErrCursor says that a page token or cursor is not one that the store gave
	// for this query.
	ErrCursor = errors.New("not a cursor of this store")
	// ErrRefused says that the store will not have what it was given, now or
	// later: the same call never succeeds.
	ErrRefused = errors.New("refused")
)
