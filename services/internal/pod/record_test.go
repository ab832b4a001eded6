package pod_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/pod"
)

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	records := []pod.Record{
		{Time: 1, Data: []byte("hello\nwor")},
		{Err: true, Time: -1, Data: []byte{}},
		{Time: 1 << 62, Data: bytes.Repeat([]byte{0xff}, pod.MaxRecord)},
	}
	var file []byte
	for _, r := range records {
		file = pod.AppendRecord(file, r)
	}
	for _, want := range records {
		got, n, err := pod.ReadRecord(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		file = file[n:]
	}
	if len(file) != 0 {
		t.Errorf("%d bytes are left over", len(file))
	}
}

func TestARecordThatIsNotWholeYetIsWaitedFor(t *testing.T) {
	whole := pod.AppendRecord(nil, pod.Record{Time: 5, Data: []byte("hello")})
	for i := range whole {
		if _, n, err := pod.ReadRecord(whole[:i]); n != 0 || err != nil {
			t.Errorf("%d of %d bytes: read %d, %v, want none", i, len(whole), n, err)
		}
	}
}

func TestWhatIsNoRecordIsSaidToBeNone(t *testing.T) {
	for name, b := range map[string][]byte{
		"a length beyond the most": {1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"a stream that is neither": {1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0},
		"no stream":                make([]byte, 64),
		"text":                     []byte("hello, world, this is no record"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := pod.ReadRecord(b); !errors.Is(err, pod.ErrRecord) {
				t.Errorf("ReadRecord: %v, want %v", err, pod.ErrRecord)
			}
		})
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add(pod.AppendRecord(nil, pod.Record{Err: true, Time: 5, Data: []byte("hello")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, n, err := pod.ReadRecord(b)
		if err != nil || n == 0 {
			return
		}
		if !bytes.Equal(pod.AppendRecord(nil, r), b[:n]) {
			t.Errorf("%x reads as %+v, which is written otherwise", b[:n], r)
		}
	})
}
