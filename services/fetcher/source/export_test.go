package source

// Rules that are pure but nobody else's business.
var (
	Backoff   = backoff
	Continues = continues
	Resumable = resumable
	After     = after
)
