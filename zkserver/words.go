package zkserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// version returns what the four-letter words report. Clients and monitoring read the
// number to know the dialect, so it is that of the ZooKeeper whose behavior the server
// has: docs/compatibility.md lists which release changed what.
//
// The date is that release's too, in the form of the releases before 3.8: the one that
// go-zookeeper reads.
func (o *Options) version() string {
	if o.Compat38 {
		return "3.8.0-zklock, built on 02/25/2022 08:49 UTC"
	}
	return "3.9.4-zklock, built on 08/19/2025 19:53 UTC"
}

// words are the four-letter words and what answers them, on the goroutine of
// the connection that asks. See ZooKeeper's package
// org.apache.zookeeper.server.command, whose forms they have line by line.
var words = map[string]func(*Server, *answer){
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

// FourLetterWords lists the commands that Options.FourLetterWords may name, in
// alphabetical order.
func FourLetterWords() []string { return slices.Sorted(maps.Keys(words)) }

// allowed reports whether the options allow a word. ZooKeeper always allows
// srvr, which its own scripts ask; here a list that is empty and not nil means
// none at all.
func (o *Options) allowed(name string) bool {
	list := o.FourLetterWords
	return slices.Contains(list, name) || slices.Contains(list, "*") || name == "srvr" && len(list) > 0
}

// answerTo answers one of words, or says that it is not allowed, in the words
// of ZooKeeper. An answer ends early if the server or the connection does.
func (s *Server) answerTo(name string, a *answer) {
	if !s.opts.allowed(name) {
		a.text(name + " is not executed because it is not in the whitelist.\n")
	} else {
		words[name](s, a)
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
	a.text("Zookeeper version: " + s.opts.version() + "\n" + summary(s.Stats()))
}

// mode is the role of a server of one node.
func mode(st Stats) string {
	if st.ReadOnly {
		return "read-only"
	}
	return "standalone"
}

// javaNodes is the number of nodes as ZooKeeper counts: the root is in its table
// under two names.
func javaNodes(st Stats) int { return st.Nodes + 1 }

// summary is what srvr and stat end with.
func summary(st Stats) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Latency min/avg/max: %d/%s/%d\n",
		st.LatencyMin.Milliseconds(), javaMillis(st.LatencyAverage), st.LatencyMax.Milliseconds())
	fmt.Fprintf(&b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n", st.Received, st.Sent, st.Connections, st.Outstanding)
	fmt.Fprintf(&b, "Zxid: %#x\nMode: %s\nNode count: %d\n", st.Zxid, mode(st), javaNodes(st))
	return b.String()
}

func (s *Server) wordStat(a *answer) {
	a.text("Zookeeper version: " + s.opts.version() + "\nClients:\n")
	s.eachConn(a, func(v connView) { a.text(v.brief() + ")\n") })
	a.text("\n" + summary(s.Stats()))
}

func (s *Server) wordCons(a *answer) {
	s.eachConn(a, func(v connView) { a.text(v.brief() + v.details() + ")\n") })
	a.text("\n")
}

func (s *Server) wordCrst(a *answer) {
	s.ask(func() {
		for _, c := range s.loop.conns {
			c.counts = newConnCounts()
		}
	})
	a.text("Connection stats reset.\n")
}

func (s *Server) wordSrst(a *answer) {
	s.ask(func() { s.loop.traffic = newTraffic() })
	a.text("Server stats reset.\n")
}
