package zkui

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

// refusal returns why the handler refuses a request; a status of 0 means that it does not.
func (h *Handler) refusal(r *http.Request) (status int, why string) {
	switch {
	case !h.knownHost(r.Host):
		return http.StatusBadRequest, "unknown host name: if the name is yours, add it to the hosts (zklock ui --host)"
	case fromOtherSite(r):
		return http.StatusForbidden, "request from a page of another site"
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return 0, ""
	case !sameOrigin(r):
		return http.StatusForbidden, "request from a page of another site"
	}
	return 0, ""
}

// fromOtherSite reports whether a page of another site caused the request, other than by a
// link. Browsers send Sec-Fetch headers only to HTTPS addresses and to the loopback.
func fromOtherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return !followsLink(r)
	case "":
		origin, referer := r.Header.Get("Origin"), r.Header.Get("Referer")
		return origin != "" && !isOwn(r, origin) || referer != "" && !isOwn(r, referer) && !asksForPage(r)
	}
	return false
}

// asksForPage reports whether the response is the HTML page, which contains no locks.
func asksForPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !wantsJSON(r) &&
		r.URL.Path != "/events" && !strings.HasPrefix(r.URL.Path, "/assets/")
}

// followsLink reports whether the browser shows the response in a window, and not in a frame
// of a page. Some browsers do not send the destination.
func followsLink(r *http.Request) bool {
	dest := r.Header.Get("Sec-Fetch-Dest")
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && (dest == "" || dest == "document")
}

// maxLogged limits each value of a refused request in the log, in characters.
const maxLogged = 200

// refuse sends an error response and logs the request, unless there were too many.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	if skipped, ok := h.refusals.Allow(time.Since(h.began)); ok {
		shown := func(text string) string { return legible.Text(inspect.Truncate(text, maxLogged)) }
		args := []any{"why", why, "method", shown(r.Method), "path", shown(r.URL.Path), "host", shown(r.Host), "origin", shown(r.Header.Get("Origin")), "from", r.RemoteAddr}
		if skipped > 0 {
			args = append(args, "not_logged", skipped)
		}
		h.log.Warn("refused", args...)
	}
	write(w, r, status, errorResponse{why})
}

// knownHost reports whether the page is served under a Host header. An attacker can point a
// name of their own at this server; the scripts of the attacker's page would then have the
// same origin. This is impossible with an IP address or localhost.
func (h *Handler) knownHost(host string) bool {
	name := strings.ToLower(hostname(host))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return slices.ContainsFunc(h.opts.Hosts, func(known string) bool {
		return known == "*" || strings.EqualFold(known, name)
	})
}

// hostname returns a Host header without its port and without the brackets of IPv6.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// sameOrigin reports whether this page, or no page, sent a request that changes something.
// All browsers send the origin with such a request.
func sameOrigin(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" {
		return false
	}
	if origin == "" {
		return site == ""
	}
	return isOwn(r, origin)
}

// isOwn reports whether an Origin or a Referer names the host of the request. A proxy may use
// another scheme.
func isOwn(r *http.Request, address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// maxBody limits the body of a request, in bytes.
const maxBody = 8 << 10

// isJSON reports whether a request declares its body as JSON. A form of another site
// cannot.
func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// mayAct reports whether a request has the token that permits changes.
func (h *Handler) mayAct(r *http.Request) bool { return hasToken(r, h.opts.Token) }

// mayRead reports whether a request may see the locks.
func (h *Handler) mayRead(r *http.Request) bool {
	return h.opts.ReadToken == "" || hasToken(r, h.opts.ReadToken) || hasToken(r, h.opts.Token)
}

// hasToken reports whether a request has a token that is not empty. The time that it takes
// does not depend on how similar the tokens are.
func hasToken(r *http.Request, token string) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return false
	}
	want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// authorize answers only requests that may see the locks.
func (h *Handler) authorize(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.mayRead(r) {
			// Browsers do not prompt for the scheme Bearer. The page does.
			w.Header().Set("WWW-Authenticate", "Bearer")
			const why = "a token is required: send the header Authorization: Bearer TOKEN"
			if r.Header.Get("Authorization") != "" {
				h.refuse(w, r, http.StatusUnauthorized, why) // it may be a guess
			} else {
				write(w, r, http.StatusUnauthorized, errorResponse{why})
			}
			return
		}
		answer(w, r)
	}
}
