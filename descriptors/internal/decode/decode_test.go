package decode_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/internal/decode"
	"github.com/benchmark-ai/bai/descriptors/internal/syntax"
)

type rootTable struct {
	Name     string         `toml:"name" need:"yes" example:"'Eden'"`
	Area     int            `toml:"area" default:"10"`
	Open     bool           `toml:"open" default:"true"`
	Soil     string         `toml:"soil" one:"loam=earth sand" default:"sand"`
	Beds     []itemTable    `toml:"beds" also:"patches"`
	SubTable *subTable      `toml:"pond"`
	Gate     subTable       `toml:"gate" without:"fish"`
	Notes    map[string]any `toml:"notes"`
	Even     int64          `toml:"even" kind:"even" default:"2"`
	Odd      *int           `toml:"odd" kind:"even"`
	Kept     string
}

type itemTable struct {
	base
	Rows int `toml:"rows" default:"3"`
}

type base struct {
	Plant string `toml:"plant" need:"yes"`
}

type subTable struct {
	Depth int    `toml:"depth" default:"1"`
	Fish  string `toml:"fish" default:"carp"`
	Mood  string `toml:"mood" one:"calm" empty:"yes"`
}

func valueTypes() decode.ValueTypes {
	return decode.ValueTypes{"even": {Type: "even number", Rule: "2 or a multiple", Read: func(v decode.Value) any {
		if v.Kind == syntax.String {
			return int64(len(v.Text) * 2)
		}
		n, ok := v.Int(0, 100)
		if ok && n%2 == 1 {
			v.Fault("ODD", "is odd", "")
			ok = false
		}
		if !ok {
			return nil
		}
		return n
	}}}
}

func decodeText(t *testing.T, text string) (rootTable, []string) {
	t.Helper()
	tree, broken := syntax.Parse([]byte(text))
	if len(broken) > 0 {
		t.Fatal(broken)
	}
	var g rootTable
	var faults []string
	for _, f := range decode.Decode(tree, &g, valueTypes()).Faults {
		faults = append(faults, fmt.Sprintf("%d:%d %s %s (%s)", f.At.Line, f.At.Column, f.Path, f.Message, f.Remedy))
	}
	return g, faults
}

func TestAStructIsReadFromATable(t *testing.T) {
	got, faults := decodeText(t, `
name = "Eden"
soil = "earth"
odd = 4
gate = { mood = "" }
[[beds]]
plant = "rose"
[[beds]]
plant = "leek"
rows = 5
[pond]
fish = "trout"
[notes]
a = [1, { b = 2020-01-01 }]
`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	four := 4
	want := rootTable{
		Name: "Eden", Area: 10, Open: true, Soil: "loam", Even: 2, Odd: &four,
		Beds:     []itemTable{{base{"rose"}, 3}, {base{"leek"}, 5}},
		SubTable: &subTable{Depth: 1, Fish: "trout"},
		Gate:     subTable{Depth: 1},
		Notes:    map[string]any{"a": []any{int64(1), map[string]any{"b": "2020-01-01"}}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(itemTable{}, base{}, rootTable{})); diff != "" {
		t.Error(diff)
	}
}

func TestWhatATableHasNotIsReportedInItsPlace(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"a key that is missing":            {"area = 1", []string{`1:1 name is missing (add name = 'Eden')`}},
		"a key in an item that is missing": {"name = ''\n[[beds]]\nrows = 1", []string{`2:3 beds[0].plant is missing (add plant = …)`}},
		"an unknown key near one":          {"nam = 'x'", []string{`1:1 nam unknown key (did you mean name?)`}},
		"an unknown key near one, and its value": {"nam = 5", []string{
			`1:1 nam unknown key (did you mean name?)`, `1:7 name must be a string, not a whole number (write "5")`,
		}},
		"an unknown key near one that is there": {"name = ''\nnam = 5", []string{`2:1 nam unknown key (did you mean name?)`}},
		"an unknown key near none": {"name = ''\npond = { x = 1 }", []string{
			`2:10 pond.x unknown key (its keys are depth, fish or mood)`,
		}},
		"a name under which people look": {"name = ''\npatches = []", []string{`2:1 patches unknown key (did you mean beds?)`}},
		"a key of another table":         {"name = ''\nplant = 'x'", []string{`2:1 plant unknown key (it is a key of [beds])`}},
		"a key that the table lacks here": {"name = ''\ngate = { fish = 'x' }", []string{
			`2:10 gate.fish unknown key (it is a key of [pond])`,
		}},
		"a key with blanks":        {"name = ''\n'a b' = 1", []string{`2:1 "a b" unknown key (its keys are name, area, open, soil, beds, pond, gate, notes, even or odd)`}},
		"a value that is none":     {"name = ''\nsoil = 'sant'", []string{`2:8 soil "sant" is not one of its values (did you mean "sand"?)`}},
		"a value near none":        {"name = ''\nsoil = 'moon'", []string{`2:8 soil "moon" is not one of its values (write loam or sand)`}},
		"a number that is too big": {"name = ''\narea = 2147483648", []string{`2:8 area 2147483648 is more than 2147483647 ()`}},
		"a kind's fault":           {"name = ''\neven = 3", []string{`2:8 even is odd ()`}},
		"a list for a table":       {"name = ''\n[[pond]]", []string{`2:3 pond must be a table, not a list (write [pond], with one bracket)`}},
		"a table for a list":       {"name = ''\n[beds]\nplant = 'x'", []string{`2:2 beds must be a list of tables, not a table (write [[beds]], with two brackets)`}},
		"a text for a bool":        {"name = ''\nopen = 'True'", []string{`2:8 open must be true or false, not a string (write true, without quotes)`}},
		"a text for a number":      {"name = ''\narea = '7'", []string{`2:8 area must be a whole number, not a string (write 7, without quotes)`}},
		"a word for a number":      {"name = ''\narea = 'x'", []string{`2:8 area must be a whole number, not a string ()`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := decodeText(t, tt.text)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNothingIsMissingInATableThatLostAKey(t *testing.T) {
	tree, _ := syntax.Parse([]byte("name = x\n[[beds]]\n"))
	var paths []string
	for _, f := range decode.Decode(tree, &rootTable{}, valueTypes()).Faults {
		paths = append(paths, f.Path)
	}
	if diff := cmp.Diff([]string{"beds[0].plant"}, paths); diff != "" {
		t.Error(diff)
	}
}

func TestRowsAreTheKeysWithTheirTables(t *testing.T) {
	var got []string
	for _, row := range decode.KeySpecs(&rootTable{}, valueTypes()) {
		need := ""
		if row.Required {
			need = " needed"
		}
		values := strings.Join(row.Values, "|")
		if row.Aliases != nil {
			values += fmt.Sprint(" (", strings.Join(row.Aliases, "|"), ")")
		}
		got = append(got, fmt.Sprintf("%s: %s%s = %s %s", row.Path, row.Type, need, row.Default, values))
	}
	want := []string{
		"name: string needed =  ", "area: integer = 10 ", "open: bool = true ", "soil: string = sand loam|sand (earth)",
		"beds: list of tables =  ", "beds[].plant: string needed =  ", "beds[].rows: integer = 3 ",
		"pond: table =  ", "pond.depth: integer = 1 ", "pond.fish: string = carp ", "pond.mood: string =  calm",
		"gate: table =  ", "gate.depth: integer = 1 ", "gate.mood: string =  calm",
		"notes: table of any =  ", "even: even number = 2 ", "odd: even number =  ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
