package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// A silenceRow is how long a hold lasts after its client is partitioned from the servers, in
// percent of the session timeout: the smallest and the median value. The loose limits are
// for busy machines: for the default run, and if syncs take longer than quickTrip.
type silenceRow struct {
	timeout                    time.Duration
	smallest, median           float64 // the goals
	looseSmallest, looseMedian float64
	batch                      int // how many holds at a time
}

var silenceRows = []silenceRow{
	{usualTimeout, 76, 82, 55, 65, 50},
	{leastTimeout, 55, 61, 20, 46, 10},
}

// measure measures a few holds at a time, so that the machine stays fast.
func (row silenceRow) measure(t *testing.T, servers []string) {
	var survived, margins, trips []time.Duration
	stalls := harness.WatchStalls(t.Context())
	for i := range size(1, 1+100/row.batch) {
		if i == 1 { // The first batch of a full run only warms up the servers.
			survived, margins, trips = nil, nil, nil
		}
		trials(t, func(t *testing.T) bool {
			return row.silence(t, servers, size(8, row.batch), &survived, &margins, &trips)
		})
		if t.Failed() {
			return
		}
	}
	stalled := stalls()
	smallest, median := smallestAndMedian(survived)
	margin, _ := smallestAndMedian(margins)
	slices.Sort(trips)
	trip := trips[len(trips)*99/100]
	t.Logf("silence survived, sessions of %v, %d holds: smallest %.1f %%, median %.1f %%; the servers ended the session %v or more after that; 99 %% of syncs took %v at most",
		row.timeout, len(survived), percent(smallest, row.timeout), percent(median, row.timeout), margin.Round(time.Millisecond), trip.Round(100*time.Microsecond))
	wantSmallest, wantMedian := row.smallest, row.median
	if trip > quickTrip || !*full {
		wantSmallest, wantMedian = row.looseSmallest, row.looseMedian
	}
	if !*full { // late answers shorten the time that a hold survives
		smallest, median = smallest+stalled, median+stalled
	}
	row.judge(t, smallest, median, wantSmallest, wantMedian)
}

// silence partitions each of n holders from the servers, and waits until the hold has
// reported its loss and the server has deleted its entry. It adds the times to the lists, or
// returns false if a hold ended before the partition.
func (row silenceRow) silence(t *testing.T, servers []string, n int, survived, margins, trips *[]time.Duration) bool {
	t.Helper()
	proxies := make([]*zktest.Proxy, n)
	for i := range proxies {
		proxies[i] = zktest.NewProxy(t, "tcp", servers[i%len(servers)])
	}
	observer := dialObserver(t, strings.Join(servers, ","))
	began := time.Now()
	clients := dialMany(t, n, func(i int) string { return proxies[i].Servers() }, zklock.Options{SessionTimeout: row.timeout})
	holds := holdMany(t, clients, fmt.Sprintf("silence-%v", row.timeout))
	var early atomic.Bool
	times, after := make([]time.Duration, n), make([]time.Duration, n)
	measured := roundTrips(t, observer)
	var wg sync.WaitGroup
	for i, hold := range holds {
		wg.Go(func() {
			if err := observer.Sync(t.Context(), "/"); err != nil { // the observer's server may be late
				t.Errorf("%d: %v", i, err)
				return
			}
			_, found, gone, err := observer.ExistsW(t.Context(), hold.Node())
			if err != nil || !found && hold.Err() == nil {
				t.Errorf("%d: the entry was found: %v, %v", i, found, err)
				return
			}
			if !settle(t.Context(), began, row.timeout) || hold.Err() != nil {
				t.Logf("%d: the hold ended early: %v", i, hold.Err())
				early.Store(true)
				return
			}
			proxies[i].Partition()
			silent := time.Now()
			<-hold.Done()
			lost := time.Now()
			select {
			case <-gone:
				t.Errorf("%d: the entry was deleted before the hold reported its loss, %v after the partition", i, lost.Sub(silent))
				return
			default:
			}
			<-gone
			times[i], after[i] = lost.Sub(silent), time.Since(lost)
			proxies[i].Heal() // so that the client can close
		})
	}
	wg.Wait()
	took := measured()
	if early.Load() {
		return false
	}
	*survived, *margins, *trips = append(*survived, times...), append(*margins, after...), append(*trips, took...)
	return true
}

// judge compares figures with goals, rounded to tenths of a percent.
func (row silenceRow) judge(t *testing.T, smallest, median time.Duration, wantSmallest, wantMedian float64) {
	t.Helper()
	if percent(smallest, row.timeout)+0.05 < wantSmallest {
		t.Errorf("a hold survived %v, want %v %% of %v", smallest, wantSmallest, row.timeout)
	}
	if percent(median, row.timeout)+0.05 < wantMedian {
		t.Errorf("half of the holds survived %v or less, want %v %% of %v", median, wantMedian, row.timeout)
	}
}

// quickTrip is the round trip to which the goals of the silence rows apply.
const quickTrip = 10 * time.Millisecond

// roundTrips starts to measure syncs. The returned function stops and returns the times.
func roundTrips(t *testing.T, c *zk.Client) func() []time.Duration {
	ctx, cancel := context.WithCancel(t.Context())
	measured := make(chan []time.Duration, 1)
	go func() { // ends with ctx
		var all []time.Duration
		for harness.Sleep(ctx, 20*time.Millisecond) {
			began := time.Now()
			if c.Sync(ctx, "/") == nil {
				all = append(all, time.Since(began))
			}
		}
		measured <- all
	}()
	return func() []time.Duration {
		cancel()
		return <-measured
	}
}

// TestSilenceSurvived measures the silence rows in virtual time, in which holds must meet the
// goals exactly.
func TestSilenceSurvived(t *testing.T) {
	for _, row := range silenceRows {
		t.Run(row.timeout.String(), func(t *testing.T) { row.simulate(t, 0, 0) })
	}
}

// TestSilenceAfterLateAnswers measures the silence rows with late answers. The answers to all
// three requests of a proof may be late. A hold ends earlier by that time, and not by another
// eighth of the session timeout.
func TestSilenceAfterLateAnswers(t *testing.T) {
	const late = 60 * time.Millisecond
	for _, row := range silenceRows {
		t.Run(row.timeout.String(), func(t *testing.T) { row.simulate(t, late, percent(3*late, row.timeout)) })
	}
}

// simulate measures the row in a bubble. Every fifth answer is late on average. Holds may
// miss the row's goals by less percent of the session timeout.
func (row silenceRow) simulate(t *testing.T, late time.Duration, less float64) {
	const n = 100
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, func(o *zkserver.Options) {
			o.TickTime, o.MinSessionTimeout, o.MaxSessionTimeout, o.FourLetterWords = usualTick, 0, 0, nil
		})
		survived := make([]time.Duration, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				route := srv.Route(t)
				route.Delay(quickTrip / 2)
				c, err := zklock.Dial(t.Context(), "zktest:2181", &zklock.Options{SessionTimeout: row.timeout, DialContext: route.DialContext})
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = c.Close() }() // the servers are silent
				hold, err := c.Mutex(fmt.Sprint(i)).Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				random := rand.New(rand.NewPCG(1, uint64(i)))
				silence := time.Now().Add(row.timeout*3/2 + row.timeout/8*time.Duration(i)/n)
				for late > 0 && time.Until(silence) > late {
					time.Sleep(min(late, time.Until(silence)))
					if random.IntN(5) == 0 {
						route.Delay(quickTrip/2 + late/2)
					} else {
						route.Delay(quickTrip / 2)
					}
				}
				time.Sleep(time.Until(silence))
				route.Partition()
				silent := time.Now()
				<-hold.Done()
				survived[i] = time.Since(silent)
			})
		}
		wg.Wait()
		smallest, median := smallestAndMedian(survived)
		t.Logf("smallest %.1f %%, median %.1f %%", percent(smallest, row.timeout), percent(median, row.timeout))
		row.judge(t, smallest, median, row.smallest-less, row.median-less)
	})
}

// measureCommandInSilence measures the time from a partition until zklock run sends TERM.
func measureCommandInSilence(t *testing.T, servers []string) {
	n := size(4, 40)
	bin := harness.Command(t)
	stalls := harness.WatchStalls(t.Context())
	survived := make([]time.Duration, n)
	eachOf(t, n, func(i int) error {
		proxy := zktest.NewProxy(t, "tcp", servers[i%len(servers)])
		began := time.Now()
		c, err := startCommand(t, bin, proxy.Servers(), fmt.Sprintf("command-%d", i))
		if err != nil {
			return err
		}
		defer c.kill()
		if !settle(t.Context(), began, usualTimeout) || c.ended() {
			return fmt.Errorf("the command ended early: %s", c.errorText())
		}
		proxy.Partition()
		silent := time.Now()
		if line, err := c.out.ReadString('\n'); line != "term\n" {
			return fmt.Errorf("the command said %q: %w", line, err)
		}
		survived[i] = time.Since(silent)
		return nil
	})
	stalled := stalls()
	smallest, median := smallestAndMedian(survived)
	t.Logf("silence until the command gets TERM, sessions of %v, %d commands: smallest %v, median %v",
		usualTimeout, n, smallest.Round(10*time.Millisecond), median.Round(10*time.Millisecond))
	if want := size(9*time.Second-stalled, 12500*time.Millisecond); smallest < want {
		t.Errorf("a command got TERM after %v, want %v", smallest, want)
	}
}

// A lockedCommand is a process of zklock run. Its command prints when it starts and when it
// gets TERM.
type lockedCommand struct {
	process *harness.Process
	out     *bufio.Reader
	log     string // the file with the errors
}

// Scripts that print when they get TERM. The second one prints its pid and survives TERM.
const (
	endsAtTerm   = `trap "echo term; exit" TERM; echo started; sleep 1000000 & wait`
	survivesTerm = `trap "echo term" TERM; echo started; echo $$; while :; do sleep 1000000 & wait; done`
)

// startCommand starts zklock run, and returns when its command runs.
func startCommand(t *testing.T, bin, servers, lock string) (*lockedCommand, error) {
	return startScript(t, bin, endsAtTerm, "--servers", servers, "--session-timeout", usualTimeout.String(), lock)
}

// startScript is startCommand with a script and arguments.
func startScript(t *testing.T, bin, script string, args ...string) (*lockedCommand, error) {
	log, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := exec.Command(bin, slices.Concat([]string{"run"}, args, []string{"--", "sh", "-c", script})...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "ZKLOCK_") })
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c := &lockedCommand{out: bufio.NewReader(out), log: log.Name()}
	if c.process, err = harness.Start(cmd); err != nil {
		return nil, err
	}
	line, err := c.out.ReadString('\n')
	if line != "started\n" {
		c.kill()
		return nil, errors.Join(err, fmt.Errorf("the command said %q: %s", line, c.errorText()))
	}
	return c, nil
}

// ended reports whether the process has ended.
func (c *lockedCommand) ended() bool {
	select {
	case <-c.process.Done():
		return true
	default:
		return false
	}
}

// errorText returns the errors of zklock run.
func (c *lockedCommand) errorText() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// kill ends the process; its watchdog then ends the command.
func (c *lockedCommand) kill() { c.process.Kill() }
