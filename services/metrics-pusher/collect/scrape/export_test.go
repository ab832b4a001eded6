package scrape

// Instances is instances.
func Instances(urls []string) []string { return instances(urls) }

var (
	Samples = parsePage
	Unit    = unitOf
)

type Rejection = rejection
