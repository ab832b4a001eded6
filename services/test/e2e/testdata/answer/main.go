// Answer is a server, or with an argument a client that asks it three times.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		if err := ask(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	time.Sleep(500 * time.Millisecond) // it is slow to begin
	fmt.Println(http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := strings.TrimPrefix(r.URL.Path, "/"); n != "ping" {
			_, _ = fmt.Fprint(w, "4"+n)
			fmt.Println("asked=" + n)
		}
	})))
}

func ask(server string) error {
	for n := range 3 {
		r, err := http.Get(fmt.Sprintf("%s/%d", server, n))
		if err != nil {
			return err
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		fmt.Printf("answer=%s\n", b)
	}
	return nil
}
