package emit

import "time"

// Option says more about the values of a call.
type Option struct {
	kind      kind
	key, text string
	num       int64
	nsec      int
}

type kind uint8

const (
	kindUnit kind = iota + 1
	kindUnitOf
	kindStep
	kindLabel
	kindAt
)

// Unit gives all values of the call their unit, as "ms" or "MB/s".
func Unit(unit string) Option { return Option{kind: kindUnit, text: unit} }

// UnitOf gives the value of that name its unit, whatever Unit says. Where it is
// given, Unit holds for none.
func UnitOf(name, unit string) Option { return Option{kind: kindUnitOf, key: name, text: unit} }

// Step says which step, iteration or epoch of the benchmark the values belong to.
func Step[N ~int | ~int32 | ~int64 | ~uint | ~uint32](n N) Option {
	return Option{kind: kindStep, num: int64(n)}
}

// Label distinguishes values of one name, as Label("gpu", "0"). A value may have several.
func Label(key, value string) Option { return Option{kind: kindLabel, key: key, text: value} }

// At says when the values were measured, instead of the time of the call.
func At(t time.Time) Option { return Option{kind: kindAt, num: t.Unix(), nsec: t.Nanosecond()} }
