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
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/zk"
)

//go:embed assets
var assets embed.FS

// Options say what a [Handler] shows and lets do. The zero value shows the locks
// below /zklock to whoever asks on this machine, and lets nobody do anything.
type Options struct {
	// Title is shown beside the name, as for which servers these are. It may be
	// empty.
	Title string
	// Prefix is the path below which locks are looked for; "/" means everything.
	// Empty means /zklock, where names without a slash are.
	Prefix string
	// Layout is that of the locks, where it is one of the user's own. The zero
	// Layout knows Curator's, kazoo's, go-zookeeper's and zklock's entries.
	Layout zklock.Layout
	// Token lets those who know it break and revoke locks at and below Prefix. Empty
	// means that nobody can. One that is shorter than 16 bytes is refused.
	Token string
	// ReadToken lets those who know it, or Token, see the locks, and nobody else. Empty
	// means everybody who reaches the page. One that is shorter than 16 bytes is refused.
	ReadToken string
	// Hosts are the names under which the page may be asked for, besides localhost
	// and addresses in digits, without ports; "*" means any name, for where somebody
	// before it looks at them.
	Hosts []string
	// Logger is told of what is done to locks, and of refusals. Nil means nobody.
	Logger *slog.Logger
	// ReadRate bounds the reads in a second while all is found, WalkReads those of a
	// look for locks: see package internal/survey, whose defaults, 500 and 20000,
	// 0 stands for.
	ReadRate, WalkReads int
}

// minToken is the shortest token, in bytes.
const minToken = 16

// ErrInvalidOptions is why [New] refuses.
var ErrInvalidOptions = errors.New("zkui: invalid options")

// A Handler answers for the page. It is made by [New], safe for concurrent use, and
// must be closed.
type Handler struct {
	opts    Options
	log     *slog.Logger
	survey  *survey.Survey
	boot    string // tells one handler's versions from another's
	mux     *http.ServeMux
	page    []byte
	stop    context.CancelFunc
	ended   sync.WaitGroup
	closed  chan struct{}
	answers places // of answers with figures that are under way
	streams places

	mu  sync.Mutex // guards what follows; not held across calls
	own []*zklock.Client
	old []*survey.Snapshot // two, that are some time apart, the older first
}

// New returns a handler that looks through z, which stays the caller's to close,
// after the handler. A nil opts means the zero Options. It begins to look at once,
// on goroutines that end with [Handler.Close]. It adds a recursive watch: on servers
// before 3.9 that silences z's own ChildrenW of Options.Prefix, see [zk.Client.AddWatch].
func New(z *zk.Client, opts *Options) (*Handler, error) {
	if opts == nil {
		opts = &Options{}
	}
	if opts.Token != "" && len(opts.Token) < minToken {
		return nil, fmt.Errorf("%w: Token has %d bytes: give at least %d, that nobody can guess", ErrInvalidOptions, len(opts.Token), minToken)
	}
	if opts.ReadToken != "" && len(opts.ReadToken) < minToken {
		return nil, fmt.Errorf("%w: ReadToken has %d bytes: give at least %d, that nobody can guess", ErrInvalidOptions, len(opts.ReadToken), minToken)
	}
	page, err := fs.ReadFile(assets, "assets/index.html")
	if err != nil {
		return nil, err
	}
	var boot [8]byte
	rand.Read(boot[:]) // never fails, says its documentation
	h := &Handler{
		opts: *opts, log: opts.Logger, boot: hex.EncodeToString(boot[:]), page: page, closed: make(chan struct{}), answers: places{most: mostAnswers}, streams: places{most: mostStreams},
		survey: survey.New(z, &survey.Options{
			Prefix: opts.Prefix, Layout: opts.Layout, ReadRate: opts.ReadRate, Limits: survey.Limits{Reads: opts.WalkReads},
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
		if err := h.survey.Run(ctx); ctx.Err() == nil {
			h.log.Error("the page stands still", "error", err)
		}
	})
	h.ended.Go(h.age)
	return h, nil
}

// Close ends the handler: streams end, and what it shows stands still. It closes
// nothing of the client's.
func (h *Handler) Close() error {
	h.mu.Lock()
	first := h.stop != nil
	stop := h.stop
	h.stop = nil
	h.mu.Unlock()
	if !first {
		return nil
	}
	stop()
	close(h.closed)
	h.ended.Wait()
	return h.survey.Close()
}

// Follow lets the page say until when the holds of c are safe, which only their own
// process knows: give it the clients of the process that the handler is mounted in.
// It is to be called before c is closed; stop forgets c.
func (h *Handler) Follow(c *zklock.Client) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.own = append(h.own, c)
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.own = slices.DeleteFunc(slices.Clone(h.own), func(o *zklock.Client) bool { return o == c })
	})
}

// steady is how far apart two looks are by which a deadlock is told from locks that
// were read one after another.
const steady = 2 * time.Second

// age keeps a snapshot of a while ago.
func (h *Handler) age() {
	tick := time.NewTicker(steady)
	defer tick.Stop()
	for {
		select {
		case <-h.closed:
			return
		case <-tick.C:
		}
		now := h.survey.Snapshot()
		h.mu.Lock()
		h.old = append(h.old[max(0, len(h.old)-1):], now)
		h.mu.Unlock()
	}
}
