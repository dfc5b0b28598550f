package zkui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zktest"
)

// TestAddressReplacesItsOwnStream checks that an address that opens one stream too many
// loses its own oldest stream, even if another address had as many before.
func TestAddressReplacesItsOwnStream(t *testing.T) {
	p := slots{max: 2}
	quiet := p.acquire(netip.MustParseAddr("10.0.0.1"))
	first := p.acquire(netip.MustParseAddr("10.0.0.2"))
	p.acquire(netip.MustParseAddr("10.0.0.2"))
	select {
	case <-quiet.evicted:
		t.Error("the stream of another address was ended")
	case <-first.evicted:
	default:
		t.Error("no stream was ended")
	}
}

// TestSlotsHaveALimitOfTheirSize checks that the oldest slots of the address with the most are
// evicted until the others are small enough, and that a slot that is too large is not evicted if
// it is the only one.
func TestSlotsHaveALimitOfTheirSize(t *testing.T) {
	p := slots{max: 10, maxSize: 100}
	evicted := func(s *slot) bool {
		select {
		case <-s.evicted:
			return true
		default:
			return false
		}
	}
	quiet := p.acquireSize(netip.MustParseAddr("10.0.0.1"), 40)
	var busy []*slot
	for range 4 {
		busy = append(busy, p.acquireSize(netip.MustParseAddr("10.0.0.2"), 30))
	}
	if evicted(quiet) || !evicted(busy[0]) || !evicted(busy[1]) || evicted(busy[2]) || evicted(busy[3]) {
		t.Errorf("evicted: %v, %v %v %v %v", evicted(quiet), evicted(busy[0]), evicted(busy[1]), evicted(busy[2]), evicted(busy[3]))
	}
	for _, s := range append(busy, quiet) {
		p.release(s)
	}
	if huge := p.acquireSize(netip.MustParseAddr("10.0.0.1"), 1000); p.size != 1000 || evicted(huge) {
		t.Errorf("size %d, evicted: %v", p.size, evicted(huge))
	}
}

// TestStreamsBuildNoEventBeforeTheirTurn checks that the memory of streams that wait for their turn
// to encode an event does not grow with the number of locks.
func TestStreamsBuildNoEventBeforeTheirTurn(t *testing.T) {
	const streams, locks, most = 8, 20_000, 4 << 20
	synctest.Test(t, func(t *testing.T) {
		snapshot := &inspect.Snapshot{Version: 2}
		for i := range locks {
			l := lockWith(fmt.Sprintf("/lock-%05d", i), int64(i+1), time.Time{}, 0)
			l.Version = 2
			snapshot.Locks = append(snapshot.Locks, l)
		}
		h, err := New(zktest.Start(t, zktest.Volatile).Dial(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		inUse := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		// wait returns the memory of the streams while they wait, and then lets them send.
		wait := func(version uint64) int64 {
			for range maxEncoders {
				h.encoders.acquire(netip.Addr{})
			}
			before, ended := inUse(), make(chan string, streams)
			for range streams {
				go func() { // ends with the event
					w := httptest.NewRecorder()
					s := &stream{h: h, w: w, flush: http.NewResponseController(w), slot: &slot{}, version: version}
					s.sendLocks(snapshot)
					ended <- w.Body.String()
				}()
			}
			synctest.Wait()
			grown := inUse() - before
			for range maxEncoders {
				h.encoders.release()
			}
			for range streams {
				sent, want := <-ended, int(2-version)*locks
				if got := strings.Count(sent, `"path":"/lock-`); got != want || !strings.HasPrefix(sent, "event: locks\nid: "+h.boot+"-2\n") {
					t.Errorf("a stream sent %d locks, want %d: %.100s", got, want, sent)
				}
			}
			return grown
		}
		none, all := wait(2), wait(1)
		if all > none+most {
			t.Errorf("%d streams wait with %d bytes of %d locks, and with %d bytes of none", streams, all, locks, none)
		}
		runtime.KeepAlive(snapshot)
	})
}

// TestAddressesEncodeInTurns checks that an event or a response does not wait until all those of
// another address that wait longer are encoded.
func TestAddressesEncodeInTurns(t *testing.T) {
	const many = 200
	busy, other := netip.MustParseAddr("192.0.2.66"), netip.MustParseAddr("192.0.2.9")
	h, err := New(zktest.Start(t, zktest.Volatile).Dial(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	event := func(addr netip.Addr, build func()) {
		w := httptest.NewRecorder()
		s := &stream{h: h, w: w, flush: http.NewResponseController(w), slot: &slot{addr: addr}}
		s.send(0, func() (string, any) { build(); return "status", nil })
	}
	response := func(addr netip.Addr, build func()) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = netip.AddrPortFrom(addr, 1).String()
		answer := func(*http.Request) (int, any) { build(); return http.StatusOK, nil }
		h.makeResponse(httptest.NewRecorder(), r, addr, answer)
	}
	for name, tt := range map[string]struct {
		turns *turns
		do    func(addr netip.Addr, build func())
	}{"event": {&h.encoders, event}, "response": {&h.makers, response}} {
		synctest.Test(t, func(t *testing.T) {
			for range tt.turns.max {
				tt.turns.acquire(busy)
			}
			var order []netip.Addr // only one turn is free at a time
			var all sync.WaitGroup
			for i := range many + 1 {
				addr := busy
				if i == many {
					addr = other
				}
				all.Go(func() { tt.do(addr, func() { order = append(order, addr) }) })
				synctest.Wait()
			}
			tt.turns.release()
			all.Wait()
			if at := slices.Index(order, other); len(order) != many+1 || at > 1 {
				t.Errorf("%s: the other address was at position %d of %d", name, at, len(order))
			}
			for range tt.turns.max - 1 {
				tt.turns.release()
			}
			if tt.turns.working != 0 || len(tt.turns.next) > 0 || len(tt.turns.waiters) > 0 {
				t.Errorf("%s: %d work, %d addresses wait", name, tt.turns.working, len(tt.turns.waiters))
			}
		})
	}
}
