package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/benchmark-ai/bai/services/internal/event"
	"github.com/benchmark-ai/bai/services/internal/store"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/client"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/document"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/names"
	"github.com/benchmark-ai/bai/services/internal/store/elastic/schema"
)

// streamRef is one origin of a run in one topic, and its end.
type streamRef struct {
	id string
	document.StreamRecord
}

// streamRefs returns the sources of a run's samples or lines, in order of (attempt, source, topic). An empty topic means both.
func (s *streamStore) streamRefs(ctx context.Context, run, topic string) (all []streamRef, err error) {
	conditions := []any{client.Term("run.id", names.Term(run))}
	if topic != "" {
		conditions = append(conditions, client.Term("topic", topic))
	}
	var after []any
	for {
		hits, err := s.client.Search(ctx, s.client.Index(schema.Sources, names.Partition(run)), client.Search{
			Preference: names.Preference(run), Size: page, Query: client.AllOf(conditions...), After: after,
			Source: []string{"topic", "ended", "origin", "end"},
			Sort:   []any{client.Asc("run.attempt"), client.Asc("source.id"), client.Asc("topic"), client.Asc("ended")},
		})
		if err != nil {
			return nil, err
		}
		if all, err = appendStreamRefs(all, hits); err != nil || len(hits) < page {
			return all, err
		}
		after = nil
		for _, v := range hits[len(hits)-1].Sort {
			after = append(after, v)
		}
	}
}

// appendStreamRefs adds found sources. The document with the end of a source follows the source.
func appendStreamRefs(all []streamRef, hits []client.Hit) ([]streamRef, error) {
	for _, h := range hits {
		var d document.StreamRecord
		if err := json.Unmarshal(h.Source, &d); err != nil {
			return nil, err
		}
		id := d.Origin.StreamID()
		if n := len(all); n > 0 && all[n-1].id == id && all[n-1].Topic == d.Topic {
			all[n-1].End, all[n-1].Ended = d.End, d.Ended
			continue
		}
		all = append(all, streamRef{id, d})
	}
	return all, nil
}

// Streams implements store.Streams.
func (s *streamStore) Streams(ctx context.Context, run string) ([]store.Stream, error) {
	streams, err := s.streams(ctx, run)
	return streams, wrapError(fmt.Sprintf("list streams of run %q", run), err)
}

func (s *streamStore) streams(ctx context.Context, run string) ([]store.Stream, error) {
	sources, err := s.streamRefs(ctx, run, "")
	if err != nil {
		return nil, err
	}
	counts := make(map[string][]client.SearchResult)
	for _, topic := range []string{event.TopicMetrics, event.TopicLogs} {
		if counts[topic], err = s.counts(ctx, run, topic, sources); err != nil {
			return nil, err
		}
	}
	var streams []store.Stream
	for _, src := range sources {
		count := counts[src.Topic]
		counts[src.Topic] = count[2:]
		st := store.Stream{Origin: src.Origin, Topic: src.Topic, Stored: count[0].Hits.Total.Value, End: src.End}
		if st.Last, err = last(count[1]); err != nil {
			return nil, err
		}
		if st.Stored > 0 || st.End != nil {
			streams = append(streams, st)
		}
	}
	return streams, nil
}

// counts requests, for each source of a topic, the number of documents and the last one.
func (s *streamStore) counts(ctx context.Context, run, topic string, sources []streamRef) ([]client.SearchResult, error) {
	var ask []client.Search
	for _, src := range sources {
		if src.Topic == topic {
			of := client.Term("source.id", src.id)
			ask = append(ask, client.Search{Query: of, Track: true},
				client.Search{Size: 1, Query: of, Sort: []any{client.Desc("place"), client.Desc("seq")}, Source: false})
		}
	}
	return s.client.Searches(ctx, s.streamIndex(topic, run), names.Preference(run), ask)
}

// last returns the sequence number of the last document found, -1 if there is none.
func last(f client.SearchResult) (int64, error) {
	hits := f.Hits.Hits
	if len(hits) == 0 {
		return -1, nil
	}
	return strconv.ParseInt(string(hits[len(hits)-1].Sort[1]), 10, 64)
}

// streamIndex returns the index of the samples or lines of a run.
func (s *streamStore) streamIndex(topic, run string) string {
	if topic == event.TopicLogs {
		return s.client.Index(schema.Logs, names.Partition(run))
	}
	return s.client.Index(schema.Metrics, names.Partition(run))
}

// Lines implements store.Streams.
func (s *streamStore) Lines(ctx context.Context, q store.LineQuery, cursor string, limit int) ([]store.Line, string, error) {
	purpose, at, err := s.decodeCursor("lines", q.CursorScope(), cursor, limit)
	if err != nil {
		return nil, "", err
	}
	lines, err := s.lines(ctx, q, cursor == "", at, limit)
	if err != nil {
		return nil, "", wrapError(fmt.Sprintf("read lines of run %q", q.Run), err)
	}
	return lines, at.encode(purpose), nil
}

func (s *streamStore) lines(ctx context.Context, q store.LineQuery, begin bool, at positions, limit int) (lines []store.Line, err error) {
	every, err := s.streamRefs(ctx, q.Run, event.TopicLogs)
	var sources []streamRef
	for _, src := range every {
		if q.Matches(src.Origin) {
			sources = append(sources, src)
		}
	}
	index := s.streamIndex(event.TopicLogs, q.Run)
	if err == nil && begin && q.Last > 0 {
		err = s.seekTail(ctx, index, sources, q, at)
	}
	if err == nil && begin && !q.Since.IsZero() {
		err = s.seekSince(ctx, index, sources, q, at)
	}
	if err != nil {
		return nil, err
	}
	follow := func(src streamRef, p position) client.Search {
		return client.Search{
			Sort: []any{client.Asc("place"), client.Asc("seq")}, Source: withoutTokens,
			Query: client.AllOf(append(afterSeq(src.id, "gt", p.seq), tokenConditions(q.Tokens)...)...),
		}
	}
	take := func(src streamRef, h client.Hit) (position, error) {
		l, err := document.ReadLine(h.Source)
		lines = append(lines, store.Line{Origin: src.Origin, Line: l})
		return position{seq: l.Seq}, err
	}
	err = s.read(ctx, scan{index, q.Run, at, follow, take}, sources, limit)
	return lines, err
}

// withoutTokens excludes the tokens of a line from the answer.
var withoutTokens = client.Object{"excludes": []string{"tokens"}} //nolint:gochecknoglobals // a constant

// tokenConditions finds lines that have all of some tokens.
func tokenConditions(tokens []string) (conditions []any) {
	for _, token := range tokens {
		conditions = append(conditions, client.Term("tokens", names.Term(token)))
	}
	return conditions
}

// afterSeq returns the conditions for the documents of a source after a sequence number, with it or without.
func afterSeq(source, operator string, seq int64) []any {
	return []any{
		client.Term("source.id", source),
		client.Object{"range": client.Object{"place": client.Object{
			"gte": names.SortKey(source, max(seq, 0)),
			"lte": names.LastSortKey(source),
		}}},
		client.Compare("seq", operator, seq),
	}
}

// seekTail moves the spot in each source to before its last lines.
func (s *streamStore) seekTail(ctx context.Context, index string, sources []streamRef, q store.LineQuery, at positions) error {
	for _, src := range sources {
		p, from := position{seq: -1}, []any(nil)
		for remaining := q.Last; remaining > 0; {
			size := min(remaining, page)
			hits, err := s.client.Search(ctx, index, client.Search{
				Preference: names.Preference(q.Run), Size: size,
				Query: client.AllOf(append(afterSeq(src.id, "gte", 0), tokenConditions(q.Tokens)...)...),
				Sort:  []any{client.Desc("place"), client.Desc("seq")}, After: from, Source: false,
			})
			if err != nil {
				return err
			}
			if len(hits) < size { // the source has no more lines
				p.seq = -1
				break
			}
			end := hits[size-1].Sort
			if p.seq, err = strconv.ParseInt(string(end[1]), 10, 64); err != nil {
				return err
			}
			p.seq--
			remaining, from = remaining-size, []any{end[0], end[1]}
		}
		at[streamHash(src.id)] = p
	}
	return nil
}

// seekSince moves the position in each source forward to before its first line of that time or later, or behind its last line if there is
// none.
func (s *streamStore) seekSince(ctx context.Context, index string, sources []streamRef, q store.LineQuery, at positions) error {
	var ask []client.Search
	for _, src := range sources {
		of := afterSeq(src.id, "gte", 0)
		ask = append(ask,
			client.Search{
				Size: 1, Sort: []any{client.Asc("place"), client.Asc("seq")}, Source: false,
				Query: client.AllOf(append(of, client.Compare("@timestamp", "gte", names.Timestamp(names.Nanos(q.Since))))...),
			},
			client.Search{Size: 1, Sort: []any{client.Desc("place"), client.Desc("seq")}, Source: false, Query: client.AllOf(of...)})
	}
	got, err := s.client.Searches(ctx, index, names.Preference(q.Run), ask)
	if err != nil {
		return err
	}
	for i, src := range sources {
		seq, err := last(got[2*i])
		if err == nil && seq < 0 {
			seq, err = last(got[2*i+1])
			seq++
		}
		if err != nil {
			return err
		}
		at[streamHash(src.id)] = position{seq: max(at.at(src.id).seq, seq-1)}
	}
	return nil
}

// Samples implements store.Streams.
func (s *streamStore) Samples(ctx context.Context, q store.SampleQuery, cursor string, limit int) ([]store.Sample, string, error) {
	purpose, at, err := s.decodeCursor("samples", q, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	samples, err := s.samples(ctx, q, at, limit)
	if err != nil {
		return nil, "", wrapError(fmt.Sprintf("read samples of run %q", q.Run), err)
	}
	return samples, at.encode(purpose), nil
}

func (s *streamStore) samples(ctx context.Context, q store.SampleQuery, at positions, limit int) (samples []store.Sample, err error) {
	sources, err := s.streamRefs(ctx, q.Run, event.TopicMetrics)
	if err != nil {
		return nil, err
	}
	only := sampleConditions(q)
	follow := func(src streamRef, p position) client.Search {
		conditions := append(afterSeq(src.id, "gte", p.seq), client.AnyOf(
			client.Compare("seq", "gt", p.seq),
			client.AllOf(client.Equal("seq", p.seq), client.Compare("sub", "gt", p.sub)),
			client.AllOf(client.Equal("seq", p.seq), client.Equal("sub", p.sub), client.Compare("metric.name", "gt", p.name)),
		))
		return client.Search{
			Sort:  []any{client.Asc("place"), client.Asc("seq"), client.Asc("sub"), client.Asc("metric.name")},
			Query: client.AllOf(append(conditions, only...)...),
		}
	}
	take := func(src streamRef, h client.Hit) (position, error) {
		v, err := document.ReadSample(h.Source)
		samples = append(samples, store.Sample{Origin: src.Origin, Sample: v})
		return position{seq: v.Seq, sub: int64(v.Sub), name: names.Term(v.Name)}, err
	}
	err = s.read(ctx, scan{s.streamIndex(event.TopicMetrics, q.Run), q.Run, at, follow, take}, sources, limit)
	return samples, err
}

// sampleConditions are the conditions of a query for samples.
func sampleConditions(q store.SampleQuery) (conditions []any) {
	if len(q.Names) > 0 {
		terms := make([]string, len(q.Names))
		for i, name := range q.Names {
			terms[i] = names.Term(name)
		}
		conditions = append(conditions, client.Terms("metric.name", terms))
	}
	if !q.Since.IsZero() {
		conditions = append(conditions, client.Compare("@timestamp", "gte", names.Timestamp(names.Nanos(q.Since))))
	}
	if !q.Until.IsZero() {
		conditions = append(conditions, client.Compare("@timestamp", "lt", names.Timestamp(names.Nanos(q.Until))))
	}
	return conditions
}

// scan is how documents of an index are read on from a place in each source.
type scan struct {
	index  string
	run    string
	at     positions
	follow func(streamRef, position) client.Search       // the search for the next documents of a source
	take   func(streamRef, client.Hit) (position, error) // takes a document, and returns its position
}

// read passes the next documents to take, one source after the other, up to limit, and moves the positions.
func (s *streamStore) read(ctx context.Context, r scan, sources []streamRef, limit int) error {
	for len(sources) > 0 && limit > 0 {
		some := sources[:min(len(sources), client.MaxSearches)]
		sources = sources[len(some):]
		ask, err := s.sizedSearches(ctx, r, some, limit)
		if err != nil {
			return err
		}
		got, err := s.client.Searches(ctx, r.index, names.Preference(r.run), ask)
		if err != nil {
			return err
		}
		for i, f := range got {
			if err := r.hits(some[i], f.Hits.Hits); err != nil {
				return err
			}
			limit -= len(f.Hits.Hits)
			if ask[i].Size == page { // more of this source may follow, before the next
				return nil
			}
		}
	}
	return nil
}

// hits takes documents of a source.
func (r scan) hits(src streamRef, hits []client.Hit) error {
	for _, h := range hits {
		p, err := r.take(src, h)
		if err != nil {
			return fmt.Errorf("read a document: %w", err)
		}
		r.at[streamHash(src.id)] = p
	}
	return nil
}

// sizedSearches returns the searches for the next documents of each source, as many as fill limit. If there are several sources, it first
// requests their counts, so that no document is read in excess.
func (s *streamStore) sizedSearches(ctx context.Context, r scan, sources []streamRef, limit int) ([]client.Search, error) {
	ask := make([]client.Search, len(sources))
	for i, src := range sources {
		ask[i] = r.follow(src, r.at.at(src.id))
		ask[i].Size = min(limit, page)
	}
	if len(sources) == 1 {
		return ask, nil
	}
	count := make([]client.Search, len(ask))
	for i, q := range ask {
		count[i] = client.Search{Query: q.Query, Track: limit}
	}
	got, err := s.client.Searches(ctx, r.index, names.Preference(r.run), count)
	if err != nil {
		return nil, err
	}
	for i, f := range got {
		ask[i].Size = min(int(f.Hits.Total.Value), limit, page)
		if limit -= ask[i].Size; limit == 0 || ask[i].Size == page {
			return ask[:i+1], nil
		}
	}
	return ask, nil
}
