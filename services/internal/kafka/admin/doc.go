// Package admin does what an operator does at the brokers of the platform: it
// makes topics and gives rights, and looks after dead letters.
package admin
