package request

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// Time returns t as a time.Time, or the zero time if t is nil.
func Time(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
