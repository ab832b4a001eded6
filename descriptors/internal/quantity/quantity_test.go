package quantity_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benchmark-ai/bai/descriptors/internal/quantity"
)

func TestSizesAreBytes(t *testing.T) {
	tests := map[string]struct {
		want int64
		err  error
	}{
		"0":                       {0, nil},
		"1024":                    {1024, nil},
		"10k":                     {10_000, nil},
		"10K":                     {10_000, nil},
		"10KB":                    {10_000, nil},
		"10Ki":                    {10 << 10, nil},
		"10MiB":                   {10 << 20, nil},
		"1.5G":                    {1_500_000_000, nil},
		"2 GiB":                   {2 << 30, nil},
		"3Ti":                     {3 << 40, nil},
		"100B":                    {100, nil},
		"1Pi":                     {1 << 50, nil},
		"":                        {0, quantity.ErrSyntax},
		"G":                       {0, quantity.ErrSyntax},
		"-1G":                     {0, quantity.ErrSyntax},
		"1e9":                     {0, quantity.ErrSyntax},
		"1G 2":                    {0, quantity.ErrSyntax},
		"1.2.3":                   {0, quantity.ErrSyntax},
		"1mb":                     {0, quantity.ErrUnit},
		"1ki":                     {0, quantity.ErrUnit},
		"1X":                      {0, quantity.ErrUnit},
		"1KM":                     {0, quantity.ErrUnit},
		"1.001k":                  {1001, nil},
		"4.35G":                   {4_350_000_000, nil},
		"0.5Ki":                   {512, nil},
		"0.9999B":                 {0, nil},
		".5k":                     {500, nil},
		"0000000000000000000001.": {1, nil},
		"9223372036854775807":     {1<<63 - 1, nil},
		"9223372036854775808":     {0, quantity.ErrTooLarge},
		".":                       {0, quantity.ErrSyntax},
		"99999999999999999999":    {0, quantity.ErrTooLarge},
		"99999999P":               {0, quantity.ErrTooLarge},
		"1" + fmt.Sprint(1<<40):   {11099511627776, nil},
	}
	for in, tt := range tests {
		t.Run(in, func(t *testing.T) {
			got, err := quantity.Size(in)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("want %d, %v; got %d, %v", tt.want, tt.err, got, err)
			}
		})
	}
}

func TestMemoryIsWrittenAsKubernetesWritesIt(t *testing.T) {
	for in, want := range map[string]string{"16GiB": "16Gi", "16Gi": "16Gi", "4KB": "4k", "4K": "4k", "2 G": "2G", "1.5Gi": "1.5Gi", "x": ""} {
		if got, _ := quantity.Memory(in); got != want {
			t.Errorf("%s: want %q, got %q", in, want, got)
		}
	}
}

func TestCPUsAreWrittenAsKubernetesWritesThem(t *testing.T) {
	for in, want := range map[string]string{
		"4": "4", "0.5": "0.5", "500m": "500m", "2.5": "2.5",
		"1.0000": "1.0000", "500.0m": "500.0m", "0": "", "0.0001": "", "1.0001": "", "0.5m": "", "4 cores": "", "-1": "", "": "", "99999999": "",
	} {
		if got, _ := quantity.CPUs(in); got != want {
			t.Errorf("%s: want %q, got %q", in, want, got)
		}
	}
}

// TestEveryNumberOfThousandthsIsAnAmountOfCPU has all numbers with up to three decimals: of some the float64 is no whole number of
// thousandths.
func TestEveryNumberOfThousandthsIsAnAmountOfCPU(t *testing.T) {
	for thousandths := 1; thousandths <= 128_000; thousandths++ {
		for decimals, step := range []int{1000, 100, 10, 1} {
			if thousandths%step != 0 {
				continue
			}
			in := fmt.Sprintf("%d.%03d", thousandths/1000, thousandths%1000)
			in = strings.TrimSuffix(in[:len(in)-3+decimals], ".")
			if got, err := quantity.CPUs(in); got != in || err != nil {
				t.Errorf("%s: %q, %v", in, got, err)
			}
			if n, err := quantity.Size(in + "k"); n != int64(thousandths) || err != nil {
				t.Errorf("%sk: %d, %v", in, n, err)
			}
		}
	}
}

func TestDurationsHaveDays(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour,
		"1.5h": 90 * time.Minute, "500ms": 500 * time.Millisecond,
	} {
		if got, err := quantity.Duration(in); got != want || err != nil {
			t.Errorf("%s: want %v, got %v, %v", in, want, got, err)
		}
	}
	for _, in := range []string{"", "90", "-1h", "1h-5m", "d", "1w", "1 h", "5ns", "99999d", "1d2d", "10 minutes", "65000d9000000h"} {
		if got, err := quantity.Duration(in); err == nil {
			t.Errorf("%s: taken as %v", in, got)
		}
	}
}
