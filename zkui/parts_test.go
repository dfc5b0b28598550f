package zkui_test

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zkui"
)

// raw sends a request without decompressing the response.
func (s *site) raw(method, address string, headers map[string]string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/"+address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return w, string(text)
}

// TestJSONEscapesInvisibleCharacters checks that a name cannot reverse the text of a response or of
// the stream on a terminal.
func TestJSONEscapesInvisibleCharacters(t *testing.T) {
	s := serve(t, nil)
	const name, want = "pay\u202e\u2003", `"path":"/zklock/pay\u202e\u2003"`
	s.acquire(s.locks.Mutex(name))
	s.await(name, func(l lockJSON) bool { return l.Lock.Holders == 1 })
	if _, text := s.raw(http.MethodGet, "?format=json", nil); !strings.Contains(text, want) {
		t.Errorf("the list is %s", text)
	}
	if e := s.next(t.Context(), "path="+url.QueryEscape("/zklock/"+name), "lock"); !strings.Contains(e.data, want) {
		t.Errorf("the event is %s", e.data)
	}
}

// TestListOrderAndRange checks each order of the list, with limits and offsets.
func TestListOrderAndRange(t *testing.T) {
	s := serve(t, nil)
	var want []string
	for i := range 6 {
		name := fmt.Sprintf("m%d", i)
		s.acquire(s.locks.Mutex(name))
		want = append(want, "/zklock/"+name)
		if i == 3 {
			other := zklock.New(s.srv.Dial(t), nil)
			t.Cleanup(func() { _ = other.Close() })
			go func() { _, _ = other.Mutex("m3").Acquire(t.Context()) }() // ends with the test
		}
	}
	s.await("m3", func(l lockJSON) bool { return l.Lock.Waiting == 1 })
	s.await("m5", func(l lockJSON) bool { return l.Lock.Holders == 1 })
	paths := func(query string) []string {
		t.Helper()
		var list listJSON
		if status := s.ask(query, &list); status != 200 || list.Total != 6 {
			t.Fatalf("%s: %d %+v", query, status, list)
		}
		all := []string{}
		for _, l := range list.Locks {
			all = append(all, l.Path)
		}
		return all
	}
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	for query, want := range map[string][]string{
		"": want, "?sort=path": want, "?sort=path&desc=1": backwards, "?sort=held": want,
		"?limit=2": want[:2], "?offset=4": want[4:], "?offset=4&limit=1": want[4:5], "?offset=99": {}, "?limit=-1": want, "?offset=x": want, "?limit=999": want,
	} {
		if got := paths(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"?sort=waiting", "?sort=oldest"} {
		if got := paths(query); got[0] != "/zklock/m3" {
			t.Errorf("%s: %q", query, got)
		}
	}
}

// TestListSortedByTime checks that times count in milliseconds, as the page shows them, and that
// locks with the same time are sorted by name.
func TestListSortedByTime(t *testing.T) {
	s := serve(t, nil)
	for c := 'z'; c >= 'a'; c-- {
		s.acquire(s.locks.Mutex(string(c)))
	}
	for c := 'z'; c >= 'a'; c-- { // the first listing finds them in any order
		s.await(string(c), func(l lockJSON) bool { return l.Lock.Holders == 1 })
	}
	for query, sign := range map[string]int{"?sort=held": 1, "?sort=held&desc=1": -1} {
		var list listJSON
		if status := s.ask(query, &list); status != 200 || list.Total != 26 {
			t.Fatalf("%s: %d %+v", query, status, list)
		}
		for i, l := range list.Locks[1:] {
			before, now := list.Locks[i].shown(), l.shown()
			if order := sign * cmp.Compare(before, now); order > 0 || order == 0 && list.Locks[i].Path > l.Path {
				t.Errorf("%s: %s since %d ms before %s since %d ms", query, list.Locks[i].Path, before, l.Path, now)
			}
		}
	}
}

// TestAcceptHeaderSelectsPageOrJSON checks the type of the response.
func TestAcceptHeaderSelectsPageOrJSON(t *testing.T) {
	s := serve(t, nil)
	for accept, want := range map[string]string{
		"":                                   "text/html",
		"*/*":                                "text/html",
		"text/html":                          "text/html",
		"text/html, application/json;q=0.9":  "text/html",
		"application/json":                   "application/json",
		"application/json, text/plain, */*":  "application/json",
		"application/json, text/html;q=0.5":  "application/json",
		"text/event-stream,application/json": "application/json",
	} {
		headers := map[string]string{}
		if accept != "" {
			headers["Accept"] = accept
		}
		if w, _ := s.raw(http.MethodGet, "", headers); !strings.HasPrefix(w.Header.Get("Content-Type"), want) || !strings.Contains(w.Header.Get("Vary"), "Accept") {
			t.Errorf("%q gets %s", accept, w.Header.Get("Content-Type"))
		}
	}
	w, text := s.raw(http.MethodHead, "?format=json", nil)
	if w.StatusCode != 200 || text != "" || w.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("HEAD: %d %q %v", w.StatusCode, text, w.Header)
	}
	if w, text := s.raw(http.MethodHead, "events", nil); w.StatusCode != 200 || text != "" {
		t.Errorf("HEAD of the stream: %d %q", w.StatusCode, text)
	}
}

// TestLongResponsesAreCompressed checks that a client that accepts gzip gets it for long responses.
func TestLongResponsesAreCompressed(t *testing.T) {
	s := serve(t, nil)
	for i := range 30 {
		s.acquire(s.locks.Mutex(fmt.Sprintf("m%d", i)))
	}
	s.await("m29", func(l lockJSON) bool { return l.Lock.Holders == 1 })
	plain, text := s.raw(http.MethodGet, "?format=json", nil)
	packed, bytes := s.raw(http.MethodGet, "?format=json", map[string]string{"Accept-Encoding": "br, gzip"})
	if plain.Header.Get("Content-Encoding") != "" || packed.Header.Get("Content-Encoding") != "gzip" || len(bytes) > len(text)/2 {
		t.Fatalf("%q of %d bytes, %q of %d", plain.Header.Get("Content-Encoding"), len(text), packed.Header.Get("Content-Encoding"), len(bytes))
	}
	z, err := gzip.NewReader(strings.NewReader(bytes))
	if err != nil {
		t.Fatal(err)
	}
	var list listJSON
	if err := json.NewDecoder(z).Decode(&list); err != nil || list.Total != 30 {
		t.Errorf("%+v, %v", list, err)
	}
	if w, _ := s.raw(http.MethodGet, "status?format=json", map[string]string{"Accept-Encoding": "gzip"}); w.Header.Get("Content-Encoding") != "" {
		t.Error("a short response is compressed")
	}
}

// TestCloseEndsStreams checks that open streams do not delay the end of a server.
func TestCloseEndsStreams(t *testing.T) {
	s := serve(t, &zkui.Options{})
	events := s.follow(t.Context(), "history=1")
	if first := <-events; first.name != "status" {
		t.Errorf("the stream begins with %+v", first)
	}
	if err := s.h.Close(); err != nil {
		t.Fatal(err)
	}
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		select {
		case _, ok := <-events:
			if !ok {
				return
			}
		case <-limit.C:
			t.Fatal("the stream continues")
		}
	}
}

// TestPageShowsLastStateWithoutServers checks that the page shows the last known locks, and says
// that it is not connected.
func TestPageShowsLastStateWithoutServers(t *testing.T) {
	s := serve(t, nil)
	s.acquire(s.locks.Mutex("m"))
	s.await("m", func(l lockJSON) bool { return l.Lock.Holders == 1 })
	events := s.follow(t.Context(), "")
	s.srv.Stop()
	for e := range events {
		if strings.Contains(e.data, `"connected":false`) {
			break
		}
	}
	var one lockJSON
	if status := s.ask("lock?path=m", &one); status != 200 || one.Lock.Holders != 1 {
		t.Errorf("%d %+v", status, one)
	}
	s.srv.Restart(t)
	for e := range events {
		if strings.Contains(e.data, `"connected":true`) {
			return
		}
	}
	t.Error("the stream ended")
}

// TestLongFilterIsRefused: a search for thousands of words in thousands of locks takes too long.
func TestLongFilterIsRefused(t *testing.T) {
	s := serve(t, nil)
	for _, address := range []string{"?format=json&q=", "sessions?format=json&q="} {
		for words, want := range map[int]int{100: 200, 4000: 400} {
			if got, why := s.do(http.MethodGet, address+strings.Repeat("a+", words), "", nil); got != want {
				t.Errorf("%s of %d words: %d %s", address, words, got, why)
			}
		}
	}
}

// TestLogOfEvents checks the events of all locks and of one, with filters, as JSON.
func TestLogOfEvents(t *testing.T) {
	s := serve(t, nil)
	s.awaitListing()
	held := map[string]*zklock.Hold{}
	for _, name := range []string{"a", "b"} {
		held[name] = s.acquire(s.locks.Mutex(name))
		s.await(name, func(l lockJSON) bool { return l.Lock.Holders == 1 })
	}
	if err := held["a"].Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.await("a", func(l lockJSON) bool { return l.Lock.Holders == 0 })
	for query, want := range map[string]string{
		"log":                           "released /zklock/a,acquired /zklock/b,acquired /zklock/a",
		"log?path=a":                    "released /zklock/a,acquired /zklock/a",
		"log?path=/zklock/none":         "",
		"log?event=acquired":            "acquired /zklock/b,acquired /zklock/a",
		"log?event=acquired&limit=1":    "acquired /zklock/b",
		"log?q=ACQUIRED+zklock/a":       "acquired /zklock/a",
		"log?event=lost":                "",
		"log?event=broken&path=b":       "",
		"log?event=release-requested":   "",
		"log?event=acquired&offset=100": "",
	} {
		var got logJSON
		if status := s.ask(query, &got); status != http.StatusOK || got.Log == nil {
			t.Errorf("%s: %d %+v", query, status, got)
		}
		var events []string
		for _, e := range got.Log {
			events = append(events, e.Event+" "+e.Path)
			if hold := held[strings.TrimPrefix(e.Path, "/zklock/")]; e.Token != fmt.Sprint(hold.Token()) || e.Session == "" || e.Who == "" {
				t.Errorf("%s: %+v is not of the hold with the token %d", query, e, hold.Token())
			}
		}
		if text := strings.Join(events, ","); text != want {
			t.Errorf("%s: %q, want %q", query, text, want)
		}
	}
	for _, query := range []string{"log?event=nonsense", "log?path=../x", "log?q=" + strings.Repeat("a", 2000)} {
		var got struct{ Error string }
		if status := s.ask(query, &got); status != http.StatusBadRequest || got.Error == "" {
			t.Errorf("%s: %d %q", query, status, got.Error)
		}
	}
}

// TestUnknownAddressIsAPage checks what a browser and a program get at an unknown address.
func TestUnknownAddressIsAPage(t *testing.T) {
	s := serve(t, nil)
	browser := map[string]string{"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
	for address, root := range map[string]string{"nothing": "./", "a/b/c": "./../../", `%3Cscript%3E/"x`: "./../"} {
		w, text := s.raw(http.MethodGet, strings.ReplaceAll(address, `"`, "%22"), browser)
		if w.StatusCode != http.StatusNotFound || !strings.HasPrefix(w.Header.Get("Content-Type"), "text/html") || w.Header.Get("Content-Security-Policy") == "" ||
			!strings.Contains(text, `href="`+root+`"`) || strings.Count(text, "<script") != 1 || // the page's own, which has no text
			!strings.Contains(text, `<script type="module" src="`+root+`assets/unknown.js"></script>`) {
			t.Errorf("%s: %d %v %s", address, w.StatusCode, w.Header, text)
		}
		if w, text := s.raw(http.MethodGet, strings.ReplaceAll(address, `"`, "%22"), map[string]string{"Accept": "application/json"}); w.StatusCode != http.StatusNotFound || !strings.Contains(text, `{"error":"unknown address`) {
			t.Errorf("%s as JSON: %d %s", address, w.StatusCode, text)
		}
	}
}
