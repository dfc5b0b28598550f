package locks

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestThenBreakBreaksOnlyAskedHold checks that zklock revoke --then-break breaks a hold that was
// downgraded after the request, and not that of another client whose data claim its token.
func TestThenBreakBreaksOnlyAskedHold(t *testing.T) {
	srv := zktest.Start(t)
	locks, stranger := zklock.New(srv.Dial(t), nil), srv.Dial(t)
	defer locks.Close()
	hold, err := locks.RWMutex("m").Writer().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	revoked := hold.Revoked()
	claimed := make(chan string, 1)
	go func() { // ends after the request
		<-revoked
		if err := hold.Downgrade(t.Context()); err != nil {
			t.Error(err)
		}
		data := fmt.Appendf(nil, `{"version":"zklock x","token":%d}`, hold.Token())
		name := "/zklock/m/_c_0f8fad5b-d9cb-469f-a165-70867728950e-__READ__"
		node, _, err := stranger.Create(t.Context(), name, data, zk.OpenACL(), zk.ModeEphemeralSequential)
		if err != nil {
			t.Error(err)
		}
		claimed <- node
	}()
	c := Revoke(&cli.App{})
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs([]string{"m", "--wait", "1s", "--then-break", "--yes", "--servers", srv.ListenTCP(t)})
	if err := c.Execute(); err != nil {
		t.Error(err)
	}
	<-hold.Done()
	if err := hold.Err(); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("the hold: %v", err)
	}
	if _, there, err := stranger.Exists(t.Context(), <-claimed); err != nil || !there {
		t.Errorf("the entry of the other client was deleted, %v", err)
	}
}

// runRevoke runs zklock revoke --wait --then-break for the lock m.
func runRevoke(t *testing.T, srv *zktest.Server, args ...string) error {
	t.Helper()
	c := Revoke(&cli.App{})
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(append(args, "m", "--wait", "1s", "--then-break", "--yes", "--servers", srv.ListenTCP(t)))
	return c.Execute()
}

// acquire acquires a lock for a test.
func acquire(t *testing.T, lock *zklock.Lock) *zklock.Hold {
	t.Helper()
	hold, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// exists reports whether a znode exists, which may be unreadable.
func exists(t *testing.T, z *zk.Client, node string) bool {
	t.Helper()
	_, there, err := z.Exists(t.Context(), node)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) {
		t.Fatal(err)
	}
	return there || err != nil
}

// TestThenBreakIgnoresClaimedTokens checks that zklock revoke --then-break breaks all holds that it
// asked, and no other hold of their session, whatever tokens the data of the entries claim.
func TestThenBreakIgnoresClaimedTokens(t *testing.T) {
	srv := zktest.Start(t)
	locks, stranger := zklock.New(srv.Dial(t), nil), srv.Dial(t)
	defer locks.Close()
	claim := func(hold *zklock.Hold, token int64) {
		data := fmt.Appendf(nil, `{"version":"zklock x","token":%d}`, token)
		if _, err := stranger.Set(t.Context(), hold.Node(), data, -1); err != nil {
			t.Error(err)
		}
	}
	reader := locks.RWMutex("m").Reader()
	asked, other := acquire(t, reader), acquire(t, reader)
	claim(other, asked.Token())
	revoked := asked.Revoked()
	go func() { // ends after the request
		<-revoked
		_ = asked.Release(t.Context())
	}()
	if err := runRevoke(t, srv, "--token", fmt.Sprint(asked.Token())); err != nil {
		t.Error(err)
	}
	if !exists(t, stranger, other.Node()) {
		t.Error("a hold that was not asked is broken")
	}
	another := acquire(t, reader)
	claim(other, 1)
	claim(another, 1)
	if err := runRevoke(t, srv); err != nil {
		t.Error(err)
	}
	if exists(t, stranger, other.Node()) || exists(t, stranger, another.Node()) {
		t.Error("a hold that was asked is not broken")
	}
}

// TestThenBreakKeepsHoldThatItCannotBreak checks that zklock revoke --then-break does not report a
// hold as released whose entry belongs to no session or may not be read, and breaks the others.
func TestThenBreakKeepsHoldThatItCannotBreak(t *testing.T) {
	srv := zktest.Start(t)
	locks, stranger := zklock.New(srv.Dial(t), nil), srv.Dial(t)
	defer locks.Close()
	reader := locks.RWMutex("m").Reader()
	hidden, open := acquire(t, reader), acquire(t, reader)
	revoked := hidden.Revoked()
	closed := []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "root:x"}}
	go func() { // ends after the request
		<-revoked
		if _, err := stranger.SetACL(t.Context(), hidden.Node(), closed, -1); err != nil {
			t.Error(err)
		}
	}()
	err := runRevoke(t, srv)
	if !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), hidden.Node()) ||
		cli.ExitCode(err) != cli.ExitFailed {
		t.Errorf("revoke of a hold whose entry may not be read: %v", err)
	}
	if exists(t, stranger, open.Node()) || !exists(t, stranger, hidden.Node()) {
		t.Error("the hold that may be broken is not broken, or the other one is")
	}
	if err := hidden.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	const name = "/zklock/m/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-0000000000"
	if _, _, err := stranger.Create(t.Context(), name, nil, zk.OpenACL(), zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	err = runRevoke(t, srv)
	if !errors.Is(err, inspect.ErrNotHeld) || !strings.Contains(err.Error(), "belongs to no session") ||
		cli.ExitCode(err) != cli.ExitNo {
		t.Errorf("revoke of a hold without a session: %v", err)
	}
}

// printed returns what a command prints, which must succeed.
func printed(t *testing.T, run func() error) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdout := os.Stdout
	os.Stdout = f
	err = run()
	os.Stdout = stdout
	text, readErr := os.ReadFile(f.Name())
	if err != nil || readErr != nil {
		t.Error(err, readErr)
	}
	return string(text)
}

// TestPrintedTokenIsThatOfTheCommand checks that verify, revoke, and break show the token that they
// got for a hold whose data claim another one.
func TestPrintedTokenIsThatOfTheCommand(t *testing.T) {
	srv := zktest.Start(t)
	locks, stranger := zklock.New(srv.Dial(t), nil), srv.Dial(t)
	defer locks.Close()
	hold := acquire(t, locks.RWMutex("m").Reader())
	claim := []byte(`{"version":"zklock x","token":1}`)
	if _, err := stranger.Set(t.Context(), hold.Node(), claim, -1); err != nil {
		t.Fatal(err)
	}
	token, servers := fmt.Sprint(hold.Token()), srv.ListenTCP(t)
	for _, tt := range []struct {
		c    *cobra.Command
		args []string
	}{
		{Verify(&cli.App{}), []string{"m", token}},
		{Verify(&cli.App{}), []string{"m", token, "-o", "json"}},
		{Revoke(&cli.App{}), []string{"m", "--token", token, "-o", "json"}},
		{Break(&cli.App{}), []string{"m", "--token", token, "--yes"}},
	} {
		tt.c.SetArgs(append(tt.args, "--servers", servers))
		text := printed(t, tt.c.Execute)
		tokens := regexp.MustCompile(`token(?: |": *")(\d+)`).FindAllStringSubmatch(text, -1)
		other := func(found []string) bool { return found[1] != token }
		if len(tokens) == 0 || slices.ContainsFunc(tokens, other) {
			t.Errorf("%s %q printed %q", tt.c.Name(), tt.args, text)
		}
	}
}
