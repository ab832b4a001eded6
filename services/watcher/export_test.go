package watcher

// The rules that tests of this package check.
var EventsFor = eventsFor
