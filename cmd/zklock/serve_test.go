//go:build unix

package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// metrics prints the page whose address a server has written to a file.
//
//	metrics FILE
func metrics(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: metrics FILE")
	}
	address := regexp.MustCompile(`(?m)^metrics at (http://\S+)$`).FindStringSubmatch(ts.ReadFile(args[0]))
	if address == nil {
		ts.Fatalf("%s names no address", args[0])
	}
	client := &http.Client{Timeout: patience}
	resp, err := client.Get(address[1])
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("%s: %s", address[1], resp.Status)
	}
	_, err = io.Copy(ts.Stdout(), strings.NewReader(string(body)))
	ts.Check(err)
}
