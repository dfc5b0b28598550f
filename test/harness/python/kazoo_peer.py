"""A kazoo client that does what its standard input says.

Each line is a command; each answer is one line of JSON: {"ok": bool, "error":
str, "node": str, "lines": [str], "timeouts": int}. Commands:

    tour ROOT                   every operation below ROOT; lines say what came
    acquire KIND PATH MILLIS    KIND: none (guards nothing), lock, lock-shared
                                (sees "-lock-" nodes too), read, write,
                                semaphore:N
    release                     what was acquired
    contend PATH ROUNDS MILLIS PAUSE WITNESS NAME CHOICE...
                                takes locks again and again, see contend
    close                       ends the session; the process ends after it
"""
import json
import queue
import random
import socket
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, LockTimeout
from kazoo.security import make_digest_acl


class Tour:
    """One pass over the API; lines holds nothing that differs between runs."""

    def __init__(self, zk, root):
        self.zk, self.root, self.lines = zk, root, []
        self.events = queue.Queue()

    def note(self, what, call):
        try:
            result = call()
        except KazooException as error:
            result = type(error).__name__
        text = str(result)
        self.lines.append("%s: %s" % (what, text.replace(self.root, "ROOT")))

    def watch(self, event):
        self.events.put(event)

    def event(self):
        e = self.events.get(timeout=60)
        return "%s %s %s" % (e.type, e.state, e.path)

    def stat(self, stat):
        if stat is None:
            return None
        owner = stat.ephemeralOwner
        owner = {0: "none", self.zk.client_id[0]: "mine"}.get(owner, "other")
        return "version=%d cversion=%d aversion=%d length=%d children=%d owner=%s" % (
            stat.version, stat.cversion, stat.aversion, stat.dataLength, stat.numChildren, owner)

    def run(self):
        self.nodes()
        self.watches()
        self.transactions()
        self.acls()
        return self.lines

    def nodes(self):
        zk, r = self.zk, self.root
        self.note("create", lambda: zk.create(r, b"root", makepath=True))
        self.note("create again", lambda: zk.create(r, b""))
        self.note("create without parent", lambda: zk.create(r + "/no/such", b""))
        self.note("create ephemeral", lambda: zk.create(r + "/e", b"e", ephemeral=True))
        self.note("create below ephemeral", lambda: zk.create(r + "/e/x", b""))
        self.note("create sequential", lambda: zk.create(r + "/s-", b"", sequence=True))
        self.note("create ephemeral sequential",
                  lambda: zk.create(r + "/s-", b"", ephemeral=True, sequence=True))
        self.note("create with stat",
                  lambda: self.stat(zk.create(r + "/i", b"12", include_data=True)[1]))
        self.note("ensure path", lambda: zk.ensure_path(r + "/p/q"))
        self.note("exists", lambda: self.stat(zk.exists(r)))
        self.note("exists ephemeral", lambda: self.stat(zk.exists(r + "/e")))
        self.note("exists missing", lambda: zk.exists(r + "/missing"))
        self.note("get", lambda: zk.get(r)[0])
        self.note("get missing", lambda: zk.get(r + "/missing"))
        self.note("children", lambda: sorted(zk.get_children(r)))
        self.note("children with stat",
                  lambda: self.stat(zk.get_children(r, include_data=True)[1]))
        self.note("set", lambda: self.stat(zk.set(r, b"changed", version=0)))
        self.note("set bad version", lambda: zk.set(r, b"", version=7))
        self.note("delete bad version", lambda: zk.delete(r + "/i", version=7))
        self.note("delete not empty", lambda: zk.delete(r + "/p"))
        self.note("delete recursive", lambda: zk.delete(r + "/p", recursive=True))
        self.note("delete missing", lambda: zk.delete(r + "/p"))
        self.note("sync", lambda: zk.sync(r))

    def watches(self):
        zk, w = self.zk, self.root + "/w"
        self.note("watch exists", lambda: zk.exists(w, watch=self.watch))
        self.note("create watched", lambda: zk.create(w, b""))
        self.note("event", self.event)
        self.note("watch get", lambda: zk.get(w, watch=self.watch)[0])
        self.note("set watched", lambda: self.stat(zk.set(w, b"1")))
        self.note("event", self.event)
        self.note("watch children", lambda: zk.get_children(w, watch=self.watch))
        self.note("create child", lambda: zk.create(w + "/c", b""))
        self.note("event", self.event)
        self.note("watch for deletion", lambda: zk.get(w + "/c", watch=self.watch)[0])
        self.note("delete child", lambda: zk.delete(w + "/c"))
        self.note("event", self.event)

    def transactions(self):
        zk, t = self.zk, self.root + "/t"
        good = zk.transaction()
        good.create(t, b"1")
        good.create(t + "/e", b"", ephemeral=True)
        good.create(t + "/s-", b"", sequence=True)
        good.check(t, 0)
        good.set_data(t, b"two")
        good.delete(t + "/e")
        self.note("transaction", lambda: [
            self.stat(x) if hasattr(x, "version") else x for x in good.commit()])
        bad = zk.transaction()
        bad.create(t + "/n", b"")
        bad.check(t, 9)
        bad.delete(t)
        self.note("failing transaction", lambda: [type(x).__name__ for x in bad.commit()])
        self.note("nothing of it happened", lambda: zk.exists(t + "/n"))

    def acls(self):
        zk, a = self.zk, self.root + "/a"
        self.note("add auth", lambda: zk.add_auth("digest", "user:secret"))
        acl = make_digest_acl("user", "secret", all=True)
        self.note("create with acl", lambda: zk.create(a, b"", acl=[acl]))
        self.note("get acls", lambda: [(x.perms, x.id.scheme, x.id.id) for x in zk.get_acls(a)[0]])
        self.note("set acls", lambda: self.stat(zk.set_acls(a, [acl], version=0)))
        self.note("set acls bad version", lambda: zk.set_acls(a, [acl], version=7))


class Unguarded:
    """A lock that guards nothing."""

    create_path = ""

    def acquire(self, timeout):
        return True

    def release(self):
        pass


def make_recipe(zk, kind, path):
    if kind == "none":
        return Unguarded()
    if kind == "lock":
        return zk.Lock(path, "kazoo")
    if kind == "lock-shared":
        return zk.Lock(path, "kazoo", extra_lock_patterns=["-lock-"])
    if kind == "read":
        return zk.ReadLock(path, "kazoo")
    if kind == "write":
        return zk.WriteLock(path, "kazoo")
    if kind.startswith("semaphore:"):
        return zk.Semaphore(path, "kazoo", max_leases=int(kind[10:]))
    raise ValueError("unknown kind " + kind)


def take(recipe, millis):
    try:
        return recipe.acquire(timeout=millis / 1000.0)
    except LockTimeout:
        return False


def acquire(zk, kind, path, millis):
    recipe = make_recipe(zk, kind, path)
    if not take(recipe, int(millis)):
        return None, {"ok": False, "error": "timeout"}
    # A semaphore's node has the path that it creates, a lock's a suffix more.
    node = getattr(recipe, "node", None)
    return recipe, {"ok": True, "node": path + "/" + node if node else recipe.create_path}


class Witness:
    """Is told when this process holds."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.socket.makefile("r")

    def say(self, line):
        self.socket.sendall((line + "\n").encode())
        answer = self.answers.readline()
        if answer != "ok\n":
            raise RuntimeError("the witness said %r to %r" % (answer, line))

    def close(self):
        self.answers.close()
        self.socket.close()


def contend(zk, path, rounds, millis, pause, address, name, *choices):
    """Takes locks again and again, and tells a witness when it holds.

    A choice is KIND=CLAIMS: a kind of lock, and what the witness is told; the
    rounds go through the choices in turn. A time limit below 0 means a random
    one up to its size. What was not acquired in time is tried again, and
    counted. Between two rounds there is a random pause up to a limit.
    """
    locks = [(make_recipe(zk, kind, path), claims) for kind, claims in
             (choice.split("=") for choice in choices)]
    millis, timeouts = int(millis), 0
    witness = Witness(address)
    witness.say("join " + name)
    for i in range(int(rounds)):
        lock, claims = locks[i % len(locks)]
        witness.say("turn")
        while not take(lock, millis if millis >= 0 else random.randint(1, -millis)):
            timeouts += 1
        witness.say("enter %s 0" % claims)
        witness.say("leave")
        lock.release()
        time.sleep(random.random() * int(pause) / 1000.0)
    witness.close()
    return {"ok": True, "timeouts": timeouts}


def main():
    zk = KazooClient(hosts=sys.argv[1], timeout=float(sys.argv[2]))
    zk.start(timeout=120)
    held = None
    for line in sys.stdin:
        words = line.split()
        try:
            if words[0] == "tour":
                answer = {"ok": True, "lines": Tour(zk, words[1]).run()}
            elif words[0] == "acquire":
                recipe, answer = acquire(zk, *words[1:])
                held = recipe or held
            elif words[0] == "release":
                held.release()
                held, answer = None, {"ok": True}
            elif words[0] == "contend":
                answer = contend(zk, *words[1:])
            elif words[0] == "close":
                zk.stop()
                zk.close()
                print(json.dumps({"ok": True}), flush=True)
                return
            else:
                answer = {"ok": False, "error": "unknown command " + words[0]}
        except Exception as error:  # the tester shall read what went wrong
            answer = {"ok": False, "error": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps(answer), flush=True)


main()
