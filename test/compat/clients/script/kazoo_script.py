"""Calls kazoo's client and recipes on the server at argv[1].

Prints one line for each step, without values that differ between runs, and then
"end of script".
"""
import queue
import sys
import threading

from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.exceptions import KazooException, CancelledError, LockTimeout, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.lease import MultiNonBlockingLease, NonBlockingLease
from kazoo.recipe.watchers import PatientChildrenWatch
from kazoo.retry import KazooRetry
from kazoo.security import (
    ACL, CREATOR_ALL_ACL, Id, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_acl, make_digest_acl)

WAIT = 60  # seconds, for an expected event
SESSION = 30  # seconds; sessions must survive a stall of the machine
ADDR = sys.argv[1]
CLIENTS = []


def say(what, value=""):
    print("%s: %s" % (what, value), flush=True)


def note(what, call):
    """Prints what the call returns, or the exception's name."""
    try:
        value = call()
    except (KazooException, KazooTimeoutError, LockTimeout, ValueError, TypeError) as error:
        value = type(error).__name__
    say(what, value)


def client(**options):
    zk = KazooClient(hosts=ADDR, timeout=SESSION, **options)
    zk.start(timeout=WAIT)
    # start may return before kazoo sets the state.
    until("connected", lambda: zk.state == KazooState.CONNECTED)
    CLIENTS.append(zk)
    return zk


def spawn(target, *args):
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


def join(*threads):
    for thread in threads:
        thread.join(WAIT)
        if thread.is_alive():
            say("FAILED: a thread hangs", thread)


def until(what, condition):
    """Waits for a condition that depends on another client."""
    pause = threading.Event()
    for _ in range(WAIT * 100):
        if condition():
            return
        pause.wait(0.01)
    say("FAILED: never came", what)


def stat(s):
    return s and "v=%d cv=%d av=%d len=%d children=%d owned=%s" % (
        s.version, s.cversion, s.aversion, s.dataLength, s.numChildren, s.ephemeralOwner != 0)


def events(zk, n, q):
    for _ in range(n):
        e = q.get(timeout=WAIT)
        say("event", "%s %s %s" % (e.type, e.state, e.path))


def nodes(zk):
    note("version", lambda: zk.server_version()[:2])
    note("ruok", lambda: zk.command(b"ruok"))
    note("create", lambda: zk.create("/n", b"data"))
    note("exists already", lambda: zk.create("/n"))
    note("no parent", lambda: zk.create("/x/y"))
    note("make path", lambda: zk.create("/x/y/z", b"", makepath=True))
    note("ensure", lambda: zk.ensure_path("/x/y/z/w"))
    note("empty", lambda: zk.get("/x/y/z")[0])
    note("empty data", lambda: zk.set("/x/y/z", b"").dataLength)
    note("null data", lambda: (zk.set("/x/y/z", None).dataLength, zk.get("/x/y/z")[0]))
    note("with stat", lambda: stat(zk.create("/n/s", b"12", include_data=True)[1]))
    note("sequence", lambda: zk.create("/n/seq-", sequence=True))
    note("ephemeral sequence", lambda: zk.create("/n/seq-", ephemeral=True, sequence=True))
    note("below ephemeral", lambda: zk.create("/n/seq-0000000002/c"))
    note("unicode", lambda: zk.create("/n/grüße-Ω", b"\xff\x00"))
    note("surrogates", lambda: zk.create("/n/𐐷", b""))
    note("children", lambda: sorted(zk.get_children("/n")))
    note("children with stat", lambda: stat(zk.get_children("/n", include_data=True)[1]))
    note("get", lambda: zk.get("/n")[0])
    note("stat", lambda: stat(zk.get("/n")[1]))
    note("missing", lambda: zk.get("/missing"))
    note("exists", lambda: stat(zk.exists("/n")))
    note("exists missing", lambda: zk.exists("/missing"))
    note("set", lambda: stat(zk.set("/n", b"1", version=0)))
    note("bad version", lambda: zk.set("/n", b"1", version=0))
    note("not empty", lambda: zk.delete("/n"))
    note("delete bad version", lambda: zk.delete("/n/s", version=3))
    note("delete", lambda: zk.delete("/n/s", version=0))
    note("delete missing", lambda: zk.delete("/n/s"))
    note("delete all", lambda: zk.delete("/x", recursive=True))
    note("sync", lambda: zk.sync("/n"))
    note("a megabyte", lambda: stat(zk.set("/n", b"x" * 1000000)))
    note("and back", lambda: len(zk.get("/n")[0]))
    note("session id", lambda: zk.client_id[0] != 0 and len(zk.client_id[1]))
    asyncs = [zk.create_async("/n/a%03d" % i, b"%d" % i) for i in range(200)]
    say("asynchronous", [a.get(timeout=WAIT) for a in asyncs][::50])
    asyncs = [zk.get_async("/n/a%03d" % i) for i in range(200)]
    say("asynchronous get", sum(int(a.get(timeout=WAIT)[0]) for a in asyncs))
    note("delete many", lambda: zk.delete("/n", recursive=True))


def watches(zk, other):
    q = queue.Queue()
    note("watch missing", lambda: zk.exists("/w", watch=q.put))
    other.create("/w", b"")
    events(zk, 1, q)
    note("two watches of one", lambda: (zk.get("/w", watch=q.put)[0], zk.exists("/w", watch=q.put).version))
    other.set("/w", b"1")
    events(zk, 1, q)
    note("child watch", lambda: zk.get_children("/w", watch=q.put))
    other.create("/w/c", b"")
    events(zk, 1, q)
    note("several kinds", lambda: (zk.get("/w/c", watch=q.put)[0], zk.get_children("/w/c", watch=q.put)))
    other.delete("/w/c")
    events(zk, 2, q)
    note("no watch on missing", lambda: zk.get("/w/c", watch=q.put))
    other.delete("/w")
    say("more events", q.qsize())


def transactions(zk):
    t = zk.transaction()
    t.create("/t", b"1")
    t.create("/t/e", b"", ephemeral=True)
    t.create("/t/s-", b"", sequence=True)
    t.create("/t/s-", b"", sequence=True)
    t.check("/t", 0)
    t.set_data("/t", b"two", version=0)
    t.delete("/t/e")
    say("transaction", [stat(x) if hasattr(x, "version") else x for x in t.commit()])
    for n, spoil in enumerate([
            lambda t: t.check("/t", 9), lambda t: t.delete("/t/none"), lambda t: t.create("/t"),
            lambda t: t.set_data("/t", b"", version=7), lambda t: t.create("/t/n/n"), lambda t: t.delete("/t")]):
        t = zk.transaction()
        t.create("/t/n", b"")
        t.delete("/t/n")
        spoil(t)
        t.create("/t/later", b"")
        say("failing %d" % n, [type(x).__name__ for x in t.commit()])
    with zk.transaction() as t:
        t.create("/t/with", b"")
    say("with", zk.exists("/t/with") is not None)
    say("empty", zk.transaction().commit())
    say("left", sorted(zk.get_children("/t")))
    zk.delete("/t", recursive=True)


def acls(zk):
    zk.add_auth("digest", "user:secret")
    note("creator", lambda: zk.create("/acl", b"", acl=CREATOR_ALL_ACL))
    note("its acl", lambda: [(a.perms, a.id.scheme, a.id.id) for a in zk.get_acls("/acl")[0]])
    anon = client()
    note("a stranger reads", lambda: anon.get("/acl"))
    note("a stranger makes a child", lambda: anon.create("/acl/c"))
    note("a stranger looks at the acl", lambda: anon.get_acls("/acl"))
    note("a stranger sees it", lambda: stat(anon.exists("/acl")))
    user = client(auth_data=[("digest", "user:secret")])
    note("the user elsewhere", lambda: stat(user.get("/acl")[1]))
    note("read for all", lambda: stat(user.set_acls("/acl", READ_ACL_UNSAFE + [make_digest_acl("user", "secret", all=True)])))
    note("a stranger reads now", lambda: anon.get("/acl")[0])
    note("a stranger sets", lambda: anon.set("/acl", b"x"))
    note("the digest is masked", lambda: [a.id.id for a in anon.get_acls("/acl")[0]])
    note("bad version", lambda: user.set_acls("/acl", OPEN_ACL_UNSAFE, version=9))
    note("invalid", lambda: user.set_acls("/acl", [make_acl("nonsense", "x", all=True)]))
    note("empty", lambda: anon.create("/acl2", b"", acl=[]))
    note("auth of nobody", lambda: anon.create("/acl3", b"", acl=CREATOR_ALL_ACL))
    note("world with a null id", lambda: anon.create("/acl4", b"", acl=[ACL(31, Id("world", ""))]))
    note("digest with a null id", lambda: anon.create("/acl4", b"", acl=[ACL(31, Id("digest", ""))]))
    note("own address", lambda: anon.create("/acl5", b"", acl=[make_acl("ip", "127.0.0.1", all=True)]))
    note("read it", lambda: anon.get("/acl5")[0])
    note("another address", lambda: anon.create("/acl6", b"", acl=[make_acl("ip", "10.1.2.0/24", all=True)]))
    note("do not read it", lambda: anon.get("/acl6")[0])
    note("makepath with acl", lambda: user.create("/acl7/1/2", b"", makepath=True, acl=CREATOR_ALL_ACL))
    note("a stranger's makepath", lambda: anon.create("/acl7/1/3/4", b"", makepath=True))
    root = client(auth_data=[("digest", "super:test")])
    note("super reads", lambda: root.get("/acl6")[0])
    note("super deletes", lambda: [root.delete(p, recursive=True) for p in ("/acl", "/acl5", "/acl6", "/acl7")])
    bad = client()
    note("bad scheme", lambda: bad.add_auth("nonsense", "x:y"))


def locks(zk, other):
    lock, rival = zk.Lock("/lock", "one"), other.Lock("/lock", "two")
    note("acquire", lock.acquire)
    note("not twice at once", lambda: rival.acquire(blocking=False))
    note("contenders", lock.contenders)
    note("time out", lambda: rival.acquire(timeout=0.3))
    note("contenders after the time-out", lock.contenders)
    got = queue.Queue()
    t = spawn(lambda: got.put(rival.acquire()))
    until("two contenders", lambda: len(lock.contenders()) == 2)
    say("in order", lock.contenders())
    note("release", lock.release)
    say("handed over", got.get(timeout=WAIT))
    join(t)
    t = spawn(lambda: got.put(_cancelled(lock)))
    until("two contenders", lambda: len(rival.contenders()) == 2)
    lock.cancel()
    say("cancelled", got.get(timeout=WAIT))
    join(t)
    rival.release()
    say("left", zk.get_children("/lock"))
    with zk.Lock("/lock", "ctx"):
        say("context", other.Lock("/lock").contenders())

    count, inside, worst = [0], [0], [0]

    def work(c):
        mine = c.Lock("/lock/busy", str(id(c)))
        for _ in range(15):
            with mine:
                inside[0] += 1
                worst[0] = max(worst[0], inside[0])
                count[0] += 1
                inside[0] -= 1
    join(*[spawn(work, c) for c in (zk, other, client(), client())])
    say("contention", (count[0], worst[0]))


def _cancelled(lock):
    try:
        return lock.acquire()
    except CancelledError:
        return "CancelledError"


def shared_locks(zk, other):
    r1, r2 = zk.ReadLock("/rw", "r1"), other.ReadLock("/rw", "r2")
    w = other.WriteLock("/rw", "w")
    note("two readers", lambda: (r1.acquire(), r2.acquire(blocking=False)))
    note("no writer", lambda: w.acquire(timeout=0.3))
    got = queue.Queue()
    t = spawn(lambda: got.put(w.acquire()))
    until("three", lambda: len(r1.contenders()) == 3)
    late = zk.ReadLock("/rw", "late")
    note("a late reader waits", lambda: late.acquire(timeout=0.3))
    r1.release()
    r2.release()
    say("the writer", got.get(timeout=WAIT))
    join(t)
    t = spawn(lambda: got.put(late.acquire()))
    until("two", lambda: len(w.contenders()) == 2)
    w.release()
    say("the late reader", got.get(timeout=WAIT))
    join(t)
    late.release()
    say("left", zk.get_children("/rw"))


def semaphores(zk, other):
    s1, s2, s3 = zk.Semaphore("/sem", "1", max_leases=2), other.Semaphore("/sem", "2", max_leases=2), other.Semaphore("/sem", "3", max_leases=2)
    note("two of two", lambda: (s1.acquire(), s2.acquire(blocking=False)))
    note("holders", lambda: sorted(s1.lease_holders()))
    note("no third", lambda: s3.acquire(blocking=False))
    note("nor in time", lambda: s3.acquire(timeout=0.3))
    note("another maximum", lambda: zk.Semaphore("/sem", "x", max_leases=5).acquire())
    got = queue.Queue()
    t = spawn(lambda: got.put(s3.acquire()))
    until("the gate is taken", lambda: zk.exists("/sem-__lock__") and zk.get_children("/sem-__lock__"))
    s1.release()
    say("the third", got.get(timeout=WAIT))
    join(t)
    say("holders", sorted(s1.lease_holders()))
    s2.release()
    s3.release()
    say("left", zk.get_children("/sem"))


def elections(zk, other):
    won, stop = queue.Queue(), threading.Event()

    def lead(name, wait):
        won.put(name)
        if wait:
            stop.wait(WAIT)
    e1, e2 = zk.Election("/election", "first"), other.Election("/election", "second")
    t1 = spawn(e1.run, lead, "first", True)
    say("elected", won.get(timeout=WAIT))
    t2 = spawn(e2.run, lead, "second", False)
    until("two", lambda: len(e1.contenders()) == 2)
    say("contenders", e1.contenders())
    stop.set()
    say("elected", won.get(timeout=WAIT))
    join(t1, t2)
    e3 = other.Election("/election", "third")
    with zk.Lock("/election", "holder"):
        t3 = spawn(e3.run, lead, "third", False)
        until("waits", lambda: len(e3.contenders()) == 2)
        e3.cancel()
        join(t3)
    say("cancelled", (won.qsize(), e3.contenders()))


def parties(zk, other):
    p1, p2, s = zk.Party("/party", "one"), other.Party("/party", "two"), other.ShallowParty("/shallow", "three")
    p1.join()
    p2.join()
    s.join()
    say("party", (sorted(p1), len(p2), p1.participating))
    say("shallow", (list(s), len(s)))
    p1.leave()
    say("left", (list(p2), p1.participating))
    p2.leave()
    s.leave()
    say("nobody", (list(p2), len(s)))


def barriers(zk, other):
    b = zk.Barrier("/barrier")
    note("no barrier", lambda: b.wait(0))
    b.create()
    note("in time", lambda: other.Barrier("/barrier").wait(0.2))
    got = queue.Queue()
    t = spawn(lambda: got.put(other.Barrier("/barrier").wait(WAIT)))
    note("remove", b.remove)
    say("waited", got.get(timeout=WAIT))
    note("remove again", b.remove)
    join(t)
    inside = queue.Queue()
    entered = threading.Barrier(3)

    def both(c, name):
        d = c.DoubleBarrier("/double", 3, identifier=name)
        d.enter()
        # kazoo's barrier blocks a member that checks it only after others have left.
        entered.wait(WAIT)
        inside.put(d.participating)
        d.leave()
        inside.put(d.participating)
    join(*[spawn(both, c, n) for c, n in ((zk, "a"), (other, "b"), (client(), "c"))])
    say("double", sorted(inside.get(timeout=WAIT) for _ in range(6)))
    say("left", zk.get_children("/double"))


def counters(zk, other):
    def add(c):
        mine = c.Counter("/counter")
        for _ in range(10):
            mine += 2
    join(*[spawn(add, c) for c in (zk, other)])
    n = zk.Counter("/counter")
    n -= 3
    say("counter", (n.value, n.pre_value, n.post_value))
    f = zk.Counter("/float", default=1.5)
    f += 0.5
    say("float", f.value)
    note("wrong type", lambda: n.__add__("x"))


def queues(zk, other):
    q = zk.Queue("/queue")
    say("empty", q.get())
    for value, priority in ((b"low", 200), (b"first", 100), (b"second", 100), (b"urgent", 1)):
        q.put(value, priority=priority)
    say("length", len(q))
    say("order", [other.Queue("/queue").get() for _ in range(5)])
    note("not bytes", lambda: q.put("text"))
    l1, l2 = zk.LockingQueue("/locking"), other.LockingQueue("/locking")
    l1.put_all([b"a", b"b", b"c"], priority=50)
    l1.put(b"x", priority=1)
    say("locked", (l1.get(timeout=WAIT), l2.get(timeout=WAIT)))
    say("holds", (l1.holds_lock(), l2.holds_lock()))
    say("consume", (l1.consume(), l1.holds_lock()))
    say("release", (l2.release(), l2.consume()))
    say("rest", [(l1.get(timeout=WAIT), l1.consume()) for _ in range(3)])
    say("nothing", l1.get(timeout=0.2))
    got = queue.Queue()
    t = spawn(lambda: got.put(l2.get(timeout=WAIT)))
    l1.put(b"late")
    say("woken", got.get(timeout=WAIT))
    join(t)
    say("length", len(l1))


def watchers(zk, other):
    seen = queue.Queue()

    @zk.DataWatch("/dw")
    def data(value, s, event):
        seen.put((value, s and s.version, event and event.type))
        return value != b"stop"
    say("data", seen.get(timeout=WAIT))
    other.create("/dw", b"1")
    say("data", seen.get(timeout=WAIT))
    other.set("/dw", b"2")
    say("data", seen.get(timeout=WAIT))
    other.delete("/dw")
    say("data", seen.get(timeout=WAIT))
    other.create("/dw", b"stop")
    say("data", seen.get(timeout=WAIT))
    other.set("/dw", b"unseen")

    other.create("/cw")

    def children(names, event):
        seen.put((sorted(names), event and event.type))
    watch = zk.ChildrenWatch("/cw", send_event=True)
    watch(children)
    say("children", seen.get(timeout=WAIT))
    for i in range(3):
        other.create("/cw/%d" % i)
        say("children", seen.get(timeout=WAIT))
    other.delete("/cw/1")
    say("children", seen.get(timeout=WAIT))
    other.delete("/cw", recursive=True)
    until("the watch stops", lambda: watch._stopped)
    note("on a missing node", lambda: zk.ChildrenWatch("/none", lambda names: None)._stopped)

    patient = PatientChildrenWatch(zk, "/party", time_boundary=0.2)
    names, changed = patient.start().get(timeout=WAIT)
    say("patient", (names, changed.ready()))
    other.create("/party/new")
    say("patient", changed.get(timeout=WAIT) > 0)
    other.delete("/party/new")


def caches(zk, other):
    other.create("/tree/a/b", b"ab", makepath=True)
    cache = TreeCache(zk, "/tree")
    seen = queue.Queue()
    cache.listen(seen.put)
    cache.listen_fault(lambda error: say("FAILED: fault", error))
    cache.start()

    def take(n):
        batch = []
        for _ in range(n):
            e = seen.get(timeout=WAIT)
            batch.append((e.event_type, e.event_data and (e.event_data.path, e.event_data.data)))
        return sorted(batch, key=str)
    say("initial", take(4))
    other.set("/tree/a", b"A")
    say("updated", take(1))
    other.create("/tree/a/c", b"ac")
    say("added", take(1))
    other.create("/tree/e", b"", ephemeral=True)
    say("added", take(1))
    say("cached", (cache.get_data("/tree/a").data, sorted(cache.get_children("/tree/a")), cache.get_data("/tree/none")))
    other.delete("/tree/a", recursive=True)
    say("removed", take(3))
    say("cached", sorted(cache.get_children("/tree")))
    other.delete("/tree", recursive=True)
    say("root removed", take(2))
    other.create("/tree", b"again")
    say("root added", take(1))
    cache.close()
    say("kinds", (TreeEvent.NODE_ADDED, TreeEvent.INITIALIZED))


def partitioners(zk, other):
    shares = {}
    agreed, release = threading.Barrier(2), threading.Event()

    def divide(c, name):
        p = c.SetPartitioner("/partition", set=range(7), identifier=name, time_boundary=0.5)
        while True:
            if p.failed:
                shares[name] = "failed"
                return
            if p.release:
                p.release_set()
            elif p.acquired:
                shares[name] = list(p)
                # Both continue only after each has seen the other.
                if len(p) < 7:
                    break
                p.wait_for_acquire(0.1)
                release.wait(0.05)
            else:
                p.wait_for_acquire(5)
        agreed.wait(WAIT)
        p.finish()
    join(spawn(divide, zk, "a"), spawn(divide, other, "b"))
    say("partition", (sorted(map(len, shares.values())), sorted(sum(shares.values(), []))))


def leases(zk, other):
    import datetime
    hour = datetime.timedelta(hours=1)
    now = [datetime.datetime(2030, 1, 1)]

    def clock():
        return now[0]
    say("lease", bool(NonBlockingLease(zk, "/lease", hour, identifier="one", utcnow=clock)))
    say("taken", bool(NonBlockingLease(other, "/lease", hour, identifier="two", utcnow=clock)))
    say("again", bool(NonBlockingLease(zk, "/lease", hour, identifier="one", utcnow=clock)))
    now[0] += 2 * hour
    say("expired", bool(NonBlockingLease(other, "/lease", hour, identifier="two", utcnow=clock)))
    say("multi", [bool(MultiNonBlockingLease(zk, 2, "/multi", hour, identifier=n, utcnow=clock)) for n in "abca"])


def sessions(zk):
    states = queue.Queue()
    c = client()
    c.create("/session", b"", ephemeral=True)
    seen_states = []

    def listen(state):
        # The listener may receive the state of the first connection.
        if state != KazooState.CONNECTED or seen_states:
            seen_states.append(state)
            states.put(state)
    c.add_listener(listen)
    seen = queue.Queue()
    c.exists("/session2", watch=seen.put)
    before = c.client_id[0]
    c._connection._socket.shutdown(2)
    say("dropped", (states.get(timeout=WAIT), states.get(timeout=WAIT)))
    say("the same session", (c.client_id[0] == before, c.exists("/session") is not None))
    e = seen.get(timeout=WAIT)
    say("its watch ends", (e.type, e.state))  # kazoo does not set it again
    c.exists("/session3", watch=seen.put)
    # A second client connects to the session.
    session = c.client_id
    second = client(client_id=session)
    say("taken over", (second.client_id[0] == before, stat(second.retry(second.exists, "/session"))))
    # If the first client reconnects before the second one closes the session, the close has no effect.
    while second.client_id[0] == before:
        second.stop()
        second.close()
        second = client(client_id=session)
    until("expiry", lambda: c.client_id and c.client_id[0] != before)
    until("connected", lambda: c.connected)
    say("expired", (KazooState.LOST in list(states.queue), zk.exists("/session")))
    e = seen.get(timeout=WAIT)
    while e.state == "CONNECTED":
        e = seen.get(timeout=WAIT)
    say("its watches end", (e.type, e.state))
    stranger = KazooClient(hosts=ADDR, timeout=SESSION, client_id=(before, b"wrong" + b"\0" * 11))
    stranger.start(timeout=WAIT)
    say("a wrong password", stranger.client_id[0] not in (before, 0))
    stranger.stop()
    stranger.close()
    chroot = KazooClient(hosts=ADDR + "/chroot/deep", timeout=SESSION)
    chroot.start(timeout=WAIT)
    note("below a missing root", lambda: chroot.create("/x"))
    note("made", lambda: zk.ensure_path("/chroot/deep"))
    note("then", lambda: (chroot.create("/x"), chroot.create("/s-", sequence=True), chroot.get_children("/") != []))
    say("really", sorted(zk.get_children("/chroot/deep")))
    chroot.stop()
    chroot.close()
    tries = []

    def flaky():
        tries.append(1)
        if len(tries) < 3:
            zk.get("/none-%d" % len(tries))
        return len(tries)
    say("retried", _retry(flaky, NoNodeError))


def _retry(call, error):
    retry = KazooRetry(max_tries=5, delay=0.01)
    retry.retry_exceptions = (error,)
    return retry(call)


def main():
    zk, other = client(), client()
    say("state", zk.state == KazooState.CONNECTED)
    say("at first", sorted(zk.get_children("/")))
    for part in (nodes, acls, transactions, sessions):
        say("# " + part.__name__)
        part(*((zk, other)[:part.__code__.co_argcount]))
    for part in (watches, locks, shared_locks, semaphores, elections, parties, barriers, counters, queues,
                 watchers, caches, partitioners, leases):
        say("# " + part.__name__)
        part(zk, other)
    for c in CLIENTS:
        c.stop()
        c.close()
    last = client()
    say("left at the end", sorted(last.get_children("/")))
    last.stop()
    last.close()
    print("end of script", flush=True)


main()
