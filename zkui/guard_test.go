package zkui_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkui"
)

// do sends a request with these headers, and returns the status and the error.
func (s *site) do(method, address, body string, headers map[string]string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/"+address, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range headers {
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer w.Body.Close()
	var answer struct{ Error string }
	if strings.HasPrefix(w.Header.Get("Content-Type"), "application/json") {
		if err := json.NewDecoder(w.Body).Decode(&answer); err != nil {
			s.t.Fatal(err)
		}
	}
	if w.Header.Get("Content-Security-Policy") == "" || w.Header.Get("Access-Control-Allow-Origin") != "" {
		s.t.Errorf("%s %s: the headers are %v", method, address, w.Header)
	}
	return w.StatusCode, answer.Error
}

// TestForeignHostNamesAreRefused: an attacker can let a host name resolve to this address.
func TestForeignHostNamesAreRefused(t *testing.T) {
	s := serve(t, &zkui.Options{Hosts: []string{"locks.example.org"}})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:7181": 200, "LOCALHOST": 200, "a.localhost:1": 200, "127.0.0.1:1": 200, "[::1]:7181": 200, "[::1]": 200, "10.1.2.3": 200,
		"locks.example.org": 200, "Locks.Example.Org:443": 200,
		"evil.example": 400, "evil.example:7181": 400, "locks.example.org.evil.example": 400, "127.0.0.1.evil.example": 400, "localhost.evil.example": 400, "evillocalhost": 400,
	} {
		for _, address := range []string{"", "?format=json", "assets/main.js", "events-none?format=json"} {
			got, _ := s.do(http.MethodGet, address, "", map[string]string{"Host": host})
			if got != want && (got != 404 || want != 200) {
				t.Errorf("%s asked as %s: %d, want %d", address, host, got, want)
			}
		}
	}
	if got, _ := serve(t, &zkui.Options{Hosts: []string{"*"}}).do(http.MethodGet, "", "", map[string]string{"Host": "evil.example"}); got != 200 {
		t.Errorf("any name: %d", got)
	}
}

// TestRefusedRequestsDoNotFillTheLog: any client that reaches the page can send such requests.
func TestRefusedRequestsDoNotFillTheLog(t *testing.T) {
	var text bytes.Buffer
	s := serve(t, &zkui.Options{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	for range 200 {
		s.do(http.MethodGet, "", "", map[string]string{"Host": strings.Repeat("evil.", 1000) + "example"})
	}
	if n := strings.Count(text.String(), "msg=refused"); n < 5 || n > 100 {
		t.Errorf("200 refused requests gave %d lines", n)
	}
	for line := range strings.Lines(text.String()) {
		if len(line) > 2000 {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
}

// TestWrongReadTokensAreLogged checks that the log shows requests with a wrong token for reading,
// and none without a token, which a page sends when it loads.
func TestWrongReadTokensAreLogged(t *testing.T) {
	log := new(releaseLog)
	s := serve(t, &zkui.Options{ReadToken: secret, Logger: slog.New(slog.NewTextHandler(log, nil))})
	for _, authorization := range []string{"", "Bearer " + secret, "Bearer guess"} {
		headers := map[string]string{"Accept": "application/json", "Authorization": authorization}
		s.do(http.MethodGet, "status", "", headers)
	}
	if n := log.count("msg=refused", "path=/status", "token"); n != 1 {
		t.Errorf("%d lines of the wrong token; all lines: %q", n, log.lines)
	}
	if n := log.count("guess") + log.count(secret); n > 0 {
		t.Errorf("%d lines have a token; all lines: %q", n, log.lines)
	}
}

// TestLogLinesEscapeWhatRequestsContain checks characters that slog does not escape: a blank
// symbol, and a combining mark.
func TestLogLinesEscapeWhatRequestsContain(t *testing.T) {
	log := new(releaseLog)
	s := serve(t, &zkui.Options{Token: secret, Logger: slog.New(slog.NewTextHandler(log, nil))})
	const blank, shown = "\u0301\u2800", `\u0301\u2800`
	s.do(http.MethodPost, "break"+url.PathEscape(blank), "", map[string]string{"Origin": "http://evil" + blank, "Host": "evil"})
	if n := log.count("msg=refused", "path=/break\u0301"+`\u2800`, "origin=http://evil\u0301"+`\u2800`); n != 1 {
		t.Errorf("%d lines of the refused request; all lines: %q", n, log.lines)
	}
	body := fmt.Sprintf(`{"path":"/zklock/m%s","node":%[1]q,"token":"1","reason":%[1]q}`, blank)
	s.do(http.MethodPost, "revoke", body, map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json"})
	if n := log.count("msg=revoke", "lock=/zklock/m\u0301"+`\u2800`, "node="+shown, "reason="+shown); n != 1 {
		t.Errorf("%d lines of the release request; all lines: %q", n, log.lines)
	}
}

// actionRequest returns the body of a POST.
func actionRequest(hold *zklock.Hold, fence int64) string {
	return fmt.Sprintf(`{"path":"/zklock/m","node":%q,"token":"%d"}`, hold.Node(), fence)
}

// TestInvalidActionsAreRefused checks that the server accepts only requests of the page itself,
// with the token, for the confirmed hold.
func TestInvalidActionsAreRefused(t *testing.T) {
	s := serve(t, &zkui.Options{Token: secret})
	hold := s.acquire(s.locks.Mutex("m"))
	good := map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json", "Origin": s.url, "Sec-Fetch-Site": "same-origin"}
	type headers map[string]string
	body := actionRequest(hold, hold.Token())
	for _, tt := range []struct {
		name   string
		change headers // changes of good; an empty value removes the header
		body   string
		want   int
	}{
		{"no token", headers{"Authorization": ""}, body, 403},
		{"another token", headers{"Authorization": "Bearer " + secret + "x"}, body, 403},
		{"half of the token", headers{"Authorization": "Bearer " + secret[:8]}, body, 403},
		{"the token as basic", headers{"Authorization": "Basic " + secret}, body, 403},
		{"another origin", headers{"Origin": "http://evil.example"}, body, 403},
		{"another port's origin", headers{"Origin": "http://127.0.0.1:1"}, body, 403},
		{"no origin of a page", headers{"Origin": "null"}, body, 403},
		{"a browser without an origin", headers{"Origin": ""}, body, 403},
		{"another site", headers{"Sec-Fetch-Site": "cross-site"}, body, 403},
		{"another site of the same owner", headers{"Sec-Fetch-Site": "same-site"}, body, 403},
		{"an address typed in", headers{"Sec-Fetch-Site": "none"}, body, 403},
		{"a foreign host", headers{"Host": "evil.example"}, body, 400},
		{"a foreign host of the same origin", headers{"Host": "evil.example", "Origin": "http://evil.example"}, body, 400},
		{"a form", headers{"Content-Type": "application/x-www-form-urlencoded"}, body, 400},
		{"plain text", headers{"Content-Type": "text/plain"}, body, 400},
		{"no type", headers{"Content-Type": ""}, body, 400},
		{"no JSON", headers{}, "path=/zklock/m", 400},
		{"no fencing token", headers{}, fmt.Sprintf(`{"path":"/zklock/m","node":%q}`, hold.Node()), 400},
		{"a number as a fencing token", headers{}, fmt.Sprintf(`{"path":"/zklock/m","node":%q,"token":%d}`, hold.Node(), hold.Token()), 400},
		{"an unknown field", headers{}, strings.Replace(body, "{", `{"force":true,`, 1), 400},
		{"a body without end", headers{}, strings.Repeat(" ", 1<<20) + body, 400},
		{"another fencing token", headers{}, actionRequest(hold, hold.Token()+1), 409},
		{"another znode", headers{}, strings.Replace(body, "-lock-", "-lock-1", 1), 409},
		{"a bad name", headers{}, strings.Replace(body, "/zklock/m\"", "/a//b\"", 1), 400},
	} {
		send := map[string]string{}
		for _, from := range []headers{good, tt.change} {
			for name, value := range from {
				if send[name] = value; value == "" {
					delete(send, name)
				}
			}
		}
		for _, address := range []string{"break", "revoke"} {
			if got, why := s.do(http.MethodPost, address, tt.body, send); got != tt.want || why == "" || strings.Contains(why, secret) {
				t.Errorf("%s, %s: %d %q, want %d", address, tt.name, got, why, tt.want)
			}
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodGet, http.MethodPatch} {
		if got, _ := s.do(method, "break", body, good); got != 405 {
			t.Errorf("%s: %d", method, got)
		}
	}
	if got, _ := s.do(http.MethodPost, "", body, good); got != 405 {
		t.Errorf("a POST of the list: %d", got)
	}
	if err := hold.Verify(t.Context()); err != nil {
		t.Errorf("the hold has ended: %v", err)
	}
	select {
	case <-hold.Revoked():
		t.Error("the holder was asked")
	default:
	}
}

// TestPageWithoutTokenIsReadOnly checks that a page without Options.Token refuses all actions.
func TestPageWithoutTokenIsReadOnly(t *testing.T) {
	s := serve(t, nil)
	hold := s.acquire(s.locks.Mutex("m"))
	for _, authorization := range []string{"", "Bearer ", "Bearer " + secret} {
		headers := map[string]string{"Authorization": authorization, "Content-Type": "application/json", "Origin": s.url}
		for _, address := range []string{"break", "revoke"} {
			if got, why := s.do(http.MethodPost, address, actionRequest(hold, hold.Token()), headers); got != 403 || !strings.Contains(why, "read-only") {
				t.Errorf("%s with %q: %d %s", address, authorization, got, why)
			}
		}
	}
	if err := hold.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOtherSitesReadNothing checks requests that the page of another site sends.
func TestOtherSitesReadNothing(t *testing.T) {
	s := serve(t, nil)
	for _, site := range []string{"cross-site", "same-site"} {
		if got, _ := s.do(http.MethodGet, "?format=json", "", map[string]string{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}); got != 403 {
			t.Errorf("%s: %d", site, got)
		}
		if got, _ := s.do(http.MethodGet, "", "", map[string]string{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}); got != 200 {
			t.Errorf("a link from %s: %d", site, got)
		}
		for dest, want := range map[string]int{"document": 200, "iframe": 403, "frame": 403, "object": 403, "embed": 403} {
			if got, _ := s.do(http.MethodGet, "", "", map[string]string{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": dest}); got != want {
				t.Errorf("%s of %s: %d, want %d", dest, site, got, want)
			}
		}
	}
}

// TestOtherSitesReadNothingOverPlainHTTP checks requests without Sec-Fetch headers: browsers send
// those only to HTTPS addresses and to the loopback.
func TestOtherSitesReadNothingOverPlainHTTP(t *testing.T) {
	s := serve(t, nil)
	const evil = "http://evil.example"
	type headers map[string]string
	for _, tt := range []struct {
		name    string
		headers headers
		page    int // the status of the page itself
		other   int // that of all else
	}{
		{"no browser", headers{}, 200, 200},
		{"the page", headers{"Origin": s.url, "Referer": s.url + "/lock?path=/zklock/m"}, 200, 200},
		{"the page behind a proxy", headers{"Host": "127.0.0.1", "Origin": "https://127.0.0.1", "Referer": "https://127.0.0.1/locks/"}, 200, 200},
		{"a script of another site", headers{"Origin": evil, "Referer": evil + "/"}, 403, 403},
		{"a script of another port", headers{"Origin": "http://127.0.0.1:1"}, 403, 403},
		{"a page without an origin", headers{"Origin": "null"}, 403, 403},
		{"a link or an image of another site", headers{"Referer": evil + "/"}, 200, 403},
		{"an image that claims to accept a page", headers{"Referer": evil, "Accept": "text/html"}, 200, 403},
	} {
		for address, want := range map[string]int{"": tt.page, "sessions": tt.page, "?format=json": tt.other, "status?format=json": tt.other, "assets/main.js": tt.other, "events": tt.other} {
			if got, _ := s.do(http.MethodGet, address, "", tt.headers); got != want {
				t.Errorf("%s: /%s: %d, want %d", tt.name, address, got, want)
			}
		}
	}
	if got, why := s.do(http.MethodPost, "break", "", headers{"Referer": evil, "Accept": "text/html"}); got != 403 || !strings.Contains(why, "another site") {
		t.Errorf("a POST with only the referrer: %d %s", got, why)
	}
}

// TestRevokeAndBreak checks that valid requests revoke and then break a hold.
func TestRevokeAndBreak(t *testing.T) {
	s := serve(t, &zkui.Options{Token: secret})
	hold := s.acquire(s.locks.Mutex("m"))
	asked := hold.Revoked()
	headers := map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json; charset=utf-8"}
	if got, why := s.do(http.MethodPost, "revoke", actionRequest(hold, hold.Token()), headers); got != 200 {
		t.Fatalf("revoke: %d %s", got, why)
	}
	<-asked
	s.await("m", func(l lockJSON) bool { return len(l.Lock.Entries) == 1 && l.Lock.Entries[0].Revoked })
	headers["Origin"], headers["Sec-Fetch-Site"] = s.url, "same-origin"
	if got, why := s.do(http.MethodPost, "break", actionRequest(hold, hold.Token()), headers); got != 200 {
		t.Fatalf("break: %d %s", got, why)
	}
	l := s.await("m", func(l lockJSON) bool { return l.Lock.Holders == 0 })
	if l.History.Broken != 1 || l.History.Losses != 1 {
		t.Errorf("history %+v", l.History)
	}
	if err := hold.Verify(t.Context()); err == nil {
		t.Error("the hold still exists")
	}
	if got, _ := s.do(http.MethodPost, "break", actionRequest(hold, hold.Token()), headers); got != 409 {
		t.Errorf("again: %d", got)
	}
}

// TestRevokeAsksOnlyReaderWithToken checks that the other readers get no release request.
func TestRevokeAsksOnlyReaderWithToken(t *testing.T) {
	s := serve(t, &zkui.Options{Token: secret})
	one, other := s.acquire(s.locks.RWMutex("m").Reader()), s.acquire(s.locks.RWMutex("m").Reader())
	asked, unasked := one.Revoked(), other.Revoked()
	headers := map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json"}
	if got, why := s.do(http.MethodPost, "revoke", actionRequest(one, one.Token()), headers); got != 200 {
		t.Fatalf("revoke: %d %s", got, why)
	}
	<-asked
	l := s.await("m", func(l lockJSON) bool { return len(l.Lock.Entries) == 2 && l.Lock.Entries[0].Revoked })
	select {
	case <-unasked:
		t.Error("the other reader was asked too")
	default:
		if l.Lock.Entries[1].Revoked {
			t.Errorf("the other reader was asked: %+v", l.Lock.Entries)
		}
	}
	if got, _ := s.do(http.MethodPost, "revoke", actionRequest(one, other.Token()), headers); got != 409 {
		t.Errorf("a reader's znode with the token of the other: %d", got)
	}
}

// TestActionsOutsidePrefixAreRefused: the page's token is for the locks that the page shows.
func TestActionsOutsidePrefixAreRefused(t *testing.T) {
	s := serve(t, &zkui.Options{Token: secret, Prefix: "/zklock/mine"})
	headers := map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json", "Origin": s.url}
	for name, want := range map[string]int{"mine": 200, "mine/a": 200, "minestrone": 403, "other": 403} {
		hold := s.acquire(s.locks.Mutex(name))
		body := fmt.Sprintf(`{"path":"/zklock/%s","node":%q,"token":"%d"}`, name, hold.Node(), hold.Token())
		for _, address := range []string{"revoke", "break"} {
			if got, why := s.do(http.MethodPost, address, body, headers); got != want {
				t.Errorf("%s %s: %d %s, want %d", address, name, got, why, want)
			}
		}
		if err := hold.Verify(t.Context()); (err == nil) != (want != 200) {
			t.Errorf("%s is held: %v", name, err)
		}
	}
}

// TestBreakOfForgedTokenKeepsHolder: the data of a znode have the token of another holder. A break
// of the znode with that token does not break the holder.
func TestBreakOfForgedTokenKeepsHolder(t *testing.T) {
	s := serve(t, &zkui.Options{Token: secret})
	hold := s.acquire(s.locks.RWMutex("m").Reader())
	forged, _, err := s.srv.Dial(t).Create(t.Context(), "/zklock/m/_c_0f8fad5b-d9cb-469f-a165-70867728950e-__READ__",
		fmt.Appendf(nil, `{"host":"liar","version":"zklock 9","token":%d}`, hold.Token()), zk.OpenACL(), zk.ModeEphemeralSequential)
	if err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{"Authorization": "Bearer " + secret, "Content-Type": "application/json", "Origin": s.url}
	body := fmt.Sprintf(`{"path":"/zklock/m","node":%q,"token":"%d"}`, forged, hold.Token())
	if got, why := s.do(http.MethodPost, "break", body, headers); got != 409 {
		t.Errorf("break: %d %s", got, why)
	}
	if err := hold.Verify(t.Context()); err != nil {
		t.Errorf("the holder with the token: %v", err)
	}
	if got, why := s.do(http.MethodPost, "break", actionRequest(hold, hold.Token()), headers); got != 200 {
		t.Errorf("break of the holder: %d %s", got, why)
	}
	if got, why := s.do(http.MethodPost, "break", body, headers); got != 200 {
		t.Errorf("break of the forged entry, which is the only one now: %d %s", got, why)
	}
}

// TestReadTokenIsRequired checks that without a token the server sends only the empty page. The
// token for reading, or the one for actions, gives access to the locks.
func TestReadTokenIsRequired(t *testing.T) {
	const reading = "a-token-to-read-with"
	s := serve(t, &zkui.Options{ReadToken: reading, Token: secret})
	hold := s.acquire(s.locks.Mutex("hidden-name"))
	if _, err := zkui.New(nil, &zkui.Options{ReadToken: "short"}); !errors.Is(err, zkui.ErrInvalidOptions) {
		t.Errorf("a token that can be guessed: %v", err)
	}
	for _, address := range []string{"", "lock?path=/zklock/hidden-name", "sessions", "session?id=0x1", "history", "status", "events"} {
		for _, authorization := range []string{"", "Bearer ", "Bearer " + reading + "x", "Basic " + reading, reading} {
			headers := map[string]string{"Accept": "application/json", "Authorization": authorization}
			if got, why := s.do(http.MethodGet, address, "", headers); got != http.StatusUnauthorized || why == "" || strings.Contains(why, reading) {
				t.Errorf("%s with %q: %d %s, want 401", address, authorization, got, why)
			}
		}
		if address == "events" || address == "session?id=0x1" {
			continue // without end, and unknown
		}
		for _, token := range []string{reading, secret} {
			headers := map[string]string{"Accept": "application/json", "Authorization": "Bearer " + token}
			if got, why := s.do(http.MethodGet, address, "", headers); got != 200 && got != 404 {
				t.Errorf("%s with the token: %d %s", address, got, why)
			}
		}
	}
	for _, address := range []string{"", "assets/main.js"} {
		if got, _ := s.do(http.MethodGet, address, "", map[string]string{"Accept": "text/html"}); got != 200 {
			t.Errorf("the page's %q without the token: %d", address, got)
		}
	}
	headers := map[string]string{"Authorization": "Bearer " + reading, "Content-Type": "application/json", "Origin": s.url}
	if got, _ := s.do(http.MethodPost, "break", actionRequest(hold, hold.Token()), headers); got != 403 || hold.Err() != nil {
		t.Errorf("the token for reading breaks locks: %d, %v", got, hold.Err())
	}
}
