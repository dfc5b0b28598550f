package differential

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
)

// embedded starts the embedded server with its data on disk.
func embedded(t *testing.T) string {
	t.Helper()
	return harness.Serve(t, zkserver.Options{
		DataDir: t.TempDir(), TickTime: 500 * time.Millisecond, MaxClientConns: -1, FourLetterWords: []string{"*"},
		ExtendedTypes: true, Logger: slog.New(slog.DiscardHandler),
	})
}

// createState creates two sessions, ephemeral nodes of both, and watches of every kind.
func createState(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	clients := make([]*zk.Client, 2)
	for i := range clients {
		c, err := zk.Dial(ctx, addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		clients[i] = c
	}
	do := func(c *zk.Client, op zk.Op) {
		t.Helper()
		done := make(chan error, 1)
		c.Go(op, func(r zk.Result) { done <- r.Err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	a, b := clients[0], clients[1]
	for _, n := range []struct {
		c    *zk.Client
		path string
		mode zk.CreateMode
	}{{a, "/p", zk.ModePersistent}, {a, "/p/e", zk.ModeEphemeral}, {a, "/p/f", zk.ModeEphemeral}, {b, "/q", zk.ModeEphemeral}} {
		if _, _, err := n.c.Create(ctx, n.path, []byte("x"), nil, n.mode); err != nil {
			t.Fatal(err)
		}
	}
	do(a, zk.GetOp("/p", true))
	do(b, zk.GetOp("/p", true))
	do(b, zk.ChildrenOp("/p", true))
	do(b, zk.ExistsOp("/p/e", true))
}

// shape replaces values that differ between runs: numbers, ids, times, and addresses.
func shape(answer string) string {
	for _, r := range []struct{ from, to string }{
		{`Zookeeper version: .*`, "Zookeeper version: V"},
		{`zookeeper\.version=.*`, "zookeeper.version=V"},
		{`[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [A-Z]+ \d{4}`, "DATE"},
		{`/127\.0\.0\.1:\d+`, "PEER"},
		{`0x[0-9a-f]+`, "HEX"},
		{`\d+\.\d+`, "N"},
		{`\d+`, "N"},
	} {
		answer = regexp.MustCompile(r.from).ReplaceAllString(answer, r.to)
	}
	return answer
}

// sortedLines sorts lines that have the order of a hash table.
func sortedLines(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestFourLetterWordsMatchZooKeeper compares the answers of servers in the same state.
func TestFourLetterWordsMatchZooKeeper(t *testing.T) {
	node := harness.StartServer(t, harness.ServerConfig{Release: harness.Release39})
	real, own := node.Addr(), embedded(t)
	createState(t, real)
	createState(t, own)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask := func(addr, word string) string {
		t.Helper()
		answer, err := harness.FourLetter(ctx, addr, word)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	// Equal except for numbers.
	for _, word := range []string{"ruok", "isro", "srvr", "stat", "wchs", "wchp", "wchc", "dirs"} {
		want, got := shape(ask(real, word)), shape(ask(own, word))
		if sortedLines(want) != sortedLines(got) {
			t.Errorf("%s:\nZooKeeper\n%s\nzkserver\n%s", word, want, got)
		}
	}
	if want, got := ask(real, "wchs"), ask(own, "wchs"); want != got {
		t.Errorf("wchs: %q and %q", want, got)
	}
	t.Run("cons", func(t *testing.T) {
		want, got := sortedLines(shape(ask(real, "cons"))), sortedLines(shape(ask(own, "cons")))
		if want != got {
			t.Errorf("ZooKeeper\n%s\nhere\n%s", want, got)
		}
	})
	t.Run("dump", func(t *testing.T) {
		// Only ZooKeeper expires sessions in buckets.
		bucket := regexp.MustCompile(`(?m)^N expire at DATE:\n`)
		want, got := bucket.ReplaceAllString(shape(ask(real, "dump")), ""), bucket.ReplaceAllString(shape(ask(own, "dump")), "")
		if sortedLines(want) != sortedLines(got) {
			t.Errorf("ZooKeeper\n%s\nhere\n%s", want, got)
		}
	})
	t.Run("conf", func(t *testing.T) { sameKeys(t, "=", ask(real, "conf"), ask(own, "conf")) })
	t.Run("mntr", func(t *testing.T) { sameMonitor(t, ask(real, "mntr"), ask(own, "mntr")) })
	for _, word := range []string{"crst", "srst"} {
		if want, got := ask(real, word), ask(own, word); want != got {
			t.Errorf("%s: %q and %q", word, want, got)
		}
	}
}

// keys parses lines with a key and a value.
func keys(sep, answer string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(answer) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), sep); ok {
			m[key] = value
		}
	}
	return m
}

// sameKeys fails the test unless both have the same keys with values of the same shape.
func sameKeys(t *testing.T, sep, real, own string) {
	t.Helper()
	want, got := keys(sep, real), keys(sep, own)
	for key, value := range want {
		if mine, ok := got[key]; !ok || !strings.HasSuffix(key, "Dir") && shape(strings.TrimPrefix(value, "-")) != shape(strings.TrimPrefix(mine, "-")) {
			t.Errorf("%s is %q, ZooKeeper has %q", key, mine, value)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("ZooKeeper has no %s", key)
		}
	}
}

// sameMonitor fails the test unless the embedded server has ZooKeeper's gauges, with equal values
// if the state determines them, and with the same shape otherwise. ZooKeeper's counters and
// summaries of internal parts may be missing.
func sameMonitor(t *testing.T, real, own string) {
	t.Helper()
	want, got := keys("\t", real), keys("\t", own)
	gauges := 0
	for line := range strings.Lines(real) {
		key, _, _ := strings.Cut(line, "\t")
		if key == "zk_watch_bytes" {
			break // counters and summaries follow
		}
		gauges++
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if gauges < 25 {
		t.Errorf("only %d gauges in\n%s", gauges, real)
	}
	for _, key := range []string{"zk_znode_count", "zk_ephemerals_count", "zk_watch_count", "zk_global_sessions", "zk_num_alive_connections", "zk_server_state", "zk_approximate_data_size"} {
		if want[key] != got[key] {
			t.Errorf("%s is %s, want %s", key, got[key], want[key])
		}
	}
	shared := 0
	for key, value := range got {
		theirs, ok := want[key]
		if !ok || key == "zk_version" {
			continue
		}
		shared++
		if shape(strings.TrimPrefix(value, "-")) != shape(strings.TrimPrefix(theirs, "-")) {
			t.Errorf("%s is %q, want %q", key, value, theirs)
		}
	}
	if shared < 50 {
		t.Errorf("only %d keys of ZooKeeper: %s", shared, fmt.Sprint(got))
	}
}

// TestWordsOutsideWhitelistMatchZooKeeper compares the answers to words that are not permitted.
func TestWordsOutsideWhitelistMatchZooKeeper(t *testing.T) {
	node := harness.StartServer(t, harness.ServerConfig{Release: harness.Release39, Extra: map[string]string{"4lw.commands.whitelist": "mntr"}})
	s, err := zkserver.New(&zkserver.Options{FourLetterWords: []string{"mntr"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// Ends with the server.
	go func() { _ = s.Serve(ln) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, word := range []string{"ruok", "srvr", "envi", "isro", "wchp"} {
		want, err := harness.FourLetter(ctx, node.Addr(), word)
		if err != nil {
			t.Fatal(err)
		}
		got, err := harness.FourLetter(ctx, ln.Addr().String(), word)
		if err != nil {
			t.Fatal(err)
		}
		refused := strings.Contains(want, "not executed")
		if refused && want != got || !refused && strings.Contains(got, "not executed") {
			t.Errorf("%s: %q, ZooKeeper answers %q", word, got, want)
		}
	}
}

func TestEnviHasKeysOfZooKeeper(t *testing.T) {
	keys := func(addr string) (list []string) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		answer, err := harness.FourLetter(ctx, addr, "envi")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(answer) {
			if key, _, ok := strings.Cut(line, "="); ok {
				list = append(list, key)
			}
		}
		return list
	}
	want := keys(harness.StartServer(t, harness.ServerConfig{Release: harness.Release39}).Addr())
	got := slices.DeleteFunc(keys(embedded(t)), func(key string) bool { return key == "go.version" })
	if len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("keys %q, ZooKeeper has %q", got, want)
	}
}
