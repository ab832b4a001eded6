//go:build linux

package emit

const usage = `Usage: bai-emit [--step N] [--unit U] [--label NAME=TEXT]... [--time SECONDS] NAME=NUMBER[:UNIT]...

Emits the numbers as one line, as
  bai-emit --step 7 --label gpu=0 loss=0.25 latency=1.5:ms

  --step N           the step, iteration or epoch that they are of
  --unit U           the unit of all of them
  --label NAME=TEXT  tells numbers of one name apart; there may be several
  --time SECONDS     when they were measured, in seconds since 1970, instead of now

A number is decimal, with an exponent if need be, nan, inf, true or false. A name
may hold anything: the last = of an argument ends it. Options may follow numbers;
a name that begins with -- comes after an argument --.

The line is appended to the file BENCHMARK_AI_FILE names, unless BENCHMARK_AI is
stdout; else, where BENCHMARK_AI is fifo, written to the FIFO that
BENCHMARK_AI_FIFO_FILEPATH names, for which it waits BENCHMARK_AI_FIFO_MAX_WAIT_TIME
seconds; else printed.

Exit codes: 0, also where the line could not be written, which is said, unless
BENCHMARK_AI_STRICT is 1: then 1; 2 where it is no line.
`
