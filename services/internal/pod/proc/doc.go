// Package proc starts processes and collects their exits, as the first process of a
// container or a pod has to: it also reaps processes that it did not start. It works on
// Linux only.
package proc
