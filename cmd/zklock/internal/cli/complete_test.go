package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestCompletionEndsIfServersFallSilent checks that completion does not wait for servers that no
// longer answer, after its time is over.
func TestCompletionEndsIfServersFallSilent(t *testing.T) {
	srv := zktest.Start(t)
	var a App
	a.Settings.Servers = srv.ListenTCP(t)
	began, called := time.Now(), false
	a.forCompletion(&cobra.Command{}, func(ctx context.Context, z *zk.Client, _ *inspect.Reader) {
		called = true
		srv.Partition()
		if _, _, err := z.Get(ctx, "/"); err == nil {
			t.Error("a silent server answers")
		}
	})
	if d := time.Since(began); !called || d > completionTimeout+4*time.Second {
		t.Errorf("completion took %v, connected: %t", d, called)
	}
}

// TestCompletionOmitsUnsafeWords checks that completion offers a name only if every shell reads
// it as text, and the command does not read it as a flag.
func TestCompletionOmitsUnsafeWords(t *testing.T) {
	for _, good := range []string{"demo", "team/build", "/apps/locks/billing", "a.b_c@d%e+f=g-h", "9", ".hidden", "/", strings.Repeat("x", maxCompletionBytes)} {
		if !completable(good) {
			t.Errorf("%q is not offered", good)
		}
	}
	for _, bad := range []string{"", "-rf", "--servers=evil:2181", "=ls", "~root", strings.Repeat("x", maxCompletionBytes+1), "naïve", "a\u202eb", "a\u200bb", "\ufeffa", "a\xff"} {
		if completable(bad) {
			t.Errorf("%q is offered", bad)
		}
	}
	for c := range rune(0x100) {
		want := strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@%+=-", c)
		if completable("a"+string(c)) != want {
			t.Errorf("a name with %q: offered is %v", c, !want)
		}
	}
}

// TestDescriptionsOfWordsAreSafe checks that the description of an owner has a bounded length,
// and no characters that a shell or a terminal interprets.
func TestDescriptionsOfWordsAreSafe(t *testing.T) {
	for in, want := range map[string]string{
		"web-3:4711 report":               "12\tweb-3:4711 report",
		"a\tb\nc\x1b[2J\u202e$(x)`y`;{z}": "12\ta_b_c__2J___x__y___z_",
		strings.Repeat("x", 10000):        "12\t" + strings.Repeat("x", maxCompletionBytes),
	} {
		if got := string(completionWithDesc("12", in)); got != want {
			t.Errorf("%q is described as %q, want %q", in, got, want)
		}
	}
}
