package judge_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/services/analyst/judge"
)

// rankedCell has the fields of a judge.RankedCell that a test compares.
type rankedCell struct {
	Index, Lacking int
	Best           bool
}

func rankedCells(r judge.Ranking) (all []rankedCell) {
	for _, c := range r.Cells {
		all = append(all, rankedCell{c.Index, c.Lacking, c.Best})
	}
	return all
}

// around returns 7 values around a median.
func around(median float64) []float64 {
	return []float64{median - 3, median - 2, median - 1, median, median + 1, median + 2, median + 3}
}

func TestRank(t *testing.T) {
	few := []float64{1000, 1000, 1000}
	tests := map[string]struct {
		direction judge.Direction
		cells     [][]float64
		needed    int
		want      []rankedCell
	}{
		"the largest median comes first if higher is better": {
			judge.Higher,
			[][]float64{around(10), around(50), around(30)},
			5,
			[]rankedCell{{Index: 1, Best: true}, {Index: 2}, {Index: 0}},
		},
		"the smallest median comes first if lower is better": {
			judge.Lower,
			[][]float64{around(10), around(50), around(30)},
			5,
			[]rankedCell{{Index: 0, Best: true}, {Index: 2}, {Index: 1}},
		},
		"a cell that cannot be told from the first one is among the best": {
			judge.Higher,
			[][]float64{around(10), around(50), around(51)},
			5,
			[]rankedCell{{Index: 2, Best: true}, {Index: 1, Best: true}, {Index: 0}},
		},
		"cells with equal medians are in the order of the input": {
			judge.Lower,
			[][]float64{around(5), around(5), around(5)},
			5,
			[]rankedCell{{Index: 0, Best: true}, {Index: 1, Best: true}, {Index: 2, Best: true}},
		},
		"cells with too few repetitions come last and are not compared": {
			judge.Higher,
			[][]float64{few, around(10), nil, around(50)},
			4,
			[]rankedCell{{Index: 3, Best: true}, {Index: 1}, {Index: 0, Lacking: 1}, {Index: 2, Lacking: 4}},
		},
		"the adjustment for many comparisons takes more repetitions": {
			judge.Higher,
			[][]float64{around(0)[:5], around(100)[:5], around(200)[:5], around(300)[:5], around(400)[:5]},
			6,
			[]rankedCell{{Index: 4, Best: true}, {Index: 3, Best: true}, {Index: 2, Best: true}, {Index: 1, Best: true}, {Index: 0, Best: true}},
		},
		"one cell is the best": {
			judge.Higher, [][]float64{around(1)}, 4, []rankedCell{{Index: 0, Best: true}},
		},
		"without cells none is the best": {
			judge.Higher, nil, 4, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := newJudge(t).Rank(tt.direction, tt.cells)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, rankedCells(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Needed != tt.needed {
				t.Errorf("%d repetitions are needed, want %d", got.Needed, tt.needed)
			}
		})
	}
}

func TestWithoutADirectionNoCellIsTheBest(t *testing.T) {
	if _, err := newJudge(t).Rank("", [][]float64{around(1)}); !errors.Is(err, judge.ErrNoDirection) {
		t.Errorf("the error is %v", err)
	}
}

func TestPValuesAreAdjustedByHolm(t *testing.T) {
	cells := [][]float64{{10, 11, 12, 13, 14, 15}, {6.5, 7.5, 8.5, 9.5, 10.5, 11.5}, {0, 1, 2, 3, 4, 5}}
	j := newJudge(t)
	r, err := j.Rank(judge.Higher, cells)
	if err != nil {
		t.Fatal(err)
	}
	p01 := j.Compare("", cells[0], cells[1]).P
	p02 := j.Compare("", cells[0], cells[2]).P
	p12 := j.Compare("", cells[1], cells[2]).P
	if p02 != p12 || p02 >= p01 {
		t.Fatalf("the p-values are %v, %v and %v", p01, p02, p12)
	}
	got := []float64{r.Cells[0].P, r.Cells[1].P, r.Cells[2].P}
	if diff := cmp.Diff([]float64{1, p01, 3 * p02}, got, almost); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPValuesOfARankingAreThoseOfComparisons(t *testing.T) {
	r, j := seeded(7), newJudge(t)
	for i := range 300 {
		unit := []float64{0, 0.5, 2}[i%3]
		x, y := rounded(normal(r, 4+i%9, 0), unit), rounded(normal(r, 4+i%7, float64(i%6)), unit)
		got, err := j.Rank(judge.Higher, [][]float64{x, y})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(j.Compare("", x, y).P, got.Cells[1].P, almost); diff != "" {
			t.Errorf("%v and %v (-comparison +ranking):\n%s", x, y, diff)
		}
	}
}

func TestManyCellsAreRankedByComparisonsWithTheFirst(t *testing.T) {
	r := seeded(5)
	cells := make([][]float64, 2000)
	for i := range cells {
		cells[i] = normal(r, 15, 10*math.Floor(float64(i)/1000))
	}
	got, err := newJudge(t).Rank(judge.Lower, cells)
	if err != nil {
		t.Fatal(err)
	}
	for at, c := range got.Cells {
		if (c.Index < 1000) != c.Best {
			t.Fatalf("cell %d at place %d: best is %v, p is %v", c.Index, at, c.Best, c.P)
		}
	}
}

func TestEveryPairOfCellsThatCannotBeToldApartIsNamed(t *testing.T) {
	j, err := judge.New(judge.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	many := func(median float64) (values []float64) {
		for i := range 20 {
			values = append(values, median+float64(i))
		}
		return values
	}
	r, err := j.Rank(judge.Lower, [][]float64{many(500), many(101), many(100), {1}, many(501)})
	if err != nil {
		t.Fatal(err)
	}
	var alike [][]int
	for _, c := range r.Cells {
		alike = append(alike, c.Alike)
	}
	if diff := cmp.Diff([][]int{{1}, {0}, {3}, {2}, nil}, alike); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
