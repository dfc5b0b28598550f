package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

const resizeHelp = `Resize sets the number of permits of the semaphore LOCK to N, also while clients
hold permits. Clients that run zklock run --resizable, or use the Go method
ResizableSemaphore, follow that number.

A larger number lets waiters continue at once. A smaller number revokes no
permit: waiters wait until enough permits are released. If an acquire needs more
than N permits, it fails.

A client started with its own number (zklock run --count) uses that number. If
it differs from N, its acquire fails if it finds permits of clients that use N.
Curator clients follow N if they read it by a SharedCount at the path of LOCK
with the suffix /size; others use their own number.

If a client holds or waits for a lock of another kind at LOCK, such as a mutex,
resize fails, because a semaphore does not exclude that client. If a number is
already set, resize only warns.

N stays until you delete the znode LOCK/size. With -o name, resize prints the
path of LOCK.

Exit codes:
  0    the number of permits is N
  125  it could not be set, or it is not known whether it was`

const resizeExample = `  zklock resize api 5
  zklock run --resizable api -- ./call
  zklock resize api 8 && zklock show api`

// Resize returns zklock resize.
func Resize(a *cli.App) *cobra.Command {
	var f readFlags
	var acl cli.ACLValue
	c := &cobra.Command{
		Use:     "resize LOCK N",
		Short:   "Set the number of permits of a semaphore",
		Long:    resizeHelp + "\n\n" + cli.ACLHelp,
		Example: resizeExample,
		Args:    cli.Exactly(2, "a semaphore and its number of permits"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 || n > cli.MaxPermits {
				return cli.UsageError("%s: a semaphore has at least 1 permit, and at most %d", legible.Path(args[1]), cli.MaxPermits)
			}
			return withLock(a, c, &f, args[0], func(ctx context.Context, l *oneLock) error { return resize(a, ctx, l, n, &acl) })
		},
	}
	a.ServerFlags(c)
	f.out.Flag(c)
	acl.Flag(c)
	c.ValidArgsFunction = a.CompleteLocks
	return c
}

// checkSemaphore returns an error if a client uses the path as a lock of another kind, which a
// semaphore at the path does not exclude. If the path has a stored size too, it only warns:
// such a client must not prevent a change of the size.
func checkSemaphore(ctx context.Context, l *oneLock) error {
	s, err := l.r.Read(ctx, l.path)
	if err != nil {
		return nil // a client may set the size without permission to read the entries
	}
	entries := s.Contenders()
	i := slices.IndexFunc(entries, func(e inspect.Entry) bool { return path.Dir(path.Dir(e.Node)) != l.path })
	if i < 0 {
		return nil
	}
	who, recipe := cli.DescribeOwner(entries[i].Entry), entries[i].Recipe
	if _, stored, err := l.z.Exists(ctx, l.path+"/size"); err != nil || !stored {
		return fmt.Errorf("resize %s: not a semaphore: %s uses it as %s; give the name of a semaphore, or a new name", l.name, who, recipe)
	}
	cli.Warn("%s uses %s as %s, which the semaphore does not exclude; use another name for one of them", who, l.name, recipe)
	return nil
}

// resizeView is the output of resize as JSON.
type resizeView struct {
	Path    string `json:"path"`
	Permits int    `json:"permits"`
}

// resize sets the number of permits and prints it.
func resize(a *cli.App, ctx context.Context, l *oneLock, n int, acl *cli.ACLValue) error {
	limited, cancel := a.Settings.ConnectContext(ctx)
	defer cancel()
	line := a.Settings.Progress("resizing %s", l.name)
	defer line.Stop()
	if err := checkSemaphore(limited, l); err != nil {
		return err
	}
	client := zklock.New(l.z, &zklock.Options{Anonymous: true, ACL: acl.List})
	err := client.Resize(limited, l.path, n)
	_ = client.Close() // it has no holds
	line.Stop()
	if errors.Is(err, zk.ErrInvalidACL) {
		return fmt.Errorf("resize %s: %s", l.name, acl.Rejection())
	}
	if err != nil {
		return err
	}
	return l.out.Write(os.Stdout, cli.Result{
		Table: func(out io.Writer) error {
			_, err := fmt.Fprintf(out, "%s has %s\n", l.name, cli.Count(n, "permit"))
			return err
		},
		Names: func() []string { return []string{l.path} },
		Data:  func() []any { return []any{resizeView{l.path, n}} },
	})
}
