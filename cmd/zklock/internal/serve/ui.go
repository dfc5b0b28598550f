package serve

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/internal/inputfile"
	"github.com/zklock/zklock/internal/ownership"
	"github.com/zklock/zklock/zkui"
)

const uiHelp = `Ui serves a web page that shows the locks below PREFIX live: holders, queues,
waiting times, sessions, and the events since the page's server was started.
The default prefix is /zklock, which contains all locks whose names do not
begin with a slash; "/" shows all locks. --prefix is the same as the argument.
The same addresses return JSON on request:
curl -H 'Accept: application/json' ADDRESS.

By default the page is read-only. A user who knows the action token can ask for
the release of a lock, wait, and break the hold. The user confirms each action
with the fencing token of the hold. --actions generates an action token and
prints it; --token-file or ZKLOCK_UI_TOKEN provides one.

--listen takes HOST:PORT; without HOST it means the loopback interface, where
every user of this machine can see the locks. At another address, a token is
required: the one of --read-token-file or ZKLOCK_UI_READ_TOKEN, or the action
token. With --open, the page shows the locks to everyone who can reach it; use
that with a proxy that authenticates users. Token files must not be readable by
other users. The page has no TLS: use a proxy for TLS, and list the proxy's
host names with --host.

It reads all locks once, and at most 20000 znodes. From ZooKeeper 3.6, the
servers then report changes, so idle locks cause no requests. The limit is 500
requests per second, for any number of open pages.`

const uiExample = `  zklock ui
  zklock ui --servers zk1:2181,zk2:2181,zk3:2181 /apps/billing
  zklock ui --actions
  zklock ui --listen 0.0.0.0:8080 --host locks.example.org --open`

// uiAddress is the default address of the page.
const uiAddress = "127.0.0.1:7181"

// uiFlags are the flags of zklock ui.
type uiFlags struct {
	listen    string
	hosts     []string
	tokenFile string
	readFile  string
	open      bool
	actions   bool
	layout    cli.LayoutValue
}

// UI returns zklock ui.
func UI(a *cli.App) *cobra.Command {
	var f uiFlags
	c := &cobra.Command{
		Use:     "ui [PREFIX]",
		Short:   "Serve a web page that shows locks live",
		Long:    uiHelp,
		Example: uiExample,
		Args:    cli.AtMostOnePrefix,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.Begin(c, a.Settings.Check); err != nil {
				return err
			}
			prefix, err := cli.PrefixOf(c, args)
			if err != nil {
				return err
			}
			token, err := f.token()
			if err != nil {
				return err
			}
			if f.listen, err = loopbackAddress("--listen", f.listen, "HOST:PORT, or :PORT"); err != nil {
				return err
			}
			read, err := f.readToken(token)
			if err != nil {
				return err
			}
			return ui(a, &f, prefix, token, read)
		},
	}
	a.ServerFlags(c)
	a.PrefixFlag(c)
	c.ValidArgsFunction = a.CompleteLocks
	f.layout.Flag(c)
	c.Flags().StringVar(&f.listen, "listen", uiAddress, "`address`; default: "+uiAddress)
	c.Flags().StringSliceVar(&f.hosts, "host", nil, "host `name` of the page; repeatable")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "private `file` with the action token")
	c.Flags().StringVar(&f.readFile, "read-token-file", "", "private `file` with the read token")
	c.Flags().BoolVar(&f.open, "open", false, "show the locks to every visitor")
	c.Flags().BoolVar(&f.actions, "actions", false, "generate an action token and print it")
	c.MarkFlagsMutuallyExclusive("token-file", "actions")
	c.MarkFlagsMutuallyExclusive("read-token-file", "open")
	return c
}

// token returns the token with which users of the page can break locks, "" if they cannot.
func (f *uiFlags) token() (string, error) {
	switch {
	case f.actions:
		return rand.Text(), nil
	case f.tokenFile == "":
		return checkToken(os.Getenv(cli.EnvUIToken), cli.EnvUIToken)
	}
	return tokenIn(f.tokenFile, "--token-file")
}

// readToken returns the token that users of the page need to see locks, "" if they need
// none. If other machines can reach the page, that needs --open.
func (f *uiFlags) readToken(token string) (string, error) {
	if f.open {
		if os.Getenv(cli.EnvUIReadToken) != "" {
			return "", cli.UsageError("--open shows the locks without the token in %s: omit --open, or unset %[1]s", cli.EnvUIReadToken)
		}
		return "", nil
	}
	if f.readFile != "" {
		return tokenIn(f.readFile, "--read-token-file")
	}
	read, err := checkToken(os.Getenv(cli.EnvUIReadToken), cli.EnvUIReadToken)
	if err != nil || read != "" || !beyond(f.listen) {
		return read, err
	}
	if token != "" {
		return token, nil
	}
	return "", cli.UsageError("other machines can reach --listen %s and would see all locks: give --read-token-file, or --open if that is intended or a proxy asks for a password", f.listen)
}

// tokenIn reads a token from a file. It returns an error if other users may read the file.
func tokenIn(file, flag string) (string, error) {
	text, info, err := inputfile.Read(file, 4096)
	if err != nil {
		return "", cli.UsageError("%s: %w", flag, err)
	}
	if problem := ownership.Exposed(info); info.Mode().IsRegular() && problem != "" {
		return "", cli.UsageError("%s: %s: %s", flag, file, problem)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", cli.UsageError("%s: %s is empty", flag, file)
	}
	return checkToken(token, flag)
}

// checkToken returns an error for a token that is easy to guess.
func checkToken(token, from string) (string, error) {
	if token != "" && (len(token) < 16 || strings.ContainsAny(token, " \t\r\n")) {
		return "", cli.UsageError("%s: the token must be one word of at least 16 characters; openssl rand -hex 16 generates one", from)
	}
	return token, nil
}

// uiLogger returns the logger of the page.
func uiLogger() *slog.Logger { return slog.New(slog.NewTextHandler(cli.Stderr, nil)) }

// ui serves the page until a signal arrives.
func ui(a *cli.App, f *uiFlags, prefix, token, read string) error {
	signals := cli.TerminationSignals()
	defer signal.Stop(signals)
	ctx, stop := cli.Interruptible(signals, nil)
	z, err := a.Settings.ReadClient(ctx)
	stop() // from here on servePage reads the signals
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer z.Close()
	if err := cli.Interrupted(ctx, nil); err != nil {
		return err
	}
	h, err := zkui.New(z, &zkui.Options{
		Title: a.Settings.Servers, Prefix: prefix, Layout: f.layout.Layout, Token: token, ReadToken: read, Hosts: f.hosts,
		Logger: uiLogger(),
	})
	if err != nil {
		return err
	}
	defer h.Close()
	ln, err := listenAt(f.listen)
	if err != nil {
		return err
	}
	switch {
	case !beyond(f.listen):
	case read == "":
		cli.Warn("serving at %s to other machines, without TLS and without a token: every user who can connect sees all locks, and an attacker on the network can read the tokens; put a proxy with TLS in front of it", ln.Addr())
	default:
		cli.Warn("serving at %s to other machines, without TLS: an attacker on the network can read the page and the tokens; put a proxy with TLS in front of it", ln.Addr())
	}
	if f.actions {
		cli.Warn("with this token, users can break and revoke locks on the page: %s", token)
	}
	printLine("page at %s", pageAddress(ln, "/"))
	return servePage(h, ln, signals)
}

// servePage serves until a signal arrives.
func servePage(h *zkui.Handler, ln net.Listener, signals <-chan os.Signal) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		DisableGeneralOptionsHandler: true, // h checks the host of all requests
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(few(ln, maxUIConns)) }() // ends with the server
	select {
	case err := <-ended:
		return err
	case <-signals:
	}
	_ = h.Close() // ends streams, for which Shutdown would wait
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // also ends requests in progress
	}
	<-ended
	return nil
}

// maxUIConns limits the connections to the page. A browser uses several.
const maxUIConns = 512
