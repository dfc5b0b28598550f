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
)

// refusal says why a request is not answered at all; a status of 0 means that it is.
func (h *Handler) refusal(r *http.Request) (status int, why string) {
	switch {
	case !h.mayBe(r.Host):
		return http.StatusBadRequest, "this page is not served under that name: somebody may let one of his own point here; name it among the hosts (zklock ui --host) if it is yours"
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate",
		r.Header.Get("Sec-Fetch-Site") == "same-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
		return http.StatusForbidden, "another site's page asked"
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return 0, ""
	case !sameOrigin(r):
		return http.StatusForbidden, "another site's page sent this"
	}
	return 0, ""
}

// refuse answers so, and tells the log.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	h.log.Warn("refused", "why", why, "method", r.Method, "path", r.URL.Path, "host", r.Host, "origin", r.Header.Get("Origin"), "from", r.RemoteAddr)
	write(w, r, status, failure{why})
}

// mayBe reports whether the page may be asked for under a Host header. A name of
// somebody else's can be made to point here, and his page's scripts would then be of
// the same origin. An address in digits can't, and localhost is nobody's.
func (h *Handler) mayBe(host string) bool {
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

// hostname is a Host header without its port, and without the brackets of IPv6.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// sameOrigin reports whether the page itself sent a request that changes something,
// or no page did. All browsers say where such a request comes from.
func sameOrigin(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" {
		return false
	}
	if origin == "" {
		return site == ""
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// maxBody bounds what is sent here, in bytes.
const maxBody = 8 << 10

// isJSON reports whether a request says that its body is JSON: no form of another
// site's can.
func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// knowsToken reports whether a request has the token that lets it act.
func (h *Handler) knowsToken(r *http.Request) bool { return bears(r, h.opts.Token) }

// mayRead reports whether a request may see the locks.
func (h *Handler) mayRead(r *http.Request) bool {
	return h.opts.ReadToken == "" || bears(r, h.opts.ReadToken) || bears(r, h.opts.Token)
}

// bears reports whether a request has a token, which is not empty. How long that takes
// says nothing of how near it comes.
func bears(r *http.Request, token string) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return false
	}
	want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// reading answers only those who may see the locks.
func (h *Handler) reading(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.mayRead(r) {
			// Of the scheme Bearer browsers ask nobody: the page does.
			w.Header().Set("WWW-Authenticate", "Bearer")
			write(w, r, http.StatusUnauthorized, failure{"this page is shown to those who know its token: send it as the header Authorization: Bearer TOKEN"})
			return
		}
		answer(w, r)
	}
}
