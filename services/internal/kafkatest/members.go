package kafkatest

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// MembersThatDieLeave checks that a broker removes members whose process ends before their group has answered their request to join. It has
// several groups: what becomes of the answer may differ from one to the next. The topic exists, and the least session is a second.
func MembersThatDieLeave(tb testing.TB, addr, topic string) {
	tb.Helper()
	groups := make([]string, 6)
	for i := range groups {
		groups[i] = fmt.Sprint("members", i)
		lives := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{addr}, GroupID: groups[i], Topic: topic, GroupBalancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
			SessionTimeout: time.Second, HeartbeatInterval: 300 * time.Millisecond, RebalanceTimeout: 10 * time.Second,
			MaxWait: 100 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond, Dialer: &kafka.Dialer{ClientID: living},
		})
		tb.Cleanup(func() { _ = lives.Close() })
	}
	livesAlone := func(g kafka.DescribeGroupsResponseGroup) bool {
		return g.GroupState == "Stable" && len(g.Members) == 1 && g.Members[0].ClientID == living
	}
	for _, group := range groups {
		untilGroup(tb, addr, group, livesAlone)
	}
	for _, group := range groups {
		joinAndDie(tb, addr, group, topic)
	}
	for _, group := range groups {
		untilGroup(tb, addr, group, livesAlone)
	}
}

// living is the client ID of members that stay.
const living = "lives"

// joinAndDie asks to join a group, and closes the connection as soon as the group counts its member: it still waits for the other to join
// again.
func joinAndDie(tb testing.TB, addr, group, topic string) {
	tb.Helper()
	conn, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	member := kmsg.NewConsumerMemberMetadata()
	member.Topics = []string{topic}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", member.AppendTo(nil)
	req := kmsg.NewPtrJoinGroupRequest()
	req.SetVersion(2) // later ones tell a member its ID before they count it
	req.Group, req.ProtocolType, req.Protocols = group, "consumer", []kmsg.JoinGroupRequestProtocol{protocol}
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 1000, 10000
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		tb.Fatal(err)
	}
	untilGroup(tb, addr, group, func(g kafka.DescribeGroupsResponseGroup) bool { return len(g.Members) == 2 })
}

// untilGroup waits until a group is as wanted.
func untilGroup(tb testing.TB, addr, group string, as func(kafka.DescribeGroupsResponseGroup) bool) {
	tb.Helper()
	client := &kafka.Client{Addr: kafka.TCP(addr)}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		resp, err := client.DescribeGroups(tb.Context(), &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
		if err != nil {
			tb.Fatal(err)
		}
		if as(resp.Groups[0]) {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("after 3 min group %s is %+v", group, resp.Groups[0])
		}
	}
}
