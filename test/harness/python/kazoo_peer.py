"""A kazoo client that runs the commands on its standard input.

Each line is a command; each answer is one line of JSON: {"ok": bool, "error":
str, "node": str, "timeouts": int}. Commands:

    acquire KIND PATH MILLIS    KIND: none (no lock), lock, lock-shared (waits
                                for "-lock-" nodes too), read, write,
                                semaphore:N
    release                     releases the last acquired lock
    contend PATH ROUNDS MILLIS PAUSE WITNESS NAME CHOICE...
                                see the function contend
"""
import json
import random
import socket
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout


class Unguarded:
    """No lock."""

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
    # create_path is the path of a semaphore's node. A lock's node has a suffix.
    node = getattr(recipe, "node", None)
    return recipe, {"ok": True, "node": path + "/" + node if node else recipe.create_path}


class Witness:
    """Receives a report of each hold."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.socket.makefile("r")

    def say(self, line):
        self.socket.sendall((line + "\n").encode())
        answer = self.answers.readline()
        if answer != "ok\n":
            raise RuntimeError("the witness answered %r to %r" % (answer, line))

    def close(self):
        self.answers.close()
        self.socket.close()


def contend(zk, path, rounds, millis, pause, address, name, *choices):
    """Contends for locks, and reports each hold to a witness.

    A choice is KIND=CLAIMS: a kind of lock, and the claims for the witness. The
    rounds use the choices in turn. A negative time limit means a random one up
    to its absolute value. After a timeout, the client counts it and tries
    again. After each round, the client pauses for a random time up to a limit.
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
            if words[0] == "acquire":
                recipe, answer = acquire(zk, *words[1:])
                held = recipe or held
            elif words[0] == "release":
                held.release()
                held, answer = None, {"ok": True}
            elif words[0] == "contend":
                answer = contend(zk, *words[1:])
            else:
                answer = {"ok": False, "error": "unknown command " + words[0]}
        except Exception as error:  # for the test's message
            answer = {"ok": False, "error": "%s: %s" % (type(error).__name__, error)}
        print(json.dumps(answer), flush=True)


main()
