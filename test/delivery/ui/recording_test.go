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

// A Recording replays the responses of a handler. It shows a state after an hour of virtual
// time to a browser, which needs real time.
type Recording struct {
	answers map[string]*httptest.ResponseRecorder
	streams map[string]string
}

// NewRecording returns an empty recording.
func NewRecording() *Recording {
	return &Recording{answers: map[string]*httptest.ResponseRecorder{}, streams: map[string]string{}}
}

// key returns the parts of a request that select a response.
func key(r *http.Request) string {
	q := r.URL.Query()
	return r.URL.Path + " " + q.Get("path") + q.Get("id") + " " + q.Get("format")
}

// Record sends a request to the handler and records the response.
func (rec *Recording) Record(t testing.TB, h http.Handler, address string) *httptest.ResponseRecorder {
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

// RecordStream records the first second of an event stream.
func (rec *Recording) RecordStream(t testing.TB, h http.Handler, address string) {
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

// ServeHTTP replays the recorded response. A stream stays open.
func (rec *Recording) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/events" {
		w.Header().Set("Content-Type", "text/event-stream")
		if _, err := w.Write([]byte(rec.streams[key(r)])); err != nil {
			return // the browser disconnected
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
		return // the browser disconnected
	}
}
