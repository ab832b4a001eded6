//go:build race

package main_test

// raceFlags make baictl look for races as its test does.
func raceFlags() []string { return []string{"-race"} }
