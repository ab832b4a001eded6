package store

// Notifier is the part of a store that can say at once that it was written to.
type Notifier interface {
	// Changed returns a channel that is closed soon after the record, the
	// samples or the lines of run are next written by a user of this store in
	// this process, and perhaps for nothing. An empty run means any. Get the
	// channel, look at the store, then wait: nothing is missed. Writes by other
	// processes close nothing, so who follows also looks from time to time.
	Changed(run string) <-chan struct{}
}
