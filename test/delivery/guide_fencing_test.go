package delivery

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// A fenced is a storage that compares fencing tokens, as the guide describes. Its commands are
// for a shell in the folder with the guide's files.
type fenced struct {
	name    string
	storage *storage // nil if it needs no server
	execute string   // executes the file $1 with SQL; empty without SQL
	write   string   // writes the balance $3 with the era $1 and the token $2, and fails if that is rejected
	read    string   // prints the balance, if there is no client
	row     string   // the file that adds a row
	fetch   string   // runs read.sql with the era $1 and the token $2
	// levels are the isolation levels: the options of clients, by name.
	levels map[string]string
	// isolate sets an option of clients.
	isolate func(f fence, option string)
	// client executes the statements of its input, and prints rows without a buffer.
	client []string
	// blocked is a query for the number of transactions that wait for a lock.
	blocked string
}

var (
	sqlite = fenced{
		name:    "SQLite",
		execute: `"$PYTHON" -c 'import sys; from fence import *; db.executescript(open(sys.argv[1]).read())' "$1"`,
		write:   `"$PYTHON" -c 'import sys; from fence import *; sys.exit(not set_balance(*map(int, sys.argv[1:])))' "$@"`,
		read:    `"$PYTHON" -c 'from fence import *; print(balance())'`,
		row:     "add-row.sql",
	}
	onPostgres = fenced{
		name: "PostgreSQL", storage: postgres,
		execute: `psql -Xq -v ON_ERROR_STOP=1 -f "$1" bank`,
		write:   `sh postgres.sh "$@"`,
		row:     "add-row.sql",
		fetch:   `psql -XqAt -v ON_ERROR_STOP=1 -v era="$1" -v token="$2" -f read.sql bank`,
		levels: map[string]string{
			"read committed":  `-c default_transaction_isolation=read\ committed`,
			"repeatable read": `-c default_transaction_isolation=repeatable\ read`,
			"serializable":    `-c default_transaction_isolation=serializable`,
		},
		isolate: func(f fence, option string) { f.env = append(f.env, "PGOPTIONS="+option) },
		blocked: "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
		client:  []string{"psql", "-XqAt", "bank"},
	}
	onMariaDB = fenced{
		name: "MariaDB", storage: mariadb,
		execute: `mariadb bank <"$1"`,
		write:   `sh mariadb.sh "$@"`,
		row:     "add-row-mariadb.sql",
		fetch:   `{ printf 'SET @era = %d, @token = %d;' "$1" "$2"; sed 's/:/@/g' read.sql; } | mariadb -N bank`,
		levels: map[string]string{
			"read uncommitted":   `init-command="SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"`,
			"read committed":     `init-command="SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"`,
			"repeatable read":    `init-command="SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"`,
			"snapshot isolation": `init-command="SET /*M!101108 SESSION innodb_snapshot_isolation = ON, */ SESSION wait_timeout = 600"`,
			"serializable":       `init-command="SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"`,
		},
		isolate: func(f fence, option string) { mariadb.setClient(f.t, f.reader, option) },
		blocked: "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
		client:  []string{"mariadb", "-Nn", "bank"},
	}
	onObjects = fenced{
		name: "object store", storage: objects,
		write: `"$PYTHON" -c 'import sys; from store import *; era, token, new = map(int, sys.argv[1:]); sys.exit(not update(era, token, lambda _: new))' "$@"`,
		read:  `"$PYTHON" -c 'from store import *; print(read()[0]["balance"])'`,
	}
)

// fence runs the commands of the fencing guide on a storage.
type fence struct {
	*reader
	fenced
	t     *testing.T
	admin *session // reads and resets the tables of a database server
}

// newFence writes the files of the guide, and creates the tables. edit changes a file before, or
// is nil.
func newFence(t *testing.T, kind fenced, edit func(file, text string) string) fence {
	t.Helper()
	f := fence{reader: newReader(t), fenced: kind, t: t}
	for _, b := range guideBlocks(t, "fencing.md") {
		if b.file == "" {
			continue
		}
		if edit != nil {
			b.text = edit(b.file, b.text)
		}
		f.runBlock(t, b)
	}
	harness.Python(t, "sys")
	f.env = append(f.env, "PYTHON="+harness.SystemPython)
	if kind.storage != nil {
		kind.storage.useFor(t, f.reader)
	}
	if kind.execute != "" {
		f.do(kind.execute, "schema.sql")
	}
	if kind.client != nil {
		f.admin = f.connect()
	}
	return f
}

// do runs a command of the storage, which must succeed, and returns its output.
func (f fence) do(command string, args ...string) string {
	f.t.Helper()
	return strings.TrimSpace(f.run(f.t, f.dir, f.env, "bash", append([]string{"-euc", command, "-"}, args...)...))
}

// start starts a command of the storage. The function that it returns waits for its end, and
// reports whether it succeeded.
func (f fence) start(command string, args ...string) (wait func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	c := exec.CommandContext(ctx, "bash", append([]string{"-euc", command, "-"}, args...)...)
	c.Dir, c.Env = f.dir, f.env
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	return func() bool {
		defer cancel()
		err := c.Wait()
		if ctx.Err() != nil {
			f.t.Errorf("%s %q did not end", command, args)
		}
		return err == nil
	}
}

// acquireToken acquires and releases the guide's lock on servers, and returns the token. If
// servers is empty, it uses the local server.
func acquireToken(t *testing.T, r *reader, servers string) int64 {
	t.Helper()
	env := r.env
	if servers != "" {
		env = append(slices.Clone(env), "ZKLOCK_SERVERS="+servers)
	}
	out := r.run(t, r.dir, env, "sh", "-c", `zklock run accounts -- sh -c 'echo $ZKLOCK_TOKEN'`)
	n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// numbers returns the arguments of a write.
func numbers(era int, token int64, balance int) []string {
	return []string{strconv.Itoa(era), strconv.FormatInt(token, 10), strconv.Itoa(balance)}
}

// accepts writes a new balance, and reports whether the storage accepted it. The balance must
// agree.
func (f fence) accepts(era int, token int64, balance int) bool {
	f.t.Helper()
	written := f.start(f.write, numbers(era, token, balance)...)()
	if got := f.balance(); (got == balance) != written {
		f.t.Errorf("era %d, token %d: the balance is %d, and %d is reported as written: %v", era, token, got, balance, written)
	}
	return written
}

func (f fence) balance() int {
	f.t.Helper()
	read := ""
	if f.admin != nil {
		read = strings.Join(f.admin.execute("SELECT balance FROM accounts"), "")
	} else {
		read = f.do(f.read)
	}
	n, err := strconv.Atoi(read)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// TestFencingGuideRefusesOldTokens acquires the guide's lock on the local server, then on a
// ZooKeeper ensemble, then on a new local server. The first move needs no new era: tokens grow.
// The second does. Each fence of the guide accepts every current holder and no late one.
func TestFencingGuideRefusesOldTokens(t *testing.T) {
	ensemble := harness.StartEnsemble(t, 3, harness.ServerConfig{}).ConnectString()
	r := newReader(t)
	first, local := acquireToken(t, r, ""), acquireToken(t, r, "")
	moved := acquireToken(t, r, ensemble)
	if moved <= local || local >= 1<<32 || moved < 1<<32 {
		t.Errorf("token %d of the local server, %d of the ensemble; want it to grow past 2^32", local, moved)
	}
	back := acquireToken(t, newReader(t), "")
	if first >= local || back >= moved {
		t.Fatalf("tokens %d and %d of the local server, %d of the ensemble, %d of a new local server: want growing local tokens, and a smaller one of the new server", first, local, moved, back)
	}
	for _, kind := range []fenced{sqlite, onPostgres, onMariaDB, onObjects} {
		t.Run(kind.name, func(t *testing.T) {
			f := newFence(t, kind, nil)
			for i, row := range []struct {
				era    int
				token  int64
				accept bool
				why    string
			}{
				{1, first, true, "the first holder"},
				{1, local, true, "the second holder"},
				{1, local, true, "the second holder retry"},
				{1, first, false, "the first holder, too late"},
				{1, moved, true, "a holder on the ensemble"},
				{1, local, false, "a holder on the local server, too late"},
				{1, back, false, "a smaller token in the same era"},
				{2, back, true, "a smaller token in a new era"},
				{1, moved + 1000, false, "a larger token in the old era"},
			} {
				if got := f.accepts(row.era, row.token, 10*i+10); got != row.accept {
					t.Errorf("%s (era %d, token %d): accepted is %v", row.why, row.era, row.token, got)
				}
			}
		})
	}
}

// TestFencingGuideAddsEra adds an era to a fence that has a token of 19 digits and no era.
func TestFencingGuideAddsEra(t *testing.T) {
	current := acquireToken(t, newReader(t), "")
	for _, kind := range []fenced{sqlite, onPostgres, onMariaDB} {
		t.Run(kind.name, func(t *testing.T) {
			f := newFence(t, kind, func(_, s string) string {
				s = strings.Replace(s, "era INTEGER NOT NULL, ", "", 1)
				return strings.Replace(s, "'accounts', 1, 0", "'accounts', 1875000000000000000", 1)
			})
			f.do(f.execute, "add-era.sql")
			if f.accepts(1, current, 999) {
				t.Errorf("token %d was accepted in the old era", current)
			}
			if !f.accepts(2, current, 10) {
				t.Errorf("token %d was rejected in a new era", current)
			}
			if f.accepts(1, 1875000000000000001, 999) {
				t.Error("a token of the old era was accepted")
			}
		})
	}
}

// A session is a client of a database that stays connected.
type session struct {
	t     *testing.T
	write func(string) error
	lines chan string // the output
	end   func() error
}

func (f fence) connect() *session {
	f.t.Helper()
	c := exec.CommandContext(f.t.Context(), f.client[0], f.client[1:]...)
	c.Dir, c.Env = f.dir, f.env
	in, err := c.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = in.Close() }) // ends the client, if it has not ended
	lines := make(chan string, 100)
	go func() { // ends with the session
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return &session{
		t: f.t, lines: lines,
		write: func(s string) error { _, err := fmt.Fprintln(in, s); return err },
		end: func() error {
			if err := in.Close(); err != nil {
				return err
			}
			for range lines {
			}
			return c.Wait()
		},
	}
}

// execute executes statements, and returns the lines that they print.
func (s *session) execute(statements ...string) (printed []string) {
	s.t.Helper()
	if err := s.write(strings.Join(append(statements, "SELECT 'done'"), ";\n") + ";"); err != nil {
		s.t.Fatal(err)
	}
	for line := range s.lines {
		if line == "done" {
			return printed
		}
		printed = append(printed, line)
	}
	s.t.Fatalf("the session ended in %q", statements)
	return nil
}

// begin executes statements in a new session, which commit ends.
func (f fence) begin(statements []string) (commit func()) {
	f.t.Helper()
	s := f.connect()
	s.execute(statements...)
	return func() {
		f.t.Helper()
		s.execute("COMMIT")
		if err := s.end(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// statements returns the statements of a file of the guide before its COMMIT, with values.
func (f fence) statements(file string, era int, token int64, balance int) []string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, file))
	if err != nil {
		f.t.Fatal(err)
	}
	v := numbers(era, token, balance)
	text = []byte(strings.NewReplacer(":era", v[0], ":token", v[1], ":balance", v[2]).Replace(string(text)))
	before, _, _ := strings.Cut(string(text), "COMMIT;")
	before = strings.TrimSuffix(strings.TrimSpace(before), ";")
	return strings.Split(before, ";")
}

// lockPoll is the time between two queries of waiting transactions. MariaDB caches the result
// until no query has read it for 100 ms.
const lockPoll = 200 * time.Millisecond

// whileBlocked starts a command, waits until it waits for a lock of the database, and calls
// then. It reports whether the command succeeded.
func (f fence) whileBlocked(then func(), command string, args []string) bool {
	f.t.Helper()
	wait := f.start(command, args...)
	for limit := time.Now().Add(patience); !slices.Equal(f.admin.execute(f.blocked), []string{"1"}); {
		if time.Now().After(limit) {
			f.t.Fatal("no transaction waits for a lock")
		}
		<-time.After(lockPoll)
	}
	then()
	return wait()
}

// reset writes the first rows of the tables, without a row of the fence if row is false.
func (f fence) reset(row bool) {
	f.t.Helper()
	f.admin.execute("UPDATE accounts SET balance = 100", "DELETE FROM fence")
	if row {
		f.admin.execute("INSERT INTO fence (name, era, token) VALUES ('accounts', 1, 0)")
	}
}

// retry returns a command that runs retry if it fails, which the guide requires of
// transactions.
func retry(command string) string { return "(" + command + ") || (" + command + ")" }

// TestFencingGuideRejectsConcurrentLateWrites runs the transactions of a late holder and of the
// next one at the same time, in each order, at each isolation level.
func TestFencingGuideRejectsConcurrentLateWrites(t *testing.T) {
	r := newReader(t)
	late, next := acquireToken(t, r, ""), acquireToken(t, r, "")
	for _, kind := range []fenced{onPostgres, onMariaDB} {
		t.Run(kind.name, func(t *testing.T) {
			f := newFence(t, kind, nil)
			for level, option := range kind.levels {
				kind.isolate(f, option)

				f.reset(true)
				commit := f.begin(f.statements("write.sql", 1, next, 250))
				if f.whileBlocked(commit, f.write, numbers(1, late, 999)) || f.balance() != 250 {
					t.Errorf("%s: a late write was accepted that waited for the next holder's: balance %d", level, f.balance())
				}

				f.reset(true)
				commit = f.begin(f.statements("write.sql", 1, late, 999))
				if !f.whileBlocked(commit, retry(f.write), numbers(1, next, 250)) || f.balance() != 250 {
					t.Errorf("%s: the next holder's write was rejected that waited for a late write: balance %d", level, f.balance())
				}

				f.reset(true)
				commit = f.begin(f.statements("write.sql", 1, late, 999))
				f.whileBlocked(commit, retry(f.fetch+" >seen"), numbers(1, next, 0))
				if seen, err := os.ReadFile(filepath.Join(f.dir, "seen")); err != nil || strings.TrimSpace(string(seen)) != "999" {
					t.Errorf("%s: the next holder reads %q, %v; want what the late holder wrote before", level, seen, err)
				}
				if f.accepts(1, late, 1000) {
					t.Errorf("%s: a late write was accepted after the next holder's read", level)
				}

				f.reset(false)
				add, err := os.ReadFile(filepath.Join(f.dir, f.row))
				if err != nil {
					t.Fatal(err)
				}
				commit = f.begin([]string{"BEGIN", strings.TrimSuffix(strings.TrimSpace(string(add)), ";")})
				if !f.whileBlocked(commit, retry(f.execute), []string{f.row}) {
					t.Errorf("%s: adding a row failed twice while another client added it", level)
				}
				if !f.accepts(1, next, 250) || f.accepts(1, late, 999) {
					t.Errorf("%s: with a row that two clients added, the next holder was rejected or the late one was not", level)
				}
			}
			if f.reset(false); f.accepts(1, next, 250) {
				t.Error("a write was accepted without a row")
			}
		})
	}
}

// TestFencingGuideReportsLostConnection ends the connection of the guide's script for MariaDB
// before COMMIT. The script fails, because the server rolls the transaction back.
func TestFencingGuideReportsLostConnection(t *testing.T) {
	const end = `query() { mariadb -N -e "$1" information_schema; }
transaction=$(query 'SELECT trx_mysql_thread_id FROM innodb_trx')
query "KILL $transaction"
until [ "$(query "SELECT count(*) FROM processlist WHERE id = $transaction")" = 0 ]; do sleep 0.1; done
`
	f := newFence(t, onMariaDB, func(file, text string) string {
		if file != "write.sql" {
			return text
		}
		if strings.Count(text, "COMMIT;") != 1 {
			t.Fatalf("%s has not one COMMIT", file)
		}
		return strings.Replace(text, "COMMIT;", "system sh end.sh\nCOMMIT;", 1)
	})
	if err := os.WriteFile(filepath.Join(f.dir, "end.sh"), []byte(end), 0o600); err != nil {
		t.Fatal(err)
	}
	if f.accepts(1, 7, 250) {
		t.Error("a write was accepted that the server rolled back")
	}
	if got := f.balance(); got != 100 {
		t.Errorf("balance %d, want 100", got)
	}
}

// pausedUpdate returns the command of a late holder's update. Between its read and its write,
// the next holder updates the object. The command prints whether the late update is accepted.
func pausedUpdate(late, next int64) string {
	return fmt.Sprintf(`"$PYTHON" -c 'from store import *; print(update(1, %d, lambda _: (update(1, %d, lambda _: 250), 999)[1]))'`, late, next)
}

// TestFencingGuideRejectsPausedUpdate checks that the storage rejects an update with an old
// ETag, for a new object and for an existing one.
func TestFencingGuideRejectsPausedUpdate(t *testing.T) {
	r := newReader(t)
	first, second, third := acquireToken(t, r, ""), acquireToken(t, r, ""), acquireToken(t, r, "")
	f := newFence(t, onObjects, nil)
	if got := f.do(pausedUpdate(first, second)); got != "False" || f.balance() != 250 {
		t.Errorf("a new object: accepted is %s, balance %d", got, f.balance())
	}
	if got := f.do(pausedUpdate(second, third)); got != "False" || f.balance() != 250 {
		t.Errorf("an object: accepted is %s, balance %d", got, f.balance())
	}
}

// TestFencingGuideNeedsEachCondition removes a condition from the guide's code. The late write
// of the first holder is then accepted, so the other tests can detect it.
func TestFencingGuideNeedsEachCondition(t *testing.T) {
	r := newReader(t)
	late, next := acquireToken(t, r, ""), acquireToken(t, r, "")
	for _, row := range []struct {
		why, file, before, after string
		kinds                    []fenced
	}{
		{"the balance without a condition", "write.sql", " AND EXISTS (SELECT 1 FROM fence WHERE name = 'accounts' AND era = :era AND token = :token)", "", []fenced{sqlite, onPostgres, onMariaDB}},
		{"the fence without a comparison", "write.sql", " AND (era < :era OR era = :era AND token <= :token)", "", []fenced{sqlite, onPostgres, onMariaDB}},
		{"a PUT without a condition", "store.py", "condition, method", "{}, method", []fenced{onObjects}},
	} {
		for _, kind := range row.kinds {
			t.Run(row.why+", "+kind.name, func(t *testing.T) {
				f := newFence(t, kind, func(file, text string) string {
					if file != row.file {
						return text
					}
					if strings.Count(text, row.before) != 1 {
						t.Fatalf("%s has not one %q", file, row.before)
					}
					return strings.Replace(text, row.before, row.after, 1)
				})
				if kind.execute == "" {
					f.do(pausedUpdate(late, next))
				} else {
					f.start(f.write, numbers(1, next, 250)...)()
					f.start(f.write, numbers(1, late, 999)...)()
				}
				if got := f.balance(); got != 999 {
					t.Errorf("balance %d: the late write was rejected", got)
				}
			})
		}
	}
}

// TestFencingGuideKeepsConcurrentUpdates changes an object from several clients of one holder at
// the same time, the first of which creates it.
func TestFencingGuideKeepsConcurrentUpdates(t *testing.T) {
	f := newFence(t, onObjects, nil)
	const clients, updates = 4, 10
	var waits []func() bool
	for range clients {
		waits = append(waits, f.start(fmt.Sprintf(`"$PYTHON" -c 'from store import *; [update(1, 7, lambda balance: balance + 1) for _ in range(%d)]'`, updates)))
	}
	for _, wait := range waits {
		if !wait() {
			t.Error("a client failed")
		}
	}
	if got := f.balance(); got != clients*updates {
		t.Errorf("balance %d after %d updates", got, clients*updates)
	}
}
