package zkui

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/netutil"
)

// policy is the Content-Security-Policy of every response. It permits the page's own
// scripts, styles, images, and addresses, and nothing else. No text becomes HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// routes registers the addresses.
func (h *Handler) routes() {
	h.mux = http.NewServeMux()
	for address, answer := range map[string]func(*http.Request) (int, any){
		"/{$}":      h.list,
		"/lock":     h.lock,
		"/sessions": h.sessions,
		"/session":  h.session,
		"/history":  h.history,
		"/log":      h.logOf,
		"/status":   h.status,
	} {
		h.mux.HandleFunc("GET "+address, h.answer(answer))
	}
	h.mux.HandleFunc("GET /events", h.authorize(h.events))
	h.mux.HandleFunc("GET /assets/", h.asset)
	h.mux.HandleFunc("POST /break", h.action("break", h.breakHold))
	h.mux.HandleFunc("POST /revoke", h.action("revoke", h.revoke))
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusNotFound, "unknown address; see the documentation of package zkui"
		if _, known := h.mux.Handler(&http.Request{Method: http.MethodGet, URL: r.URL, Host: r.Host}); r.Method != http.MethodGet && r.Method != http.MethodHead && known != "/" ||
			r.URL.Path == "/break" || r.URL.Path == "/revoke" {
			status, text = http.StatusMethodNotAllowed, "this address requires another method"
		}
		if status == http.StatusNotFound && strings.Contains(r.Header.Get("Accept"), "text/html") && !wantsJSON(r) {
			unknownPage(w, r)
			return
		}
		write(w, r, status, errorResponse{text})
	})
}

// unknownPage responds to a browser that nothing is at the address. The links of the page
// are relative to the page's root, wherever the handler is mounted.
func unknownPage(w http.ResponseWriter, r *http.Request) {
	text, err := fs.ReadFile(assets, "assets/unknown.html")
	if err != nil {
		http.Error(w, "unknown address", http.StatusNotFound)
		return
	}
	root := "." + strings.Repeat("/..", min(strings.Count(r.URL.Path, "/")-1, maxDepth))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	send(w, r, bytes.ReplaceAll(text, []byte("ROOT"), []byte(root)))
}

// maxDepth limits the levels of an unknown address.
const maxDepth = 64

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
		"Vary":                         "Accept, Accept-Encoding",
	} {
		w.Header().Set(name, value)
	}
	if status, why := h.refusal(r); status != 0 {
		h.refuse(w, r, status, why)
		return
	}
	setWriteDeadline(w)
	if r.URL.Path == "" { // mounted by http.StripPrefix without the slash
		clone := *r
		address := *r.URL
		address.Path, clone.URL = "/", &address
		r = &clone
	}
	h.mux.ServeHTTP(w, r)
}

// Limits of responses, so that a client that reads slowly or not at all cannot hold
// connections and memory for long.
const (
	responseTimeout = 30 * time.Second // for the client to read a response
	bodyTimeout     = 10 * time.Second // for the body of a POST
	maxResponses    = 64               // concurrent JSON responses: each may be megabytes
	maxMakers       = 4                // concurrent JSON responses that are made
)

// setWriteDeadline limits the time to write the response from now on. It has no effect if
// the server has no deadlines.
func setWriteDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout))
}

// answer responds with the page, or with JSON if the request asks for it.
func (h *Handler) answer(answer func(*http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !wantsJSON(r) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(h.page))
			return
		}
		h.authorize(h.limitJSON(answer))(w, r)
	}
}

// limitJSON responds with JSON, unless too many such responses are in progress.
func (h *Handler) limitJSON(answer func(*http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		mine := h.responses.tryAcquire(netutil.ParsePeerKey(r.RemoteAddr))
		if mine == nil {
			w.Header().Set("Retry-After", "1")
			write(w, r, http.StatusServiceUnavailable, errorResponse{"too many concurrent requests; try again in a second"})
			return
		}
		defer h.responses.release(mine)
		status, text := h.makeResponse(w, r, mine.addr, answer)
		setWriteDeadline(w) // again, because making the response may have taken long
		defer h.limitLarge(http.NewResponseController(w), mine.addr, len(text))()
		writeText(w, r, status, text)
	}
}

// makeResponse returns the status and the encoded body of a response. It waits for its turn, but
// for no client.
func (h *Handler) makeResponse(w http.ResponseWriter, r *http.Request, addr netip.Addr,
	answer func(*http.Request) (int, any)) (int, []byte) {
	h.makers.acquire(addr)
	defer h.makers.release()
	status, body := answer(r)
	return status, encode(w, r, body)
}

// wantsJSON reports whether the request asks for JSON rather than for HTML.
func wantsJSON(r *http.Request) bool {
	if r.URL.Query().Get("format") == "json" {
		return true
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	as := strings.Index(accept, "application/json")
	html := strings.Index(accept, "text/html")
	return as >= 0 && (html < 0 || as < html)
}

// errorResponse is the JSON form of an error.
type errorResponse struct {
	Error string `json:"error"`
}

// minGzip is the minimum size of a body that is compressed, in bytes.
const minGzip = 2 << 10

// write responds with JSON.
func write(w http.ResponseWriter, r *http.Request, status int, body any) {
	text := encode(w, r, body)
	setWriteDeadline(w) // again, as in limitJSON
	writeText(w, r, status, text)
}

// writeText responds with the result of encode.
func writeText(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	w.WriteHeader(status)
	send(w, r, text)
}

// encode returns a body as JSON, compressed if it is long and the client accepts that, and sets
// the headers for it.
func encode(w http.ResponseWriter, r *http.Request, body any) []byte {
	text, _ := json.Marshal(body)                          // an error is impossible with these types
	text = slices.Concat(legible.JSON(text), []byte{'\n'}) // append would reserve more
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if len(text) <= minGzip || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return text
	}
	w.Header().Set("Content-Encoding", "gzip")
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // the level is valid
	_, _ = z.Write(text)                                 // a buffer never fails
	_ = z.Close()
	return packed.Bytes()
}

// send writes a body, except for HEAD.
func send(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may have disconnected
	}
}

// asset serves a file of the page.
func (h *Handler) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	text, err := fs.ReadFile(assets, name)
	if err != nil {
		write(w, r, http.StatusNotFound, errorResponse{"unknown asset"})
		return
	}
	// No cache: a newer page must not run with older scripts.
	w.Header().Set("Content-Type", mediaType(name))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
}

// mediaType returns the media type of an asset, independent of the machine's tables.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	}
	return "text/html; charset=utf-8"
}
