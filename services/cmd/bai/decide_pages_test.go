package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyPagesThatAreAsInTheFileAreLetGo(t *testing.T) {
	t.Parallel()
	const smaps = `00401000-0351f000 r-xp 00001000 fe:00 123  /usr/bin/bai
Size:              50296 kB
Rss:               31440 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
0351f000-06a00000 r--p 0311f000 fe:00 123  /usr/bin/bai
Rss:               32024 kB
Anonymous:             4 kB
06a00000-06b00000 rw-p 06600000 fe:00 123  /usr/bin/bai
Rss:                 980 kB
Anonymous:             0 kB
06c00000-06d00000 r--p 06700000 fe:00 123  /usr/bin/bai
Rss:                  12 kB
Anonymous:             0 kB
c000000000-c004000000 rw-p 00000000 00:00 0
Anonymous:         55224 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 77  /usr/lib/libc.so.6
Anonymous:             0 kB
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0  [vdso]
Anonymous:             0 kB
`
	want := []mapping{{0x401000, 0x351f000}, {0x6c00000, 0x6d00000}}
	if d := cmp.Diff(want, readOnlyMappings(smaps, "/usr/bin/bai"), cmp.AllowUnexported(mapping{})); d != "" {
		t.Error(d)
	}
}
