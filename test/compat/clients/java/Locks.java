import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.shared.SharedCount;

/** The locks, with two clients each, because a mutex is reentrant in its thread. */
final class Locks {
  private Locks() {}

  private static boolean shortly(InterProcessLock lock) throws Exception {
    return lock.acquire(Steps.SHORT, TimeUnit.MILLISECONDS);
  }

  /** Acquires in another thread, and releases at once. */
  private static Future<Boolean> waiting(ExecutorService pool, InterProcessLock lock) {
    return pool.submit(
        () -> {
          boolean got = lock.acquire(Steps.WAIT, TimeUnit.SECONDS);
          lock.release();
          return got;
        });
  }

  static void mutexes(Steps s) throws Exception {
    ExecutorService pool = Executors.newCachedThreadPool();
    InterProcessMutex one = new InterProcessMutex(s.a, "/mutex");
    InterProcessMutex two = new InterProcessMutex(s.b, "/mutex");
    CountDownLatch revoked = new CountDownLatch(1);
    one.makeRevocable(lock -> revoked.countDown());
    one.acquire();
    s.say("reentrant", shortly(one));
    one.release();
    s.say("still held", one.isOwnedByCurrentThread());
    s.note("not twice", () -> shortly(two));
    s.say("nodes", one.getParticipantNodes());
    Revoker.attemptRevoke(s.b, one.getParticipantNodes().iterator().next());
    s.say("revoked", revoked.await(Steps.WAIT, TimeUnit.SECONDS));
    Future<Boolean> next = waiting(pool, two);
    s.until("two nodes", () -> one.getParticipantNodes().size() == 2);
    s.note("release", () -> {
      one.release();
      return "done";
    });
    s.say("handed over", next.get(Steps.WAIT, TimeUnit.SECONDS));
    s.note("release again", () -> {
      one.release();
      return "done";
    });
    s.say("left", s.a.getChildren().forPath("/mutex"));
    InterProcessSemaphoreMutex plain = new InterProcessSemaphoreMutex(s.a, "/smutex");
    InterProcessSemaphoreMutex other = new InterProcessSemaphoreMutex(s.b, "/smutex");
    plain.acquire();
    s.note("not reentrant", () -> shortly(plain));
    s.note("not twice", () -> shortly(other));
    plain.release();
    s.note("then", () -> shortly(other));
    other.release();
    pool.shutdown();
  }

  static void readWrite(Steps s) throws Exception {
    ExecutorService pool = Executors.newCachedThreadPool();
    InterProcessReadWriteLock one = new InterProcessReadWriteLock(s.a, "/rw", Steps.bytes("one"));
    InterProcessReadWriteLock two = new InterProcessReadWriteLock(s.b, "/rw");
    one.readLock().acquire();
    s.note("two readers", () -> shortly(two.readLock()));
    s.note("no writer", () -> pool.submit(() -> shortly(two.writeLock())).get());
    s.note("no upgrade", () -> shortly(one.writeLock()));
    Future<Boolean> writer = waiting(pool, two.writeLock());
    s.until("the writer's node", () -> two.writeLock().getParticipantNodes().size() == 1);
    s.note("a late reader waits", () -> pool.submit(() -> shortly(new InterProcessReadWriteLock(s.a, "/rw").readLock())).get());
    one.readLock().release();
    two.readLock().release();
    s.say("the writer", writer.get(Steps.WAIT, TimeUnit.SECONDS));
    one.writeLock().acquire();
    s.note("downgrade", () -> shortly(one.readLock()));
    s.note("no other reader", () -> shortly(two.readLock()));
    one.writeLock().release();
    s.note("now another reader", () -> shortly(two.readLock()));
    s.say("data", Steps.text(s.a.getData().forPath(one.readLock().getParticipantNodes().iterator().next())));
    one.readLock().release();
    two.readLock().release();
    s.say("left", s.a.getChildren().forPath("/rw"));
    pool.shutdown();
  }

  static void semaphores(Steps s) throws Exception {
    ExecutorService pool = Executors.newCachedThreadPool();
    InterProcessSemaphoreV2 one = new InterProcessSemaphoreV2(s.a, "/sem", 3);
    InterProcessSemaphoreV2 two = new InterProcessSemaphoreV2(s.b, "/sem", 3);
    one.setNodeData(Steps.bytes("whose"));
    Lease first = one.acquire();
    Collection<Lease> rest = two.acquire(2);
    s.say("data", Steps.text(first.getData()));
    s.say("nodes", one.getParticipantNodes().size());
    s.note("no fourth", () -> one.acquire(Steps.SHORT, TimeUnit.MILLISECONDS));
    s.note("nor two", () -> two.acquire(2, Steps.SHORT, TimeUnit.MILLISECONDS));
    Future<Lease> next = pool.submit(() -> one.acquire(Steps.WAIT, TimeUnit.SECONDS));
    s.until("it waits", () -> !s.a.getChildren().forPath("/sem/locks").isEmpty());
    two.returnAll(rest);
    s.say("handed over", next.get(Steps.WAIT, TimeUnit.SECONDS) != null);
    one.returnLease(first);
    one.returnLease(next.get());
    s.say("left", s.a.getChildren().forPath("/sem/leases"));
    SharedCount count = new SharedCount(s.a, "/sem-count", 1);
    count.start();
    InterProcessSemaphoreV2 counted = new InterProcessSemaphoreV2(s.a, "/counted", count);
    Lease lease = counted.acquire();
    s.note("one only", () -> counted.acquire(Steps.SHORT, TimeUnit.MILLISECONDS));
    count.setCount(2);
    s.note("now two", () -> counted.acquire(Steps.WAIT, TimeUnit.SECONDS) != null);
    counted.returnLease(lease);
    count.close();
    pool.shutdown();
  }

  static void multi(Steps s) throws Exception {
    InterProcessMultiLock one = new InterProcessMultiLock(s.a, Arrays.asList("/m1", "/m2", "/m3"));
    InterProcessMultiLock two = new InterProcessMultiLock(s.b, Arrays.asList("/m3", "/m4"));
    one.acquire();
    s.note("shares one", () -> shortly(two));
    s.note("got none of it", () -> s.b.getChildren().forPath("/m4"));
    one.release();
    s.note("then", () -> shortly(two));
    two.release();
  }

  static void contention(Steps s) throws Exception {
    List<CuratorFramework> clients = Arrays.asList(s.a, s.b, s.client(), s.client());
    ExecutorService pool = Executors.newCachedThreadPool();
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger worst = new AtomicInteger();
    AtomicInteger entries = new AtomicInteger();
    List<Future<Object>> workers = new ArrayList<>();
    for (CuratorFramework c : clients) {
      InterProcessMutex mutex = new InterProcessMutex(c, "/busy");
      for (int thread = 0; thread < 2; thread++) {
        workers.add(
            pool.submit(
                () -> {
                  for (int i = 0; i < 15; i++) {
                    mutex.acquire();
                    worst.accumulateAndGet(inside.incrementAndGet(), Math::max);
                    entries.incrementAndGet();
                    inside.decrementAndGet();
                    mutex.release();
                  }
                  return null;
                }));
      }
    }
    for (Future<Object> worker : workers) {
      worker.get(Steps.WAIT, TimeUnit.SECONDS);
    }
    s.say("entries and at once", entries + " " + worst);
    s.say("left", s.a.getChildren().forPath("/busy"));
    pool.shutdown();
  }
}
