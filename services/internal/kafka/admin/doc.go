// Package admin has the operator's tasks at the brokers of the platform: it creates topics, grants rights, and inspects and replays dead
// letters.
package admin
