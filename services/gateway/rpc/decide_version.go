package rpc

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baiv1 "github.com/benchmark-ai/bai/proto/bai/v1"
)

// updateHint is the remedy for a client that is newer than the server.
const updateHint = "update the server, or use the client of its release"

// describe returns the server's version and its revision of the API, for messages.
func (v Version) describe() string {
	return fmt.Sprintf("this server is %s and understands revision %d of the API", v.Version, baiv1.Revision)
}

// checkRevision refuses a call that needs a newer revision of the API than this server
// has; needs has the revisions that the client asks for.
func (v Version) checkRevision(method string, needs []string) error {
	if method == baiv1.RunService_GetVersion_FullMethodName {
		return nil
	}
	for _, text := range needs {
		need, err := strconv.Atoi(text)
		if err != nil || need < 1 {
			return InvalidArgument(baiv1.RevisionMetadata, fmt.Sprintf("is %.40q, not the number of a revision", text),
				"leave it out where any will do")
		}
		if need > baiv1.Revision {
			return status.Errorf(codes.FailedPrecondition, "the client needs revision %d of the API, but %s: %s",
				need, v.describe(), updateHint)
		}
	}
	return nil
}

// unknownMethod returns the answer to a call of a method that this server does not
// have.
func (v Version) unknownMethod(method string) error {
	return status.Errorf(codes.Unimplemented, "%s does not exist here: %s: %s", method, v.describe(), updateHint)
}
