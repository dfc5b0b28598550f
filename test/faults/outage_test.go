package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// TestOutage measures what zklock run does if the only server is down for half of the session
// timeout, and if it stays down. DESIGN.md has the expected times.
func TestOutage(t *testing.T) {
	timeout, ticks, n := size(16*time.Second, usualTimeout), size(time.Second, usualTick), size(4, 20)
	for _, kind := range []struct {
		name  string
		start func(t *testing.T) server
	}{
		{"embedded", func(t *testing.T) server { return startEmbeddedWith(t, ticks) }},
		{"zookeeper", func(t *testing.T) server { return harness.StartServer(t, harness.ServerConfig{TickTime: ticks}) }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			if kind.name == "zookeeper" && !*full {
				t.Skip("a JVM restarts too slowly for short sessions")
			}
			t.Parallel()
			measureOutage(t, kind.start(t), timeout, ticks, n)
		})
	}
}

// A server is a process that can be killed and restarted.
type server interface {
	Addr() string
	Kill()
	Restart(ctx context.Context) error
}

func measureOutage(t *testing.T, server server, timeout, ticks time.Duration, n int) {
	bin := harness.Command(t)
	commands := make([]*lockedCommand, n)
	eachOf(t, n, func(i int) (err error) {
		harness.Sleep(t.Context(), rand.N(timeout/8)) // any phase of the heartbeats
		script := endsAtTerm
		if i%2 == 1 {
			script = survivesTerm
		}
		commands[i], err = startScript(t, bin, script, "--servers", server.Addr(), "--session-timeout", timeout.String(),
			"--server-tick", ticks.String(), fmt.Sprintf("outage-%d", i))
		return err
	})
	t.Cleanup(func() {
		for _, c := range commands {
			c.kill()
		}
	})
	harness.Sleep(t.Context(), timeout/2+rand.N(timeout/8))

	// With a timeout of 20 s, the commands get TERM after 12.7 s or more. The server also
	// needs time to start.
	var m outage
	stalls := harness.WatchStalls(t.Context())
	began := time.Now()
	server.Kill()
	restarted := make(chan error, 1)
	go func() { // ends after the restart
		harness.Sleep(t.Context(), time.Until(began.Add(timeout/2)))
		restarted <- server.Restart(t.Context())
	}()
	m.each(commands, func(_ int, c *lockedCommand) {
		if !c.awaitError(t.Context(), "reconnecting: ") {
			t.Errorf("no message that it is reconnecting: %s", c.errorText())
		}
		m.add("reconnecting", time.Now(), began)
	})
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	m.add("the server serves again", time.Now(), began)
	served := time.Since(began)
	if served > timeout*3/5 {
		t.Skipf("not checked: the restart took %v, which leaves the holds too little time", served-timeout/2)
	}
	m.each(commands, func(_ int, c *lockedCommand) {
		c.awaitError(t.Context(), "the servers answer again") // or the end of the process
		m.add("the servers answer again", time.Now(), began)
	})
	if stalled := stalls(); served+stalled > timeout*3/5 {
		t.Skipf("not checked: the server restarted after %v, and the machine stalled for %v", served, stalled)
	}
	for _, c := range commands {
		if c.ended() {
			t.Errorf("a command ended in an outage of half the session timeout: %s", c.errorText())
		}
	}
	if t.Failed() {
		return
	}
	t.Logf("down for %v, sessions of %v, %d commands: %v", timeout/2, timeout, n, &m)

	stalls = harness.WatchStalls(t.Context())
	harness.Sleep(t.Context(), timeout/2+rand.N(timeout/8))
	pids := make([]string, n)
	for i, c := range commands {
		if i%2 == 1 {
			line, err := c.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pids[i] = strings.TrimSpace(line)
		}
	}
	m = outage{}
	began = time.Now()
	server.Kill()
	m.each(commands, func(i int, c *lockedCommand) {
		line, err := c.out.ReadString('\n')
		if line != "term\n" {
			t.Errorf("the command said %q: %v; %s", line, err, c.errorText())
		}
		m.add("TERM", time.Now(), began)
		if pids[i] == "" {
			return
		}
		for harness.Sleep(t.Context(), 10*time.Millisecond) {
			if _, err := os.Stat("/proc/" + pids[i]); err != nil {
				break
			}
		}
		m.add("KILL", time.Now(), began)
	})
	stalled := stalls()
	t.Logf("server stays down: %v; the machine stalled for %v", &m, stalled)
	// The expected times as fractions of the session timeout, with a tolerance.
	for what, limit := range map[string][2]float64{"TERM": {0.645, 0.765}, "KILL": {0.745, 0.875}} {
		first, last := m.span(what)
		least := time.Duration(limit[0]*float64(timeout)) - size(timeout/8, timeout/40) - stalled
		most := time.Duration(limit[1]*float64(timeout)) + size(timeout/8, timeout/40) + stalled
		if first < least || last > most {
			t.Errorf("%s %v to %v after the outage began, want %v to %v", what, first, last, least, most)
		}
	}
}

// An outage has the times of events after the beginning of an outage.
type outage struct {
	mu    sync.Mutex
	names []string
	times map[string][]time.Duration
}

// each calls do for all commands at once.
func (m *outage) each(commands []*lockedCommand, do func(i int, c *lockedCommand)) {
	var wg sync.WaitGroup
	for i, c := range commands {
		wg.Go(func() { do(i, c) })
	}
	wg.Wait()
}

func (m *outage) add(name string, at, began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.times == nil {
		m.times = map[string][]time.Duration{}
	}
	if m.times[name] == nil {
		m.names = append(m.names, name)
	}
	m.times[name] = append(m.times[name], at.Sub(began))
}

// span returns the first and the last time of an event.
func (m *outage) span(name string) (first, last time.Duration) {
	first, _ = smallestAndMedian(m.times[name])
	return first, m.times[name][len(m.times[name])-1]
}

// String returns the ranges for a log.
func (m *outage) String() string {
	var all []string
	for _, name := range m.names {
		first, last := m.span(name)
		all = append(all, fmt.Sprintf("%s after %.1f to %.1f s", name, first.Seconds(), last.Seconds()))
	}
	return strings.Join(all, ", ")
}

// awaitError waits until the errors of zklock run contain a text. It returns false if zklock
// run ends before.
func (c *lockedCommand) awaitError(ctx context.Context, text string) bool {
	for !strings.Contains(c.errorText(), text) {
		if c.ended() || !harness.Sleep(ctx, 10*time.Millisecond) {
			return strings.Contains(c.errorText(), text)
		}
	}
	return true
}
