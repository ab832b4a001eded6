package admin_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/kafka/access"
	"github.com/benchmark-ai/bai/services/internal/kafka/admin"
)

func TestAPlanIsWhatLiesBetweenWhatIsAndWhatIsToBe(t *testing.T) {
	topic := kafka.Topic{Name: "bai.logs", Partitions: 6, Replication: 3, Configs: map[string]string{"retention.ms": "60000"}}
	with := func(change func(*kafka.Topic)) admin.State {
		is := topic
		is.Configs = map[string]string{"retention.ms": "60000", "segment.bytes": "1"}
		change(&is)
		return admin.State{Topics: map[string]kafka.Topic{is.Name: is}}
	}
	rights := access.Principals{"pods": {"User:p"}}.ACLs()
	guarded := func(more ...admin.Rule) admin.State {
		s := with(func(*kafka.Topic) {})
		for _, r := range rights {
			s.ACLs = append(s.ACLs, admin.Rule{ACL: r})
		}
		s.ACLs = append(s.ACLs, more...)
		return s
	}
	rule := func(principal, name, operation string) admin.Rule {
		return admin.Rule{ACL: access.ACL{Principal: principal, Resource: "topic", Name: name, Operation: operation}}
	}
	denied := func(r admin.Rule) admin.Rule { r.Deny = true; return r }
	fromHost := func(r admin.Rule) admin.Rule { r.Host = "10.0.0.1"; return r }
	prefixed := func(r admin.Rule) admin.Rule { r.Prefixed = true; return r }
	onlyOneHost := guarded()
	for i := range onlyOneHost.ACLs {
		onlyOneHost.ACLs[i] = fromHost(onlyOneHost.ACLs[i])
	}
	for name, tt := range map[string]struct {
		have   admin.State
		rights []access.ACL
		want   []string
		empty  bool
	}{
		"a topic that is not there is made": {
			have: admin.State{}, want: []string{"+ topic bai.logs, 6 partitions, 3 copies, retention.ms=60000"},
		},
		"a topic that is as it is to be stays, with what else was set": {
			have: with(func(*kafka.Topic) {}), empty: true,
		},
		"a setting that differs is changed": {
			have: with(func(is *kafka.Topic) { is.Configs["retention.ms"] = "1" }), want: []string{"~ topic bai.logs: retention.ms 1 -> 60000"},
		},
		"partitions are added on purpose only": {
			have: with(func(is *kafka.Topic) { is.Partitions = 2 }),
			want: []string{"~ topic bai.logs: 2 -> 6 partitions, with --grow only and while no run is under way: events of one run would lie in two partitions"},
		},
		"partitions cannot be taken away": {
			have: with(func(is *kafka.Topic) { is.Partitions = 12 }), empty: true,
			want: []string{"! topic bai.logs has 12 partitions, and kafka.topics wants 6: no broker can take partitions away, so leave it or say 12"},
		},
		"copies are people's to change": {
			have: with(func(is *kafka.Topic) { is.Replication = 1 }), empty: true,
			want: []string{"! topic bai.logs has 1 copy, and kafka.topics wants 3: kafka-reassign-partitions.sh of the brokers changes that"},
		},
		"rights that are missing are given": {
			have: with(func(*kafka.Topic) {}), rights: rights,
			want: []string{"+ User:p may write topic bai.logs", "+ User:p may write topic bai.metrics", "+ User:p may write topic bai.status"},
		},
		"rights that are there are not given again": {have: guarded(), rights: rights, empty: true},
		"a right to everything is a right to one": {
			have: guarded(prefixed(rule("User:p", "bai.", "All"))), rights: rights, empty: true,
			want: []string{"! User:p may all topic bai.*, which it does not need: kafka-acls.sh --remove takes that away"},
		},
		"pods that may end runs are told of": {
			have: guarded(rule("User:p", "bai.finished", "Write")), rights: rights, empty: true,
			want: []string{"! User:p may write topic bai.finished, which it does not need: kafka-acls.sh --remove takes that away"},
		},
		"rights of others are theirs": {
			have: guarded(rule("User:q", "bai.finished", "Write")), rights: rights, empty: true,
		},
		"rights of one host are given to all": {
			have: onlyOneHost, rights: rights,
			want: []string{"+ User:p may write topic bai.logs", "+ User:p may write topic bai.metrics", "+ User:p may write topic bai.status"},
		},
		"pods of one host that may end runs are told of": {
			have: guarded(fromHost(rule("User:p", "bai.finished", "Write"))), rights: rights, empty: true,
			want: []string{"! User:p may write topic bai.finished from host 10.0.0.1, which it does not need: kafka-acls.sh --remove takes that away"},
		},
		"a denial of what is needed is told of": {
			have: guarded(denied(rule("User:p", "bai.logs", "Write")), denied(fromHost(rule("User:*", "*", "All"))),
				denied(prefixed(rule("User:p", "bai.", "Describe"))), denied(rule("User:p", "bai.finished", "Write")),
				denied(rule("User:p", "bai.logs", "Read")), denied(rule("User:q", "bai.logs", "Write"))), rights: rights, empty: true,
			want: []string{
				"! User:p may not write topic bai.logs, and a denial outweighs the rights that are needed: kafka-acls.sh --remove takes it away",
				"! User:* may not all topic * from host 10.0.0.1, and a denial outweighs the rights that are needed: kafka-acls.sh --remove takes it away",
				"! User:p may not describe topic bai.*, and a denial outweighs the rights that are needed: kafka-acls.sh --remove takes it away",
			},
		},
		"brokers that check nothing are told of": {
			have: admin.State{Topics: with(func(*kafka.Topic) {}).Topics, ACLsDisabled: true}, rights: rights, empty: true,
			want: []string{"! the brokers check no rights, so that whoever reaches them can end any run: set authorizer.class.name, and listeners that ask who speaks"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := admin.Decide([]kafka.Topic{topic}, tt.rights, tt.have)
			if d := cmp.Diff(tt.want, p.Lines()); d != "" {
				t.Error(d)
			}
			if p.Empty() != tt.empty {
				t.Errorf("empty: %t, want %t", p.Empty(), tt.empty)
			}
		})
	}
}
