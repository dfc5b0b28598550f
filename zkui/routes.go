package zkui

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/netkey"
)

// policy is the Content-Security-Policy of every answer: the page's own scripts,
// styles, pictures and addresses, and nothing else. No text becomes HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// routes sets up the addresses.
func (h *Handler) routes() {
	h.mux = http.NewServeMux()
	for address, answer := range map[string]func(*http.Request) (int, any){
		"/{$}":      h.list,
		"/lock":     h.lock,
		"/sessions": h.sessions,
		"/session":  h.session,
		"/history":  h.history,
		"/status":   h.status,
	} {
		h.mux.HandleFunc("GET "+address, h.answering(answer))
	}
	h.mux.HandleFunc("GET /events", h.reading(h.events))
	h.mux.HandleFunc("GET /assets/", h.asset)
	h.mux.HandleFunc("POST /break", h.acting("break", h.breakHold))
	h.mux.HandleFunc("POST /revoke", h.acting("revoke", h.revoke))
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusNotFound, "there is no such address; see the documentation of package zkui"
		if _, known := h.mux.Handler(&http.Request{Method: http.MethodGet, URL: r.URL, Host: r.Host}); r.Method != http.MethodGet && r.Method != http.MethodHead && known != "/" ||
			r.URL.Path == "/break" || r.URL.Path == "/revoke" {
			status, text = http.StatusMethodNotAllowed, "this address takes another method"
		}
		write(w, r, status, failure{text})
	})
}

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
	begin(w)
	if r.URL.Path == "" { // mounted by http.StripPrefix without the slash
		clone := *r
		address := *r.URL
		address.Path, clone.URL = "/", &address
		r = &clone
	}
	h.mux.ServeHTTP(w, r)
}

// Bounds of answers, so that those who read slowly, or not at all, keep neither
// connections nor memory for long.
const (
	answerTime  = 30 * time.Second // for one answer to be read
	bodyTime    = 10 * time.Second // for what a POST sends
	mostAnswers = 64               // with figures, at a time: each may be megabytes
)

// begin bounds how long the answer may take to be read from now on. Where the server
// has no deadlines there are none.
func begin(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
}

// answering answers with the page or, to those who want it, with JSON.
func (h *Handler) answering(answer func(*http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !wantsJSON(r) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(h.page))
			return
		}
		h.reading(h.figures(answer))(w, r)
	}
}

// figures answers with JSON, where not too many ask for it.
func (h *Handler) figures(answer func(*http.Request) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		mine := h.answers.tryTake(netkey.OfText(r.RemoteAddr))
		if mine == nil {
			w.Header().Set("Retry-After", "1")
			write(w, r, http.StatusServiceUnavailable, failure{"too many ask at once; ask again in a second"})
			return
		}
		defer h.answers.leave(mine)
		status, body := answer(r)
		write(w, r, status, body)
	}
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

// failure is an error as JSON.
type failure struct {
	Error string `json:"error"`
}

// small is how long a body is at least that is worth compressing, in bytes.
const small = 2 << 10

// write answers with JSON.
func write(w http.ResponseWriter, r *http.Request, status int, body any) {
	begin(w) // anew: what was asked for may have taken long
	text, err := json.Marshal(body)
	if err != nil { // no type here can do that
		http.Error(w, "the answer could not be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if len(text) < small || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(status)
		send(w, r, append(text, '\n'))
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		_, err = z.Write(text)
	}
	if err == nil && z.Close() == nil { // a buffer takes all
		send(w, r, packed.Bytes())
	}
}

// send writes a body, but to HEAD.
func send(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // whoever asked may have gone
	}
}

// asset answers with a part of the page.
func (h *Handler) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	text, err := fs.ReadFile(assets, name)
	if err != nil {
		write(w, r, http.StatusNotFound, failure{"there is no such asset"})
		return
	}
	// No cache keeps an older page's scripts beside a newer page.
	w.Header().Set("Content-Type", mediaType(name))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
}

// mediaType is that of an asset, whatever the machine's own tables say.
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
