// Package proto holds the description of the API over HTTP. The API itself is
// in the packages below.
package proto

import _ "embed" // the description is part of the program

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the OpenAPI document of the API over HTTP: JSON. It is made
// from the services; nobody may change it.
func OpenAPI() []byte { return openAPI }
