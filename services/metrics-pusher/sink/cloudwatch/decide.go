package cloudwatch

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/benchmark-ai/bai/services/internal/event"
)

// Limits of CloudWatch.
const (
	maxData   = 1000      // data of a request
	maxBytes  = 900 << 10 // of a request, about
	maxValues = 150       // different values of a datum
	maxText   = 255       // characters of a name
	maxLength = 1024      // of a dimension's value
	maxAge    = 14 * 24 * time.Hour
	maxFuture = 2 * time.Hour // ahead
)

// datum has the values of one series in one period, each with its count.
type datum struct {
	name       string
	dimensions [][2]string
	unit       types.StandardUnit
	at         int64 // s since 1970
	values     map[float64][]sampleID
}

// sampleID tells a sample from all others.
type sampleID struct {
	stream string
	seq    int64
	sub    int
	name   string
}

// sampleIDs returns the IDs of all samples of a batch.
func sampleIDs(b *event.Metrics) []sampleID {
	stream, all := b.Stream.ID(b.Run, b.Attempt), make([]sampleID, len(b.Samples))
	for i := range b.Samples {
		v := &b.Samples[i]
		all[i] = sampleID{stream, v.Seq, v.Sub, v.Name}
	}
	return all
}

// gather returns the samples of batches that CloudWatch can take and that are not in has, by series and period, in the order of time, and
// the number of samples that it cannot take: those that are no number, too large, too old, or too far in the future.
func gather(batches []event.Metrics, has map[sampleID]bool, names []string, step int64, now time.Time) (all []*datum, refused int) {
	byKey := make(map[string]*datum)
	for i := range batches {
		b := &batches[i]
		for j, id := range sampleIDs(b) {
			v := &b.Samples[j]
			at := time.Unix(0, v.Time)
			if x := v.Float(); math.IsNaN(x) || math.Abs(x) > math.Ldexp(1, 360) || at.Before(now.Add(-maxAge)) ||
				at.After(now.Add(maxFuture)) {
				refused++
				continue
			}
			if has[id] {
				continue
			}
			d := datum{name: ascii(v.Name, maxText), dimensions: dimensions(b, v, names), unit: unit(v.Unit), at: at.Unix() / step * step}
			key := d.key()
			existing := byKey[key]
			if existing == nil {
				d.values = make(map[float64][]sampleID)
				existing = &d
				byKey[key], all = existing, append(all, existing)
			}
			existing.values[v.Float()] = append(existing.values[v.Float()], id)
		}
	}
	slices.SortStableFunc(all, func(a, b *datum) int { return cmp.Compare(a.at, b.at) })
	return all, refused
}

func (d *datum) key() string {
	text := []string{d.name, string(d.unit), strconv.FormatInt(d.at, 10)}
	for _, p := range d.dimensions {
		text = append(text, p[0], p[1])
	}
	return strings.Join(text, "\x00")
}

// dimensions returns the named dimensions of a sample that have a value.
func dimensions(b *event.Metrics, v *event.Sample, names []string) (out [][2]string) {
	for _, name := range names {
		var value string
		switch name {
		case "namespace":
			value = b.Namespace
		case "owner":
			value = b.Owner
		case "run":
			value = b.Run
		case "set":
			value = b.Set
		case "attempt":
			value = strconv.Itoa(b.Attempt)
		case "role":
			value = b.Stream.Role
		case "index":
			value = strconv.Itoa(b.Stream.Index)
		case "container":
			value = b.Stream.Container
		case "stream":
			value = b.Stream.Kind
		default:
			value = v.Labels[strings.TrimPrefix(name, labels)]
		}
		if value = strings.TrimSpace(ascii(value, maxLength)); value != "" {
			out = append(out, [2]string{ascii(strings.TrimPrefix(name, labels), maxText), value})
		}
	}
	return out
}

// labels is the prefix of the name of a dimension that is a label of samples.
const labels = "labels."

// ascii returns text with a question mark in place of each character that CloudWatch does not take, cut to most characters.
func ascii(text string, most int) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return clean[:min(len(clean), most)]
}

// unit returns CloudWatch's name of a unit, None if it has none.
func unit(text string) types.StandardUnit {
	words := map[string]types.StandardUnit{
		"s": types.StandardUnitSeconds, "ms": types.StandardUnitMilliseconds, "us": types.StandardUnitMicroseconds,
		"µs": types.StandardUnitMicroseconds,
		"%":  types.StandardUnitPercent, "B": types.StandardUnitBytes, "bytes": types.StandardUnitBytes, "kB": types.StandardUnitKilobytes,
		"MB": types.StandardUnitMegabytes, "GB": types.StandardUnitGigabytes, "B/s": types.StandardUnitBytesSecond,
		"kB/s": types.StandardUnitKilobytesSecond,
		"MB/s": types.StandardUnitMegabytesSecond, "GB/s": types.StandardUnitGigabytesSecond, "1/s": types.StandardUnitCountSecond,
	}
	return cmp.Or(words[text], types.StandardUnitNone)
}

// data returns the data in CloudWatch's form, and for each its samples.
func data(all []*datum, resolution int32) (out []types.MetricDatum, samples [][]sampleID) {
	for _, d := range all {
		values := make([]float64, 0, len(d.values))
		for v := range d.values {
			values = append(values, v)
		}
		slices.Sort(values)
		for some := range slices.Chunk(values, maxValues) {
			one, ids := types.MetricDatum{
				MetricName: aws.String(d.name), Timestamp: aws.Time(time.Unix(d.at, 0).UTC()), Unit: d.unit,
				StorageResolution: aws.Int32(resolution), Values: some,
			}, []sampleID(nil)
			for _, v := range some {
				one.Counts = append(one.Counts, float64(len(d.values[v])))
				ids = append(ids, d.values[v]...)
			}
			for _, p := range d.dimensions {
				one.Dimensions = append(one.Dimensions, types.Dimension{Name: aws.String(p[0]), Value: aws.String(p[1])})
			}
			out, samples = append(out, one), append(samples, ids)
		}
	}
	return out, samples
}

// pieces returns how many data go into each request.
func pieces(all []types.MetricDatum) (sizes []int) {
	size, n := 0, 0
	for _, d := range all {
		weight := 200 + len(*d.MetricName) + 60*len(d.Values)
		for _, p := range d.Dimensions {
			weight += 80 + len(*p.Name) + len(*p.Value)
		}
		if n == maxData || n > 0 && size+weight > maxBytes {
			sizes, size, n = append(sizes, n), 0, 0
		}
		size, n = size+weight, n+1
	}
	if n > 0 {
		sizes = append(sizes, n)
	}
	return sizes
}
