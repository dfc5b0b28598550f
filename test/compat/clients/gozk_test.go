package clients

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"
)

// eventWait limits each wait for an expected event.
const eventWait = 5 * time.Minute

// goScript is one run of the script of go-zookeeper.
type goScript struct {
	t     *testing.T
	addr  string
	lines []string
	a, b  *gozk.Conn
}

// discard is a logger that prints nothing.
type discard struct{}

func (discard) Printf(string, ...any) {}

// GoZookeeper calls the functions of go-zookeeper on the server at addr, and returns a line for
// each step, without values that differ between runs.
func GoZookeeper(t *testing.T, addr string) []string {
	t.Helper()
	s := &goScript{t: t, addr: addr}
	s.a, s.b = s.dial(), s.dial()
	s.nodes()
	s.kinds()
	s.watches()
	s.acls()
	s.multis()
	s.locks()
	s.sessions()
	s.words()
	names, _, err := s.b.Children("/")
	s.list("left", names, err)
	return append(s.lines, lastLine)
}

// dial opens a session, which the test's cleanup closes.
func (s *goScript) dial() *gozk.Conn {
	s.t.Helper()
	conn, events, err := gozk.Connect([]string{s.addr}, sessionTimeout, gozk.WithLogger(discard{}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	s.await(events, gozk.StateHasSession)
	return conn
}

// await waits for an event with a state.
func (s *goScript) await(events <-chan gozk.Event, state gozk.State) {
	s.t.Helper()
	limit := time.NewTimer(eventWait)
	defer limit.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				s.t.Fatalf("the events ended before %v", state)
			}
			if e.State == state {
				return
			}
		case <-limit.C:
			s.t.Fatalf("no event with the state %v", state)
		}
	}
}

func (s *goScript) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// note prints the result or the error of a call.
func (s *goScript) note(what string, value any, err error) {
	if err != nil {
		value = err
	}
	if stat, is := value.(*gozk.Stat); is {
		value = goStat(stat)
	}
	s.say("%s: %v", what, value)
}

func (s *goScript) list(what string, names []string, err error) {
	slices.Sort(names)
	s.note(what, names, err)
}

// event prints the event of a watch.
func (s *goScript) event(what string, events <-chan gozk.Event) {
	select {
	case e := <-events:
		s.say("%s: %v %s %v", what, e.Type, e.Path, e.Err)
	case <-time.After(eventWait):
		s.say("%s: %s never came", failedWord, what)
	}
}

func goStat(stat *gozk.Stat) string {
	if stat == nil {
		return "none"
	}
	return fmt.Sprintf("v=%d cv=%d av=%d len=%d children=%d owned=%v", stat.Version, stat.Cversion, stat.Aversion,
		stat.DataLength, stat.NumChildren, stat.EphemeralOwner != 0)
}

var openACL = gozk.WorldACL(gozk.PermAll)

func (s *goScript) nodes() {
	create := func(path, data string) {
		path, err := s.a.Create(path, []byte(data), 0, openACL)
		s.note("create", path, err)
	}
	create("/n", "data")
	create("/n", "again")
	create("/x/y", "")
	create("/n/empty", "")
	data, stat, err := s.a.Get("/n")
	s.note("get", string(data), err)
	s.note("its stat", stat, err)
	_, _, err = s.a.Get("/none")
	s.note("get missing", "", err)
	found, stat, err := s.a.Exists("/n")
	s.note("exists", found, err)
	s.note("its stat", stat, err)
	found, _, err = s.a.Exists("/none")
	s.note("exists missing", found, err)
	stat, err = s.a.Set("/n", []byte("2"), 0)
	s.note("set", stat, err)
	stat, err = s.a.Set("/n", nil, 0)
	s.note("set bad version", stat, err)
	s.note("delete not empty", "", s.a.Delete("/n", -1))
	s.note("delete bad version", "", s.a.Delete("/n/empty", 4))
	s.note("delete", "done", s.a.Delete("/n/empty", 0))
	path, err := s.a.Sync("/n")
	s.note("sync", path, err)
	stat, err = s.a.Set("/n", make([]byte, 1_000_000), -1)
	s.note("a megabyte", stat, err)
	data, _, err = s.a.Get("/n")
	s.note("and back", len(data), err)
	for i := range 100 {
		if _, err := s.a.Create(fmt.Sprintf("/n/%03d", i), nil, 0, openACL); err != nil {
			s.note("many", i, err)
		}
	}
	names, stat, err := s.a.Children("/n")
	s.note("many", len(names), err)
	s.note("their parent", stat, err)
}

func (s *goScript) kinds() {
	path, err := s.a.Create("/k", nil, 0, openACL)
	s.note("create", path, err)
	path, err = s.a.Create("/k/e", nil, gozk.FlagEphemeral, openACL)
	s.note("ephemeral", path, err)
	path, err = s.a.Create("/k/s-", nil, gozk.FlagSequence, openACL)
	s.note("sequence", path, err)
	path, err = s.a.CreateContainer("/k/box", nil, gozk.FlagContainer, openACL)
	s.note("container", path, err)
	path, err = s.a.CreateTTL("/k/ttl", nil, gozk.FlagTTL, openACL, time.Hour)
	s.note("ttl", path, err)
	path, err = s.a.CreateTTL("/k/ttl-", nil, gozk.FlagTTL|gozk.FlagSequence, openACL, time.Hour)
	s.note("ttl in sequence", path, err)
	path, err = s.a.CreateProtectedEphemeralSequential("/k/p-", nil, openACL)
	s.note("protected", len(path), err)
	_, stat, err := s.a.Exists("/k/e")
	s.note("ephemeral", stat, err)
	_, stat, err = s.a.Exists("/k/box")
	s.note("container", stat, err)
	names, _, err := s.a.Children("/k")
	s.note("children", len(names), err)
}

func (s *goScript) watches() {
	_, _, events, err := s.a.ExistsW("/w")
	s.note("watch missing", "", err)
	_, err = s.b.Create("/w", nil, 0, openACL)
	s.note("create", "", err)
	s.event("event", events)
	_, _, data, err := s.a.GetW("/w")
	s.note("watch data", "", err)
	_, _, children, err := s.a.ChildrenW("/w")
	s.note("watch children", "", err)
	_, err = s.b.Create("/w/c", nil, 0, openACL)
	s.note("create child", "", err)
	s.event("event", children)
	_, err = s.b.Set("/w", []byte("1"), -1)
	s.note("set", "", err)
	s.event("event", data)
	_, _, gone, err := s.a.ExistsW("/w/c")
	s.note("watch for deletion", "", err)
	s.note("delete", "done", s.b.Delete("/w/c", -1))
	s.event("event", gone)
	_, _, _, err = s.a.GetW("/none")
	s.note("watch data of none", "", err)
	s.note("delete", "done", s.b.Delete("/w", -1))
}

func (s *goScript) acls() {
	owner := s.dial()
	s.note("auth", "done", owner.AddAuth("digest", []byte("user:secret")))
	path, err := owner.Create("/acl", nil, 0, gozk.AuthACL(gozk.PermAll))
	s.note("creator", path, err)
	acl, stat, err := owner.GetACL("/acl")
	s.note("acl", acl, err)
	s.note("its stat", stat, err)
	_, _, err = s.a.Get("/acl")
	s.note("a stranger reads", "", err)
	_, err = s.a.SetACL("/acl", openACL, -1)
	s.note("a stranger changes it", "", err)
	stat, err = owner.SetACL("/acl", append(gozk.DigestACL(gozk.PermAll, "user", "secret"), gozk.WorldACL(gozk.PermRead)...), 0)
	s.note("read for all", stat, err)
	_, _, err = s.a.Get("/acl")
	s.note("a stranger reads now", "data", err)
	_, err = s.a.Create("/acl2", nil, 0, gozk.AuthACL(gozk.PermAll))
	s.note("auth of nobody", "", err)
	_, err = s.a.Create("/acl2", nil, 0, nil)
	s.note("no acl", "", err)
	super := s.dial()
	s.note("super", "done", super.AddAuth("digest", []byte("super:test")))
	s.note("super deletes", "done", super.Delete("/acl", -1))
	bad := s.dial()
	s.note("bad scheme", "", bad.AddAuth("nonsense", []byte("x")))
}

func (s *goScript) multis() {
	results := func(what string, ops ...any) {
		got, err := s.a.Multi(ops...)
		s.say("%s: %v", what, err)
		for _, r := range got {
			s.say("  %s %s %v", r.String, goStat(r.Stat), r.Error)
		}
	}
	results("multi",
		&gozk.CreateRequest{Path: "/t", Data: []byte("1"), Acl: openACL},
		&gozk.CreateRequest{Path: "/t/s-", Acl: openACL, Flags: gozk.FlagSequence},
		&gozk.SetDataRequest{Path: "/t", Data: []byte("22"), Version: 0},
		&gozk.CheckVersionRequest{Path: "/t", Version: 1},
		&gozk.DeleteRequest{Path: "/t/s-0000000000", Version: -1})
	results("failing",
		&gozk.CreateRequest{Path: "/t/n", Acl: openACL},
		&gozk.CheckVersionRequest{Path: "/t", Version: 7},
		&gozk.DeleteRequest{Path: "/t", Version: -1})
	found, _, err := s.a.Exists("/t/n")
	s.note("nothing of it", found, err)
}

func (s *goScript) locks() {
	one, two := gozk.NewLock(s.a, "/lock", openACL), gozk.NewLock(s.b, "/lock", openACL)
	s.note("lock", "held", one.Lock())
	s.note("lock again", "", one.Lock())
	got := make(chan error, 1)
	go func() { got <- two.LockWithData([]byte("two")) }() // ends with the lock
	s.until("two in line", func() bool {
		names, _, err := s.a.Children("/lock")
		return err == nil && len(names) == 2
	})
	select {
	case err := <-got:
		s.say("%s: both hold: %v", failedWord, err)
	default:
	}
	s.note("unlock", "done", one.Unlock())
	s.note("handed over", "held", <-got)
	s.note("unlock", "done", two.Unlock())
	s.note("unlock again", "", two.Unlock())
	names, _, err := s.a.Children("/lock")
	s.note("left", names, err)
}

// until polls a condition that depends on another client.
func (s *goScript) until(what string, condition func() bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(eventWait)
	defer limit.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-limit.C:
			s.say("%s: %s never came", failedWord, what)
			return
		}
	}
}

// sessions closes a session and opens another.
func (s *goScript) sessions() {
	conn, events, err := gozk.Connect([]string{s.addr}, sessionTimeout, gozk.WithLogger(discard{}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.await(events, gozk.StateHasSession)
	before := conn.SessionID()
	_, err = conn.Create("/mine", nil, gozk.FlagEphemeral, openACL)
	s.note("ephemeral", "made", err)
	_, _, gone, err := s.b.ExistsW("/mine")
	s.note("seen by another", "", err)
	conn.Close()
	s.event("closed", gone)
	again, events, err := gozk.Connect([]string{s.addr}, sessionTimeout, gozk.WithLogger(discard{}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.await(events, gozk.StateHasSession)
	s.say("another session: %v", again.SessionID() != before)
	again.Close()
	_, _, err = again.Get("/n")
	s.note("after the end", errors.Is(err, gozk.ErrClosing) || errors.Is(err, gozk.ErrConnectionClosed), nil)
}

// words calls go-zookeeper's parsers of four-letter words, except the one that cannot parse the
// date of ZooKeeper 3.8.
func (s *goScript) words() {
	servers := []string{s.addr}
	s.say("ruok: %v", gozk.FLWRuok(servers, eventWait))
	clients, ok := gozk.FLWCons(servers, eventWait)
	s.say("cons: %v", ok)
	for _, c := range clients {
		sessions := 0
		for _, client := range c.Clients {
			if client.SessionID != 0 {
				sessions++
			}
		}
		s.say("cons: sessions %v, %v", sessions > 1, c.Error)
	}
}

func TestGoZookeeperGetsSameAnswers(t *testing.T) { Same(t, noCollection, GoZookeeper) }
