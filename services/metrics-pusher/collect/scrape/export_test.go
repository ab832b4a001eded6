package scrape

// Instances is instances.
func Instances(urls []string) []string { return instances(urls) }
