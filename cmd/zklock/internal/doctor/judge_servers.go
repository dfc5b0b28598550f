package doctor

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// reached returns the servers that opened a session.
func (f *Facts) reached() []Server {
	return slices.DeleteFunc(slices.Clone(f.Servers), func(s Server) bool { return s.err != nil })
}

// name returns the address of a server for messages.
func (s Server) name() string { return legible.Path(s.Address) }

// names returns the addresses of several servers for messages.
func names(servers []Server) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.name())
	}
	return strings.Join(all, ", ")
}

// why returns why there is no session, without the address, which the message has already.
func (s Server) why() string {
	text := strings.TrimPrefix(s.err.Error(), "zk: dial "+s.Address+": ")
	return strings.TrimPrefix(text, s.Address+": ")
}

// remedy returns which setting to change if a server answered but refused the client, or
// the client refused the server. It returns "" for other reasons.
func (s Server) remedy() string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.Is(s.err, zk.ErrTLSRequired):
		return "use TLS: see --tls-ca"
	case errors.As(s.err, &authority):
		return "if this is the right server, give the file of its certificate authority with --tls-ca"
	case errors.As(s.err, &host):
		return "if this is the right server, give the name in its certificate with --tls-server-name"
	case errors.As(s.err, &invalid):
		return "renew the server's certificate"
	case errors.Is(s.err, zk.ErrAuthFailed):
		return "correct the credentials: see --auth-file"
	}
	return ""
}

// judgeServers reports which servers answer, and their roles.
func (f *Facts) judgeServers() []Finding {
	var found []Finding
	var roles []string
	reached := 0
	for _, s := range f.Servers {
		role := s.Role
		switch {
		case s.err != nil && (s.Answers || s.remedy() != ""):
			do := cmp.Or(s.remedy(), "read its log: it may have no quorum, or no free connections")
			found = append(found, finding(Warning, checkServers, do, "%s answers but opens no session: %s", s.name(), s.why()).at(s))
			continue
		case s.err != nil:
			found = append(found, finding(Warning, checkServers, "start it, or remove it from the addresses that clients have",
				"%s does not answer: %s", s.name(), s.why()).at(s))
			continue
		case role == "read-only":
			found = append(found, finding(Critical, checkServers, "find out why it cannot reach the other servers; if it is zklock serve, free space on its disk or replace the disk, and restart the server: its clients can neither acquire nor release a lock",
				"%s is read-only: it has no quorum, or its disk is full or has failed", s.name()).at(s))
		case role == "":
			role = "role unknown"
		}
		reached++
		roles = append(roles, s.name()+" "+role)
	}
	if reached == 0 {
		return append(found, finding(Critical, checkServers, "check the addresses, the servers, and the network: no client can acquire a lock, and holds end within the session timeout",
			"none of %s opens a session", cli.Count(len(f.Servers), "server")))
	}
	if f.Main != nil {
		found = append(found, finding(Unknown, checkServers, "run doctor again; if this repeats, read the servers' logs", "the servers stopped answering: %v", f.Main))
	}
	return append(found, finding(OK, checkServers, "", "%d of %d answer: %s", reached, len(f.Servers), strings.Join(roles, ", ")))
}

// voters returns the number of voting servers in the ensemble's configuration. If the
// configuration is unknown, it counts the given servers without known observers.
func (f *Facts) voters() int {
	for _, s := range f.Servers {
		n := 0
		for line := range strings.Lines(s.config) {
			if strings.HasPrefix(line, "server.") && !strings.Contains(line, ":observer") {
				n++
			}
		}
		if n > 0 {
			return n
		}
	}
	n := 0
	for _, s := range f.Servers {
		if s.Role != "observer" {
			n++
		}
	}
	return n
}

// judgeQuorum reports how many servers may fail, and whether all are in one ensemble.
func (f *Facts) judgeQuorum() []Finding {
	if len(f.reached()) == 0 {
		return nil
	}
	found := f.judgeOneness()
	voters := f.voters()
	if voters <= 1 {
		return append(found, finding(OK, checkQuorum, "", "one server: while it is down, no client can acquire a lock, and holds end at their deadlines"))
	}
	up, counted := f.upVoters(voters)
	most := (voters - 1) / 2 // how many may be down
	spare := most - (voters - up)
	switch {
	case spare < 0:
		found = append(found, finding(Critical, checkQuorum, "start the other servers: without a majority, no client can acquire or release a lock",
			"only %d of %s take part", up, cli.Count(voters, "voting server")))
	case !counted:
		found = append(found, finding(Note, checkQuorum, "give addresses at which all voting servers answer, so that doctor can count them",
			"a majority of %s takes part", cli.Count(voters, "voting server")))
	case spare == 0 && up < voters:
		found = append(found, finding(Warning, checkQuorum, "start the other servers before one more fails",
			"%d of %d voting servers take part: if one more fails, no client can acquire or release a lock", up, voters))
	default:
		found = append(found, finding(OK, checkQuorum, "", "%d of %d voting servers take part: %d more may fail", up, voters, spare))
	}
	if voters%2 == 0 {
		found = append(found, finding(Note, checkQuorum, fmt.Sprintf("use %d, which tolerate as many failures, or %d, which tolerate one more", voters-1, voters+1),
			"%d voting servers tolerate the failure of %d, as many as %d do", voters, most, voters-1))
	}
	return found
}

// upVoters returns the largest number of voting servers that can take part, and whether it is
// exact. It prefers the leader's count. If a server has a quorum, at least a majority takes
// part, and those without a given address can take part too.
func (f *Facts) upVoters(voters int) (up int, counted bool) {
	given, quorum := 0, false
	for _, s := range f.Servers {
		if s.err == nil && s.Role == "leader" && s.Synced >= 0 {
			return s.Synced + 1, true
		}
		if s.Role != "observer" {
			given++
			if s.err == nil && s.Role != "read-only" {
				up++
			}
		}
		quorum = quorum || s.err == nil && s.Role != "read-only"
	}
	if !quorum {
		return up, true
	}
	majority, most := voters/2+1, up+max(voters-given, 0)
	if most < majority {
		return majority, false // servers that doctor does not reach take part
	}
	return most, most == max(up, majority)
}

// judgeOneness finds servers that are in different ensembles. Clients of different
// ensembles do not exclude each other.
func (f *Facts) judgeOneness() []Finding {
	const do = "give clients the addresses of one ensemble: with these addresses, two clients can hold the same lock"
	reached := f.reached()
	var leaders, alone []Server
	configs, roots := map[string]bool{}, map[int64]bool{}
	for _, s := range reached {
		switch s.Role {
		case "leader":
			leaders = append(leaders, s)
		case "standalone":
			alone = append(alone, s)
		case "read-only":
			continue // it may lag behind
		}
		roots[s.identity] = true
		if s.config != "" { // a standalone server that became the leader of an ensemble stores none until it restarts
			configs[s.config] = true
		}
	}
	switch {
	case len(alone) > 0 && len(reached) > 1:
		return []Finding{finding(Critical, checkQuorum, do, "standalone, outside the ensemble: %s", names(alone)).at(alone...)}
	case len(leaders) > 1:
		return []Finding{finding(Critical, checkQuorum, do+"; if the ensemble has just elected a leader, run doctor again", "more than one leader: %s", names(leaders)).at(leaders...)}
	case len(roots) > 1:
		return []Finding{finding(Critical, checkQuorum, do, "the servers do not have the same znodes: they report different creations of %s", legible.Path(f.Prefix))}
	case len(configs) > 1:
		return []Finding{finding(Warning, checkQuorum, "if the ensemble is being reconfigured, run doctor again; otherwise, "+do, "the servers have different configurations")}
	}
	return nil
}

// oldestVersion is the oldest version of ZooKeeper that zklock supports.
const oldestVersion = "3.4.6"

// judgeVersions compares the versions of the servers.
func (f *Facts) judgeVersions() []Finding {
	of := map[string][]Server{}
	var versions []string
	for _, s := range f.reached() {
		if s.Version == "" {
			continue
		}
		if of[s.Version] == nil {
			versions = append(versions, s.Version)
		}
		of[s.Version] = append(of[s.Version], s)
	}
	slices.SortFunc(versions, compareVersions)
	if len(versions) == 0 {
		if len(f.reached()) == 0 {
			return nil
		}
		return []Finding{finding(Note, checkVersions, "add srvr to the servers' 4lw.commands.whitelist", "the servers do not report their versions")}
	}
	var found []Finding
	oldest := versions[0]
	if level, do := judgeVersion(oldest); do != "" {
		found = append(found, finding(level, checkVersions, do, "version %s on %s", oldest, names(of[oldest])).at(of[oldest]...))
	}
	if len(versions) > 1 {
		var parts []string
		for _, v := range versions {
			parts = append(parts, v+" on "+names(of[v]))
		}
		return append(found, finding(Warning, checkVersions, "finish the update", "the versions differ: %s", strings.Join(parts, "; ")).at(f.reached()...))
	}
	if len(found) == 0 {
		found = append(found, finding(OK, checkVersions, "", "%s", oldest))
	}
	return found
}

// judgeVersion returns what to do about servers of a version, or "" if they lack nothing.
func judgeVersion(version string) (level Level, do string) {
	before := func(other string) bool { return compareVersions(version, other) < 0 }
	if before(oldestVersion) {
		return Critical, "update the servers: zklock needs " + oldestVersion + " or later, because older servers do not answer requests that they do not know"
	}
	level = Note
	var lacks []string
	if before("3.5.1") {
		level = Warning
		lacks = append(lacks, "can end sessions early if its clock is set forward", "has no container znodes, so the znodes of unused locks remain (see zklock gc)")
	}
	if before("3.6") {
		lacks = append(lacks, "has no recursive watches, so top and ui poll")
	}
	if before("3.9.4") {
		lacks = append(lacks, "can lose confirmed writes if servers are killed around an election")
	}
	if lacks == nil {
		return OK, ""
	}
	return level, "update the servers to 3.9.4 or later: this version " + strings.Join(lacks, "; it ")
}

// compareVersions compares versions by their numbers.
func compareVersions(a, b string) int {
	numbers := func(s string) (all []int) {
		for part := range strings.SplitSeq(s, ".") {
			all = append(all, number(part))
		}
		return all
	}
	return slices.Compare(numbers(a), numbers(b))
}

// judgeLatency compares the latency of requests with the time between heartbeats, an
// eighth of the session timeout.
func (f *Facts) judgeLatency() []Finding {
	reached := slices.DeleteFunc(f.reached(), func(s Server) bool { return s.Write.Median == 0 })
	if len(reached) == 0 {
		return nil
	}
	var found []Finding
	slowest := reached[0]
	for _, s := range reached {
		if s.Write.Median > slowest.Write.Median {
			slowest = s
		}
		heartbeat := time.Duration(s.Timeout) / 8
		const do = "check the servers' disks (use a separate dataLogDir), garbage collection, and network, or set a longer --session-timeout"
		switch w := time.Duration(s.Write.Median); {
		case w > heartbeat:
			found = append(found, finding(Critical, checkLatency, do, "a write through %s takes %v, longer than the %v between heartbeats: holds are lost", s.name(), s.Write.Median, heartbeat).at(s))
		case w > heartbeat/4, time.Duration(s.Write.Max) > heartbeat:
			found = append(found, finding(Warning, checkLatency, do, "a write through %s takes %v, at most %v; a heartbeat is due every %v", s.name(), s.Write.Median, s.Write.Max, heartbeat).at(s))
		}
		if s.Outstanding > 100 {
			found = append(found, finding(Warning, checkLatency, "find out which clients send so many requests: see the four-letter words srvr, mntr, and cons", "%d requests wait in %s", s.Outstanding, s.name()).at(s))
		}
		if s.MaxFiles > 0 && s.OpenFiles > s.MaxFiles/10*8 {
			found = append(found, finding(Warning, checkServers, "raise its limit of open files (LimitNOFILE), or use fewer connections: at the limit, no client can connect",
				"%s has %d of %d file descriptors open", s.name(), s.OpenFiles, s.MaxFiles).at(s))
		}
	}
	where := ""
	if len(reached) > 1 {
		where = fmt.Sprintf(" through the slowest, %s", slowest.name())
	}
	return append(found, finding(OK, checkLatency, "", "read %v, sync %v, write %v%s (medians of up to %d)",
		slowest.Read.Median, slowest.Sync.Median, slowest.Write.Median, where, samples))
}
