package broker

import (
	"testing"
)

func TestABrokerThatAsksNobodyListensOnThisMachineAlone(t *testing.T) {
	t.Parallel()
	all := []User{{Name: "bai", Password: "secret", Superuser: true}}
	tests := map[string]struct {
		addr, host string
		users      []User
		refused    bool
	}{
		"by default":                              {"", "", nil, false},
		"at an address of loopback":               {"", "127.0.0.1", nil, false},
		"at another of loopback":                  {"127.8.9.1:9092", "", nil, false},
		"at that of IPv6":                         {"[::1]:9092", "", nil, false},
		"at localhost":                            {"localhost:9092", "", nil, false},
		"at every address":                        {"0.0.0.0:9092", "", nil, true},
		"at every address of IPv6":                {"[::]:9092", "", nil, true},
		"at a port alone, which is every address": {":9092", "", nil, true},
		"at an address of the machine":            {"", "192.0.2.7", nil, true},
		"at a name":                               {"bench.example:9092", "", nil, true},
		"at every address, to users":              {"0.0.0.0:9092", "", all, false},
		"to users without a password":             {"", "", []User{{Name: "bai", Superuser: true}}, true},
		"to nobody who may do everything":         {"", "", []User{{Name: "pods", Password: "secret"}}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := refuseOpen(tt.addr, tt.host, tt.users); err != nil != tt.refused {
				t.Errorf("refused: %v, want %t", err, tt.refused)
			}
		})
	}
}
