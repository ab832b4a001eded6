module github.com/benchmark-ai/bai/client-lib

go 1.26.0
