package ui

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A Recording is what a handler answered, to be answered again: what was seen of an
// hour of virtual time is then looked at in a browser, whose time is ours.
type Recording struct {
	answers map[string]*httptest.ResponseRecorder
	streams map[string]string
}

// NewRecording is an empty one.
func NewRecording() *Recording {
	return &Recording{answers: map[string]*httptest.ResponseRecorder{}, streams: map[string]string{}}
}

// key is what a request asks for, whatever else is in its query.
func key(r *http.Request) string {
	q := r.URL.Query()
	return r.URL.Path + " " + q.Get("path") + q.Get("id") + " " + q.Get("format")
}

// Take asks the handler for an address and keeps the answer.
func (rec *Recording) Take(t testing.TB, h http.Handler, address string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/"+address, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", address, w.Code, w.Body)
	}
	rec.answers[key(r)] = w
	return w
}

// TakeStream keeps what comes of a stream in the first moments, which in a bubble of
// virtual time take none.
func (rec *Recording) TakeStream(t testing.TB, h http.Handler, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/"+address, nil)
	r.Header.Set("Accept", "text/event-stream")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), "event: ") {
		t.Fatalf("%s: %d and no event: %s", address, w.Code, w.Body)
	}
	rec.streams[key(r)] = w.Body.String()
}

// ServeHTTP answers as the handler did. A stream stays open.
func (rec *Recording) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/events" {
		w.Header().Set("Content-Type", "text/event-stream")
		if _, err := w.Write([]byte(rec.streams[key(r)])); err != nil {
			return // the browser went away
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		<-r.Context().Done()
		return
	}
	answer, ok := rec.answers[key(r)]
	if !ok {
		if answer, ok = rec.answers["/  "]; !ok || r.URL.Query().Get("format") != "" {
			http.NotFound(w, r)
			return
		}
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	if _, err := bytes.NewReader(answer.Body.Bytes()).WriteTo(w); err != nil {
		return // the browser went away
	}
}
