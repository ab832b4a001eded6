// Command openapi makes the OpenAPI document of the API over HTTP, from the output of
// protoc-gen-openapiv2, which has an older version of OpenAPI and lacks the paths that
// are no RPC.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	in := flag.String("in", "gateway/rest/gen/openapi.swagger.json", "`file` that protoc-gen-openapiv2 has made")
	out := flag.String("out", "../proto/openapi.json", "`file` to write")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	swagger, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	document, err := convert(swagger)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return os.WriteFile(out, document, 0o644) //nolint:gosec // everybody may read it
}
