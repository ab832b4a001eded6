package program_test

import (
	"strings"
	"testing"

	"github.com/benchmark-ai/bai/services/cmd/internal/program"
	"github.com/benchmark-ai/bai/services/internal/kafka"
	"github.com/benchmark-ai/bai/services/internal/store/elastic"
)

func TestAServiceHasOneStore(t *testing.T) {
	addresses := elastic.Settings{Addresses: []string{"http://127.0.0.1:9200"}}
	for name, tt := range map[string]struct {
		settings program.Settings
		want     string
	}{
		"a file of SQLite":   {program.Settings{Store: "store.db"}, ""},
		"Elasticsearch":      {program.Settings{Elasticsearch: addresses}, ""},
		"none":               {program.Settings{}, "store: the path of the SQLite file is needed, or elasticsearch.addresses"},
		"both":               {program.Settings{Store: "store.db", Elasticsearch: addresses}, "there is one store"},
		"one that is no URL": {program.Settings{Elasticsearch: elastic.Settings{Addresses: []string{"here"}}}, "elasticsearch.addresses"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.settings.Kafka = kafka.Settings{Brokers: []string{"127.0.0.1:9092"}, KeyFile: "key"}
			err := tt.settings.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Validate: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAServiceNeedsTheKeyByWhichRunsAreTold(t *testing.T) {
	for name, tt := range map[string]struct {
		mute bool
		file string
		want string
	}{
		"with a key":                            {false, "key", ""},
		"without one":                           {false, "", "kafka.key_file: is needed: without the platform's key nobody can tell which run a pod may speak for. Make one with 'openssl rand -hex 32', and give all services the same"},
		"what speaks to no broker needs it not": {true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := program.Settings{Store: "store.db", NoBus: tt.mute, Kafka: kafka.Settings{Brokers: []string{"127.0.0.1:9092"}, KeyFile: tt.file}}
			got := ""
			if err := s.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Validate: %q, want %q", got, tt.want)
			}
		})
	}
}
