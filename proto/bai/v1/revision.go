// Package baiv1 is what a user may ask of the platform, and what it answers.
package baiv1

// Revision is what this release understands of the API: GetVersionResponse says
// it for a server. Within bai.v1 it only grows, by one with every addition to
// what a client may ask, and nothing that an older one understood is ever taken
// away:
//
//	1  RunService: SubmitRun, GetRun, ListRuns, WatchRun, CancelRun, StreamLogs,
//	   QueryMetrics, GetVersion
//	2  DescriptorService; overrides, origination and rerun_of of SubmitRun; text
//	   and order of ListRuns; since of StreamLogs; filter, since and until of
//	   QueryMetrics; ListArtifacts, GetArtifact; REST beside gRPC
//	3  ScriptService; script_sha256 of SubmitRun; with_script of RenderDescriptor;
//	   ScheduleService; schedule_id of SubmitRun's answer and of ListRuns; ResultService;
//	   DataService; PreflightService
//	4  TransferService
//	5  search of StreamLogs
//	6  with_script of PreflightDescriptor; framework, framework_version and data_id
//	   of ListRuns
//	7  the table sweep, and set_id of SubmitRun's answer; SetService, with the results of
//	   sets; set_id and cell of ListRuns
//	8  sets: stop_when, rerun, estimated end, schedule_id of ListSets; schedules with a table
//	   sweep, cancel_runs of DeleteSchedule
//	9  suites in SubmitRun
//	10 AnalysisService; BaselineService
//	11 AlarmService
//	12 ListReceivers and TestReceiver of AlarmService; RankRuns
//	13 compares of SubmitRun
//	14 WatchIncidents of AlarmService
//	15 history of ImportRun
//
// A server ignores fields that it does not know. A client that must be
// understood in something newer than revision 1 sends the revision that it needs
// as RevisionMetadata: a server that is older than this refuses the call with
// FAILED_PRECONDITION instead of doing half of what was asked. Servers of
// revision 1 do not know RevisionMetadata either: for them, GetVersion tells.
const Revision = 15

// RevisionMetadata is the metadata, over HTTP the header, in which a client says
// which revision a call needs: a decimal number. GetVersion answers whatever it
// says.
const RevisionMetadata = "bai-revision"

// UserMetadata is the metadata, over HTTP the header, in which a client says who
// calls: a name, percent-encoded where it is not printable ASCII.
const UserMetadata = "bai-user"
