// Command receiver is as much of Prometheus as takes remote writes: its own
// handler of these, over its own storage. It prints where it listens, and answers
// GET /samples with all that it has.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, err := tsdb.Open(dir, log, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /api/v1/write",
		remote.NewWriteHandler(log, prometheus.NewRegistry(), db, remoteapi.MessageTypes{remoteapi.WriteV1MessageType}, false, false,
			false))
	mux.HandleFunc("GET /samples", func(w http.ResponseWriter, r *http.Request) {
		all, err := samples(r.Context(), db)
		if err == nil {
			err = json.NewEncoder(w).Encode(all)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	fmt.Println(l.Addr())
	return http.Serve(l, mux)
}

// sample is one, its value as the bits of it: JSON has no NaN.
type sample struct {
	Labels map[string]string
	MS     int64
	Bits   uint64
}

func samples(ctx context.Context, db *tsdb.DB) (all []sample, err error) {
	q, err := db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	set := q.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		s := set.At()
		it := s.Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			ms, v := it.At()
			all = append(all, sample{s.Labels().Map(), ms, math.Float64bits(v)})
		}
		if err := it.Err(); err != nil {
			return nil, err
		}
	}
	return all, set.Err()
}
