package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// residentFilePages returns how many kB of files are in the memory of this process (proc_pid_status(5)).
func residentFilePages(t *testing.T) (kB int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "RssFile:")
	if n, _ := fmt.Sscan(after, &kB); n != 1 {
		t.Skip("this kernel does not say how many pages of files are in the memory of a process")
	}
	return kB
}

func TestThePagesOfTheProgramsFileLeaveTheMemory(t *testing.T) {
	before := residentFilePages(t)
	releasePages()
	if after := residentFilePages(t); after >= before {
		t.Errorf("%d kB of files are in the memory, %d kB before", after, before)
	}
}
