"""Answers each line of standard input, servers and a work, with a line."""

import random
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock

# Bounds the setup and each acquire, so that a lock that hangs fails instead of blocking the
# benchmark.
SETUP = 30
WRITER = 1 << 20


class Guard:
    """Observes one lock: which holders it has, and how long handovers take."""

    def __init__(self, limit):
        self.limit, self.inside, self.released, self.violations = limit, 0, 0, 0
        self.hand_overs = []
        self.mutex = threading.Lock()

    def enter(self, began, weight):
        now = time.monotonic_ns()
        with self.mutex:
            self.inside += weight
            if (weight == WRITER and self.inside != WRITER) or self.inside > self.limit:
                self.violations += 1
            if self.released and began <= self.released <= now:
                self.hand_overs.append(now - self.released)

    def leave(self, weight):
        with self.mutex:
            self.inside -= weight
            self.released = time.monotonic_ns()


class Driver:
    """Runs one work with kazoo."""

    def __init__(self, servers, words):
        self.words = words
        self.kind = words["kind"]
        self.workers, self.locks = int(words["workers"]), int(words["locks"])
        if words["async"] != "0" or words["held"] != "0":
            raise NotImplementedError("async or held")
        self.sessions = [KazooClient(hosts=servers, timeout=20) for _ in range(int(words["sessions"]))]
        for session in self.sessions:
            session.start(timeout=SETUP)
        limit = {"readwrite": WRITER, "semaphore": int(words["permits"])}.get(self.kind, 1)
        self.guards = [Guard(limit) for _ in range(self.locks)]
        self.errors = []

    def close(self):
        for session in self.sessions:
            session.stop()
            session.close()

    def path(self, worker):
        return "%s/lock-%05d" % (self.words["path"], worker % self.locks)

    def lock(self, worker, reader):
        session = self.sessions[worker % len(self.sessions)]
        if self.kind == "semaphore":
            return Semaphore(session, self.path(worker), max_leases=int(self.words["permits"]))
        if self.kind == "readwrite":
            return (ReadLock if reader else WriteLock)(session, self.path(worker))
        return Lock(session, self.path(worker))

    @staticmethod
    def cycle(lock, guard, weight):
        began = time.monotonic_ns()
        if not lock.acquire(timeout=SETUP):
            raise RuntimeError("acquire returned false")
        guard.enter(began, weight)
        guard.leave(weight)
        lock.release()

    def measure(self):
        return self.drain() if self.words["millis"] == "0" else self.run()

    def threads(self, function):
        def guarded(i):
            try:
                function(i)
            except Exception as e:  # reported at the end
                self.errors.append(repr(e))

        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(self.workers)]
        for t in threads:
            t.start()
        return threads

    def join(self, threads):
        for t in threads:
            t.join()
        if self.errors:
            raise RuntimeError(self.errors[0])

    def run(self):
        prepared, ready = threading.Barrier(self.workers + 1), threading.Event()
        stop = threading.Event()
        counts = [0] * self.workers
        readers = int(self.words["readers"])
        full = WRITER if self.kind == "readwrite" else 1

        def work(i):
            exclusive, shared = self.lock(i, False), self.lock(i, True)
            prepared.wait(SETUP)
            ready.wait()
            choice, guard = random.Random(i), self.guards[i % self.locks]
            while not stop.is_set():
                reader = choice.randrange(100) < readers
                self.cycle(shared if reader else exclusive, guard, 1 if reader else full)
                counts[i] += 1

        threads = self.threads(work)
        prepared.wait(SETUP)
        begin = time.monotonic_ns()
        ready.set()
        time.sleep(int(self.words["millis"]) / 1000)
        cycles, took = sum(counts), time.monotonic_ns() - begin
        stop.set()
        self.join(threads)
        return self.result(cycles, took)

    def drain(self):
        first = self.lock(0, False)
        first.acquire(timeout=SETUP)
        threads = self.threads(lambda i: self.cycle(self.lock(i, False), self.guards[0], 1))
        while len(self.sessions[0].get_children(self.path(0))) <= self.workers and not self.errors:
            time.sleep(0.02)
        begin = time.monotonic_ns()
        first.release()
        self.join(threads)
        return self.result(self.workers, time.monotonic_ns() - begin)

    def result(self, cycles, nanos):
        every = sorted(t for g in self.guards for t in g.hand_overs)
        middle, late = (every[len(every) // 2], every[len(every) * 99 // 100]) if every else (0, 0)
        violations = sum(g.violations for g in self.guards)
        return f"cycles={cycles} nanos={nanos} ho50={middle} ho99={late} violations={violations} heap=0"


def answer(line):
    servers, *rest = line.split()
    driver = None
    try:
        driver = Driver(servers, dict(word.split("=", 1) for word in rest))
        return "ok " + driver.measure()
    except NotImplementedError as e:
        return "unsupported %s" % e
    except Exception as e:
        return "error " + repr(e).replace("\n", " ")
    finally:
        if driver:
            driver.close()


for text in sys.stdin:
    print(answer(text), flush=True)
