// Package executable is a cluster that a program of the operator is: it gets plans and
// answers with states, in lines of JSON over its standard input and output. The contract
// of such programs is docs/engines.md, and its form is schema.json.
//
// The program has all state. A driver starts a copy of it at the first call, makes one call
// at a time, and kills a copy that hangs, writes what is not the schema, or writes without
// being asked. The next call starts another copy. So all calls can be repeated, and several
// services have a driver each for the same program.
//
// Such a cluster runs one pod for each attempt, without images and without the platform's
// own programs: the follower of logs ships what the benchmark prints.
package executable
