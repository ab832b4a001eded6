package price_test

import (
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/price"
)

func TestAPriceIsAnAmountAndACurrency(t *testing.T) {
	for text, want := range map[string]string{
		"3.06 USD": "3.06 USD", "0 EUR": "0 EUR", "007.50 USD": "7.5 USD", "0.000000001 USD": "0.000000001 USD",
		"999999999.999999999 JPY": "999999999.999999999 JPY", "12 CHF": "12 CHF",
	} {
		p, err := price.Parse(text)
		if err != nil || p.String() != want || p.Currency() != want[len(want)-3:] {
			t.Errorf("%q is read as %q, %v", text, p, err)
		}
	}
}

func TestATextThatIsNoPriceIsRefusedWithItsRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"-3.06 USD":    `"-3.06" is negative (BAI0205): write 0 or more and a currency, as "3.06 USD"`,
		"NaN USD":      `"NaN" is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		"+Inf USD":     `"+Inf" is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		"inf USD":      `"inf" is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		"1e3 USD":      `"1e3" is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		"$3.06":        `"$3.06" is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		"3,06 EUR":     `"3,06" is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		".5 USD":       `".5" is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		"5. USD":       `"5." is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		"":             `"" is not an amount of money (BAI0205): write an amount and a currency, as "3.06 USD"`,
		"3.06":         `"3.06" has no currency (BAI0206): write it as "3.06 USD", with the currency that it is in`,
		"3.06 dollars": `"dollars" is not the code of a currency (BAI0206): write the three capital letters of one, as "USD" or "EUR"`,
		"3.06 USD/h":   `"USD/h" is not the code of a currency (BAI0206): write the three capital letters of one, as "USD" or "EUR"`,
		"3.06  USD":    `" USD" is not the code of a currency (BAI0206): write the three capital letters of one, as "USD" or "EUR"`,
		"1000000000 USD": `"1000000000" has more than 9 digits before the point, or 9 after it (BAI0205): write an amount and a currency, ` +
			`as "3.06 USD"`,
	} {
		if _, err := price.Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestASumIsRoundedOnceItIsComplete(t *testing.T) {
	p, err := price.Parse("0.1 USD")
	if err != nil {
		t.Fatal(err)
	}
	var sum price.Total
	for range 3 * 3600 * 10 { // three hours in tenths of a second: as floats, the sum is 0.30000000000…
		if !sum.Add(p, 100*time.Millisecond) {
			t.Fatal("the same currency is refused")
		}
	}
	if sum.Amount() != 0.3 || sum.Currency() != "USD" {
		t.Errorf("%v %s, want 0.3 USD", sum.Amount(), sum.Currency())
	}
}

func TestASumHasOneCurrency(t *testing.T) {
	usd, _ := price.Parse("1 USD")
	eur, _ := price.Parse("1 EUR")
	var sum price.Total
	if !sum.Add(usd, time.Hour) || sum.Add(eur, time.Hour) || sum.Amount() != 1 {
		t.Errorf("%v %s", sum.Amount(), sum.Currency())
	}
	if !sum.Add(usd, -time.Hour) || sum.Amount() != 1 {
		t.Errorf("a time below zero counts: %v", sum.Amount())
	}
}

func TestThePricesOfTheSettingsNameEachFault(t *testing.T) {
	all := price.Table{"a": "1 USD", "b": "-1 USD", "c": "1", " d": "1 USD"}
	want := `prices." d": the name of an instance type has no blanks at its ends, and is not empty
prices."b": "-1" is negative (BAI0205): write 0 or more and a currency, as "3.06 USD"
prices."c": "1" has no currency (BAI0206): write it as "1 USD", with the currency that it is in`
	if err := all.Validate(); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if err := (price.Table{"p3.2xlarge": "3.06 USD"}).Validate(); err != nil {
		t.Error(err)
	}
	if p, ok := all.Of("a"); !ok || p.String() != "1 USD" {
		t.Errorf("%v, %t", p, ok)
	}
	for _, name := range []string{"b", "e"} {
		if p, ok := all.Of(name); ok {
			t.Errorf("%s has the price %v", name, p)
		}
	}
}

func FuzzAPriceThatIsReadIsWrittenAndReadAgain(f *testing.F) {
	for _, seed := range []string{"3.06 USD", "0 EUR", "-1 USD", "NaN USD", "1e9 USD", " 1 USD", "1 usd", "1.0000000001 USD"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := price.Parse(text)
		if err != nil {
			return
		}
		again, err := price.Parse(p.String())
		if err != nil || again != p || strings.HasPrefix(p.String(), "-") {
			t.Errorf("%q is read as %v, and that as %v, %v", text, p, again, err)
		}
	})
}
