package zkserver

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// version is the version that the four-letter words report. Clients and monitoring
// deduce the server's behavior from the number, so it is the version of the ZooKeeper with
// the same behavior: docs/compatibility.md lists which release changed what.
//
// The date is also that release's, in the format of releases before 3.8, which go-zookeeper
// reads.
const version = "3.9.4-zklock, built on 08/19/2025 19:53 UTC"

// fourLetterWords maps each four-letter word to its answer, which runs on the goroutine of
// the connection. The formats are, line by line, those of ZooKeeper's package
// org.apache.zookeeper.server.command.
var fourLetterWords = map[string]func(*Server, *answer){
	"ruok": func(_ *Server, a *answer) { a.text("imok") },
	"isro": (*Server).wordIsro,
	"srvr": (*Server).wordSrvr,
	"stat": (*Server).wordStat,
	"mntr": (*Server).wordMntr,
	"conf": (*Server).wordConf,
	"envi": (*Server).wordEnvi,
	"dirs": (*Server).wordDirs,
	"cons": (*Server).wordCons,
	"dump": (*Server).wordDump,
	"wchs": (*Server).wordWchs,
	"wchp": (*Server).wordWchp,
	"wchc": (*Server).wordWchc,
	"crst": (*Server).wordCrst,
	"srst": (*Server).wordSrst,
}

// FourLetterWords returns the commands that Options.FourLetterWords may contain, in
// alphabetical order.
func FourLetterWords() []string { return slices.Sorted(maps.Keys(fourLetterWords)) }

// allowed reports whether the options allow a word. ZooKeeper always allows srvr, which its
// own scripts send. Here an empty, non-nil list allows none.
func (o *Options) allowed(name string) bool {
	list := o.FourLetterWords
	return slices.Contains(list, name) || slices.Contains(list, "*") || name == "srvr" && len(list) > 0
}

// answerFourLetter answers a four-letter word, or writes ZooKeeper's message that it is not
// allowed. An answer ends early if the server or the connection does.
func (s *Server) answerFourLetter(name string, a *answer) {
	if !s.opts.allowed(name) {
		a.text(name + " is not executed because it is not in the whitelist.\n")
	} else {
		fourLetterWords[name](s, a)
	}
	a.flush()
}

func (s *Server) wordIsro(a *answer) {
	if s.Stats().ReadOnly {
		a.text("ro")
		return
	}
	a.text("rw")
}

func (s *Server) wordSrvr(a *answer) {
	a.text("Zookeeper version: " + version + "\n" + summary(s.Stats()))
}

// mode returns the role of a server of one node.
func mode(st Stats) string {
	if st.ReadOnly {
		return "read-only"
	}
	return "standalone"
}

// javaNodes returns the number of nodes as ZooKeeper counts: its table contains the root
// under two names.
func javaNodes(st Stats) int { return st.Nodes + 1 }

// summary returns the end of the answers of srvr and stat.
func summary(st Stats) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Latency min/avg/max: %d/%s/%d\n",
		st.LatencyMin.Milliseconds(), javaMillis(st.LatencyAverage), st.LatencyMax.Milliseconds())
	fmt.Fprintf(&b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n", st.Received, st.Sent, st.Connections, st.Outstanding)
	fmt.Fprintf(&b, "Zxid: %#x\nMode: %s\nNode count: %d\n", st.Zxid, mode(st), javaNodes(st))
	return b.String()
}

func (s *Server) wordStat(a *answer) {
	a.text("Zookeeper version: " + version + "\nClients:\n")
	s.forEachConn(a, func(v connView) { a.text(v.brief() + ")\n") })
	a.text("\n" + summary(s.Stats()))
}

func (s *Server) wordCons(a *answer) {
	s.forEachConn(a, func(v connView) { a.text(v.brief() + v.details() + ")\n") })
	a.text("\n")
}

func (s *Server) wordCrst(a *answer) {
	s.runOnLoop(func() {
		for _, c := range s.loop.conns {
			c.counts = newConnCounts()
		}
	})
	a.text("Connection stats reset.\n")
}

func (s *Server) wordSrst(a *answer) {
	s.runOnLoop(func() { s.loop.traffic = newTraffic() })
	a.text("Server stats reset.\n")
}

// opName returns the name of an operation under "lop" in cons, as in Java's
// FinalRequestProcessor; "NA" before the first.
func opName(op wire.OpCode) string {
	names := [...]string{
		wire.OpCreate: "CREA", wire.OpCreate2: "CREA", wire.OpCreateContainer: "CREA", wire.OpCreateTTL: "CREA",
		wire.OpDelete: "DELE", wire.OpDeleteContainer: "DELE",
		wire.OpSetData: "SETD", wire.OpSetACL: "SETA", wire.OpReconfig: "RECO",
		wire.OpMulti: "MULT", wire.OpMultiRead: "MLTR", wire.OpCheck: "CHEC",
		wire.OpExists: "EXIS", wire.OpGetData: "GETD", wire.OpGetACL: "GETA",
		wire.OpGetChildren: "GETC", wire.OpGetChildren2: "GETC",
		wire.OpGetAllChildrenNumber: "GETACN", wire.OpGetEphemerals: "GETE",
		wire.OpSetWatches: "SETW", wire.OpSetWatches2: "STW2", wire.OpAddWatch: "ADDW",
		wire.OpCheckWatches: "CHKW", wire.OpRemoveWatches: "REMW",
		wire.OpSync: "SYNC", wire.OpPing: "PING", wire.OpWhoAmI: "HOMI",
		wire.OpAuth: "AUTH", wire.OpSASL: "SASL",
	}
	switch {
	case op == wire.OpCreateSession:
		return "SESS"
	case op == wire.OpCloseSession:
		return "CLOS"
	case op >= 0 && int(op) < len(names) && names[op] != "":
		return names[op]
	}
	return "NA"
}

// connView is a connection as stat and cons show it.
type connView struct {
	remote  string
	state   int // 1 if the server reads requests, 0 if the client sent a four-letter word
	queued  int
	counts  connCounts
	session int64 // 0 for none
	timeout int32
	since   time.Duration
	est     int64 // when it was accepted and last answered, wall clock in ms
	resp    int64
}

// forEachConn calls use for every open connection, oldest first.
func (s *Server) forEachConn(a *answer, use func(connView)) {
	conns := s.openConns()
	inChunks(s, a, func(yield func(connView) bool) {
		for _, c := range conns {
			if !yield(s.view(c)) {
				return
			}
		}
	}, use)
}

// openConns returns the open connections, oldest first.
func (s *Server) openConns() []*conn {
	conns := s.liveConns()
	slices.SortFunc(conns, func(a, b *conn) int { return int(a.id - b.id) })
	return conns
}

// view returns the current state of c. Only the loop calls it.
func (s *Server) view(c *conn) connView {
	wall := func(d int64) int64 { return s.start.UnixMilli() + d }
	v := connView{
		remote: javaAddr(c.peer), state: 1, queued: c.outstanding(), counts: c.counts,
		since: c.acceptedAt, est: wall(c.acceptedAt.Milliseconds()), resp: wall(c.counts.lastReply.Milliseconds()),
	}
	if c.asksFourLetter() {
		v.state, v.counts.received = 0, 1
	}
	v.session, v.timeout, _ = s.loop.tree.Session(c.id)
	return v
}

// brief returns the line of stat, without the last parenthesis.
func (v *connView) brief() string {
	return fmt.Sprintf(" %s[%d](queued=%d,recved=%d,sent=%d", v.remote, v.state, v.queued, v.counts.received, v.counts.sent)
}

// details returns what cons adds for a connection with a session.
func (v *connView) details() string {
	if v.session == 0 {
		return ""
	}
	k, lcxid := &v.counts, ""
	if k.lastXid >= 0 {
		lcxid = ",lcxid=" + hex(int64(k.lastXid))
	}
	return fmt.Sprintf(",sid=%s,lop=%s,est=%d,to=%d%s,lzxid=%s,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
		hex(v.session), opName(k.lastOp), v.est, v.timeout, lcxid, hex(k.lastZxid), v.resp,
		k.latency.last.Milliseconds(), k.latency.min.Milliseconds(), k.latency.mean().Milliseconds(), k.latency.max.Milliseconds())
}

// javaAddr returns the peer's address as Java writes it.
func javaAddr(peer net.Addr) string { return "/" + peer.String() }

// outstanding returns the number of requests that were read and not yet answered. Only the
// loop calls it.
func (s *Server) outstanding() (n int) {
	for _, c := range s.loop.conns {
		n += c.outstanding()
	}
	return n
}

func (c *conn) outstanding() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int(c.unanswered)
	if c.blockingIO != nil {
		n += len(c.in.frames)
	}
	return n
}

// asksFourLetter reports whether the client of c sent a four-letter word.
func (c *conn) asksFourLetter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blockingIO != nil && c.fourLetter
}
