package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/cmd/zklock/internal/home"
	"github.com/zklock/zklock/cmd/zklock/internal/inherit"
	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/cmd/zklock/internal/zoocfg"
	"github.com/zklock/zklock/zkserver"
)

const serveHelp = `Serve runs a server of one node that speaks ZooKeeper's protocol, until it is
interrupted. It is for one machine, and for sharing locks between machines that
can do without when that one fails; past that, use an ensemble of ZooKeeper.

` + serveTLSHelp + `

--status and --stop are about this user's local server, which the other
commands start by themselves. Different users have different local servers, and
their locks do not exclude each other.`

// controlTime bounds --status and --stop.
const controlTime = 15 * time.Second

// serveFlags are the flags of serve.
type serveFlags struct {
	listen, data, config string
	memory, stop, status bool
	local                string
	idle                 span.Value
	tls                  serveTLSFlags
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Run a server, or see after the local one",
		Long:    serveHelp,
		Example: serveTLSExample,
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.begin(c); err != nil {
				return err
			}
			return f.run(c)
		},
	}
	f.idle.D = local.DefaultIdle
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:2181", "listen at this `address`")
	flags.StringVar(&f.data, "data", "", "keep everything in this `directory`")
	flags.BoolVar(&f.memory, "memory", false, "keep everything in memory: nothing survives the server")
	flags.StringVar(&f.config, "config", "", "take settings from this `zoo.cfg`; flags come first")
	f.tls.flags(flags)
	flags.BoolVar(&f.status, "status", false, "show this user's local server")
	flags.BoolVar(&f.stop, "stop", false, "stop this user's local server; it keeps its data")
	flags.StringVar(&f.local, "local", "", "serve a user's local server in this directory")
	flags.Var(&f.idle, "idle", "with --local: leave when there was no session for this time")
	for _, hidden := range []string{"local", "idle"} {
		flags.Lookup(hidden).Hidden = true
	}
	c.MarkFlagsMutuallyExclusive("data", "memory", "status", "stop", "local")
	return c
}

// run does the one thing that was asked for.
func (f *serveFlags) run(c *cobra.Command) error {
	switch {
	case f.local != "":
		return f.serveLocal()
	case f.status:
		return f.showLocal()
	case f.stop:
		return f.stopLocal()
	}
	secure, err := f.tls.settings()
	if err != nil {
		return err
	}
	opts, listen, err := f.options(c.Flags().Changed("listen"))
	if err != nil {
		return err
	}
	if secure.Listen != "" && !c.Flags().Changed("listen") && f.config == "" {
		listen = ""
	}
	return serve(opts, listen, secure)
}

// options joins the configuration file and the flags.
func (f *serveFlags) options(listenGiven bool) (zkserver.Options, string, error) {
	opts := zkserver.Options{DataDir: f.data, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	listen := f.listen
	if f.config != "" {
		cfg, err := readConfig(f.config)
		if err != nil {
			return opts, "", err
		}
		for _, w := range cfg.Warnings {
			warn("%s", w)
		}
		opts = withConfig(opts, cfg)
		if !listenGiven {
			listen = cfg.Listen()
		}
	}
	if f.memory {
		opts.DataDir = ""
	} else if opts.DataDir == "" {
		return opts, "", usage("say where to keep the data: --data DIRECTORY, --memory, or --config with a dataDir")
	}
	return opts, listen, checkAddress("--listen", listen)
}

// readConfig reads a zoo.cfg; what is wrong with it is wrong usage.
func readConfig(name string) (*zoocfg.Config, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, usage("--config: %w", err)
	}
	defer file.Close()
	cfg, err := zoocfg.Parse(name, file)
	if err != nil {
		return nil, usage("--config: %w", err)
	}
	return cfg, nil
}

// withConfig sets what the file says and the flags do not.
func withConfig(o zkserver.Options, c *zoocfg.Config) zkserver.Options {
	if o.DataDir == "" {
		o.DataDir = c.DataDir
	}
	o.TickTime, o.MinSessionTimeout, o.MaxSessionTimeout = c.TickTime, c.MinSessionTimeout, c.MaxSessionTimeout
	o.MaxClientConns, o.FourLetterWords, o.ContainerCheckInterval = c.MaxClientConns, c.FourLetterWords, c.ContainerInterval
	o.SuperDigest, o.ExtendedTypes, o.ReconfigEnabled = c.SuperDigest, c.ExtendedTypes, c.ReconfigEnabled
	return o
}

// serve serves until a signal, at the address listen unless that is empty, and
// with TLS where that is wanted. It says on standard output where, once clients
// can connect.
func serve(opts zkserver.Options, listen string, secure serveTLS) error {
	config, err := secure.config()
	if err != nil {
		return usage("%w", err)
	}
	server, err := zkserver.New(opts)
	if errors.Is(err, zkserver.ErrOptions) {
		return usage("%w", err)
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listeners, err := secure.listeners(listen, config)
	// Each goroutine ends when its Serve has returned or a signal came.
	ended := make(chan error, len(listeners))
	for _, ln := range listeners {
		go func() { ended <- server.Serve(ln) }()
	}
	if err == nil {
		select {
		case err = <-ended:
		case <-ctx.Done():
		}
	}
	end, cancel := context.WithTimeout(context.Background(), controlTime)
	defer cancel()
	return errors.Join(err, server.Shutdown(end))
}

// serveLocal is the background process. Its third descriptor is a pipe to the
// command that started it; without one it runs in the foreground all the same.
func (f *serveFlags) serveLocal() error {
	const pipe = 3
	inherit.Close(pipe)
	ready := os.NewFile(pipe, "ready")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP)
	return local.Serve(ctx, local.Place{Dir: f.local}, f.idle.D, func(word string) {
		// Who started us may be gone, or never have been.
		_, _ = fmt.Fprintln(ready, strings.ReplaceAll(word, "\n", "; "))
		_ = ready.Close()
	})
}

// place is this user's local server.
func place() (local.Place, error) {
	dir, err := home.Dir(home.Mine())
	return local.Place{Dir: dir}, err
}

// showLocal prints the state of the local server.
func (f *serveFlags) showLocal() error {
	p, err := place()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTime)
	defer cancel()
	st, err := p.Status(ctx)
	if err != nil && !errors.Is(err, local.ErrNotRunning) {
		return err
	}
	fmt.Printf("directory: %s\n", st.Dir)
	if err != nil {
		fmt.Println("running:   no; the next command that needs it starts it")
	} else {
		fmt.Printf("running:   yes, process %d\nsocket:    %s\nsessions:  %s\n", st.PID, st.Socket, st.Sessions)
	}
	fmt.Println("Different users have different local servers; their locks do not exclude each other.")
	return nil
}

// stopLocal ends the local server.
func (f *serveFlags) stopLocal() error {
	p, err := place()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTime)
	defer cancel()
	err = p.Stop(ctx)
	if errors.Is(err, local.ErrNotRunning) {
		fmt.Println("the local server was not running")
		return nil
	}
	if err == nil {
		fmt.Println("stopped; locks that are held go on when a command starts it again")
	}
	return err
}
