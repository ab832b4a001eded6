package store

// Notifier is the part of a store that reports writes at once.
type Notifier interface {
	// Changed returns a channel that is closed soon after a user of this store in this process next writes the record, the samples or the
	// lines of run. It may also be closed without a write. An empty run means any. Get the channel, read the store, then wait: no write is
	// missed. Writes by other processes close no channel, so that a follower also has to read the store from time to time.
	Changed(run string) <-chan struct{}
}
