package zkserver

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// version is what the four-letter words report. Clients and monitoring read
// the number to know the dialect, so it is that of the ZooKeeper whose
// behaviour the server follows.
const version = "3.8.0-zklock"

// words are the four-letter words and what answers them. Each runs on the
// loop's goroutine, between two batches; a nil conn list means none is needed.
// See ZooKeeper's package org.apache.zookeeper.server.command.
var words = map[string]func(*Server) string{
	"ruok": func(*Server) string { return "imok" },
	"isro": func(*Server) string { return "rw" },
	"srvr": (*Server).wordSrvr,
	"stat": (*Server).wordStat,
	"mntr": (*Server).wordMntr,
	"conf": (*Server).wordConf,
	"envi": (*Server).wordEnvi,
	"cons": (*Server).wordCons,
	"dump": (*Server).wordDump,
	"wchs": (*Server).wordWchs,
	"crst": (*Server).wordCrst,
	"srst": (*Server).wordSrst,
}

// answerWord answers one of words, or says that it is not allowed, in the
// words of ZooKeeper. The answer is empty if the server has just ended.
func (s *Server) answerWord(name string) string {
	allowed := s.opts.FourLetterWords
	if !slices.Contains(allowed, name) && !slices.Contains(allowed, "*") {
		return name + " is not executed because it is not in the whitelist.\n"
	}
	var answer string
	s.ask(func() { answer = words[name](s) })
	return answer
}

func (s *Server) wordSrvr() string {
	return "Zookeeper version: " + version + "\n" + s.summary()
}

// summary is what srvr and stat end with.
func (s *Server) summary() string {
	t, tree := &s.loop.traffic, s.loop.tree
	var b strings.Builder
	fmt.Fprintf(&b, "Latency min/avg/max: %d/%s/%d\n",
		t.latency.min.Milliseconds(), javaDouble(t.latency.mean()), t.latency.max.Milliseconds())
	fmt.Fprintf(&b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n",
		t.received, t.sent, s.connections(), s.outstanding())
	fmt.Fprintf(&b, "Zxid: %#x\nMode: standalone\nNode count: %d\n", tree.Zxid(), tree.Counts().Nodes)
	return b.String()
}

func (s *Server) wordStat() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Zookeeper version: %s\nClients:\n", version)
	for _, c := range s.sorted() {
		fmt.Fprintf(&b, " %s(%s)\n", c.name(), c.brief())
	}
	return b.String() + "\n" + s.summary()
}

func (s *Server) wordCons() string {
	var b strings.Builder
	for _, c := range s.sorted() {
		fmt.Fprintf(&b, " %s(%s%s)\n", c.name(), c.brief(), s.details(c))
	}
	return b.String() + "\n"
}

func (s *Server) wordCrst() string {
	for _, c := range s.loop.conns {
		c.counts = connCounts{}
	}
	return "Connection stats reset.\n"
}

func (s *Server) wordSrst() string {
	s.loop.traffic = newTraffic()
	return "Server stats reset.\n"
}

// connections counts the open connections, those without a session included.
func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// outstanding counts the requests that were read and not yet applied.
func (s *Server) outstanding() (n int) {
	for _, c := range s.loop.conns {
		n += c.outstanding()
	}
	return n
}

func (c *conn) outstanding() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting + len(c.in.frames)
}

// sorted returns the connections that have sent anything, oldest first.
func (s *Server) sorted() []*conn {
	conns := make([]*conn, 0, len(s.loop.conns))
	for _, c := range s.loop.conns {
		conns = append(conns, c)
	}
	slices.SortFunc(conns, func(a, b *conn) int { return int(a.id - b.id) })
	return conns
}

// name is the peer as ZooKeeper writes it; the number is 1 for a connection
// with interest in reads, which this server always has.
func (c *conn) name() string {
	return fmt.Sprintf("/%v[1]", c.nc.RemoteAddr())
}

func (c *conn) brief() string {
	return fmt.Sprintf("queued=%d,recved=%d,sent=%d", c.outstanding(), c.counts.received, c.counts.sent)
}

// details is what cons adds for a connection with a session.
func (s *Server) details(c *conn) string {
	id, timeout, ok := s.loop.tree.Session(c.id)
	if !ok {
		return ""
	}
	k := &c.counts
	wall := func(d int64) int64 { return s.start.UnixMilli() + d }
	return fmt.Sprintf(",sid=%#x,lop=%v,est=%d,to=%d,lcxid=%#x,lzxid=%#x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
		id, k.lastOp, wall(c.since.Milliseconds()), timeout, uint32(k.lastXid), k.lastZxid, wall(k.responded.Milliseconds()),
		k.latency.last.Milliseconds(), k.latency.min.Milliseconds(), k.latency.mean().Milliseconds(), k.latency.max.Milliseconds())
}

// javaDouble writes a duration in milliseconds as Java writes a double that
// was rounded to four places.
func javaDouble(d time.Duration) string {
	s := strconv.FormatFloat(math.Round(float64(d.Microseconds())*10)/1e4, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
