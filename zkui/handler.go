package zkui

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/zk"
)

//go:embed assets
var assets embed.FS

// Options configure a [Handler]. The zero value shows the locks below /zklock to every client
// that reaches the handler by an IP address or as localhost, and allows no changes.
type Options struct {
	// Title is shown next to the name, for example to tell ensembles apart. It may be
	// empty.
	Title string
	// Prefix is the path below which the page shows locks; "/" means the whole tree. Empty
	// means /zklock, which contains the locks whose names do not begin with a slash.
	Prefix string
	// Layout is the custom layout of the locks. The zero Layout knows the entries of
	// Curator, kazoo, go-zookeeper, and zklock.
	Layout zklock.Layout
	// Token lets clients that send it break and revoke locks at and below Prefix. Empty
	// means that no client can. It must have at least 16 bytes.
	Token string
	// ReadToken limits reading to clients that send it or Token. Empty means that every
	// client that reaches the page can read. It must have at least 16 bytes.
	ReadToken string
	// Hosts are the host names, without ports, under which the page is served, in addition
	// to localhost and IP addresses; "*" means any name, if a proxy checks them.
	Hosts []string
	// Logger logs changes of locks and refused requests: at most 20 of these at once, and
	// then one a second. Nil means no log.
	Logger *slog.Logger
	// MaxReadRate and MaxListReads limit the reads from the servers, as MaxReadRate and
	// List.MaxReads of [inspect.WatchOptions] do. 0 means 500 and 20000.
	MaxReadRate, MaxListReads int
}

// minTokenLength is the minimum length of a token, in bytes.
const minTokenLength = 16

// ErrInvalidOptions means that [New] refused its options.
var ErrInvalidOptions = errors.New("zkui: invalid options")

// A Handler serves the page. [New] creates it. It is safe for concurrent use. Close it
// after use.
type Handler struct {
	opts      Options
	log       *slog.Logger
	watcher   *inspect.Watcher
	boot      string // distinguishes the versions of this handler from those of others
	mux       *http.ServeMux
	page      []byte
	stop      context.CancelFunc
	ended     sync.WaitGroup
	closed    chan struct{}
	responses slots // JSON responses in progress
	streams   slots
	waits     slots // actions that wait for a release
	// large are the large events and responses that are being written. encoders are the streams
	// that encode an event, and makers the requests whose response is made.
	large    slots
	encoders turns
	makers   turns
	began    time.Time
	refusals netutil.LogLimiter // of lines about refused requests

	mu              sync.Mutex // guards what follows; not held across calls
	clients         []*zklock.Client
	troubles        *troubles
	troublesChanged chan struct{} // closed when troubles is replaced
}

// New returns a handler that reads with z. The caller closes z after the handler. A nil
// opts means the zero Options. The handler starts to read at once, in goroutines that end
// with [Handler.Close]. It adds a recursive watch. On servers before 3.9, that silences z's
// own ChildrenW of Options.Prefix: see [zk.Client.AddWatch].
func New(z *zk.Client, opts *Options) (*Handler, error) {
	if opts == nil {
		opts = &Options{}
	}
	if opts.Token != "" && len(opts.Token) < minTokenLength {
		return nil, fmt.Errorf("%w: Token has %d bytes: use a random token of at least %d", ErrInvalidOptions, len(opts.Token), minTokenLength)
	}
	if opts.ReadToken != "" && len(opts.ReadToken) < minTokenLength {
		return nil, fmt.Errorf("%w: ReadToken has %d bytes: use a random token of at least %d", ErrInvalidOptions, len(opts.ReadToken), minTokenLength)
	}
	page, err := fs.ReadFile(assets, "assets/index.html")
	if err != nil {
		return nil, err
	}
	var boot [8]byte
	rand.Read(boot[:]) // never fails
	h := &Handler{
		opts: *opts, log: opts.Logger, boot: hex.EncodeToString(boot[:]), page: page, closed: make(chan struct{}), began: time.Now(),
		responses: slots{max: maxResponses}, streams: slots{max: maxStreams}, waits: slots{max: maxWaits}, large: slots{max: maxLarge, maxSize: maxLargeSize},
		encoders: turns{max: maxEncoders}, makers: turns{max: maxMakers},
		troubles: &troubles{deadlocks: [][]step{}}, troublesChanged: make(chan struct{}),
		watcher: inspect.NewWatcher(z, &inspect.WatchOptions{
			Prefix: opts.Prefix, Layout: opts.Layout, MaxReadRate: opts.MaxReadRate, List: inspect.ListOptions{MaxReads: opts.MaxListReads},
		}),
	}
	h.opts.Hosts = slices.Clone(opts.Hosts)
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.routes()
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	h.ended.Go(func() {
		if err := h.watcher.Run(ctx); ctx.Err() == nil {
			h.log.Error("the page no longer updates", "error", err)
		}
	})
	h.ended.Go(h.keepTroubles)
	return h, nil
}

// Close ends the handler. Its streams end, and later responses show its last state. It does
// not close the client.
func (h *Handler) Close() error {
	h.mu.Lock()
	stop := h.stop
	h.stop = nil
	h.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	close(h.closed)
	h.ended.Wait()
	return h.watcher.Close()
}

// Follow makes the page show the deadlines of c's holds. Only the process that has a hold
// knows its deadline, so pass the lock clients of the process in which the handler runs.
// Call Follow before c is closed. The function stop ends it.
func (h *Handler) Follow(c *zklock.Client) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients = append(h.clients, c)
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.clients = slices.DeleteFunc(slices.Clone(h.clients), func(o *zklock.Client) bool { return o == c })
	})
}
