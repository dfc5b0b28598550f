//go:build unix

package main

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// page requests an address of the page in FILE as JSON, until the response has the status.
// Further arguments are headers, as NAME=VALUE, and a body in braces, which makes the request a
// POST. It prints the response.
func page(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: page FILE STATUS ADDRESS [NAME=VALUE...] [{BODY}]")
	}
	at := regexp.MustCompile(`(?m)^page at (http://\S+/)$`).FindStringSubmatch(ts.ReadFile(args[0]))
	status, err := strconv.Atoi(args[1])
	if at == nil || err != nil {
		ts.Fatalf("%s names no page, or %s is no status", args[0], args[1])
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; <-tick.C {
		got, text := askPage(ts, at[1]+args[2], args[3:])
		if got == status {
			_, err := io.WriteString(ts.Stdout(), text)
			ts.Check(err)
			return
		}
		if time.Since(begun) > patience {
			ts.Fatalf("%s: %d: %s", args[2], got, text)
		}
	}
}

// askPage sends one request.
func askPage(ts *testscript.TestScript, address string, more []string) (status int, text string) {
	r, err := http.NewRequest(http.MethodGet, address, nil)
	ts.Check(err)
	r.Header.Set("Accept", "application/json")
	for _, arg := range more {
		if strings.HasPrefix(arg, "{") {
			r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(arg))
			r.Header.Set("Content-Type", "application/json")
			continue
		}
		name, value, _ := strings.Cut(arg, "=")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w, err := (&http.Client{Timeout: patience}).Do(r)
	ts.Check(err)
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	ts.Check(err)
	return w.StatusCode, string(body)
}
