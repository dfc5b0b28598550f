import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Runs one work with Curator. */
final class Driver implements AutoCloseable {
  private static final long SETUP = 120;

  /** The lock of a worker. */
  interface Lock {
    void acquire() throws Exception;

    void release() throws Exception;
  }

  private final Map<String, String> words;
  private final int workers;
  private final int locks;
  private final String kind;
  private final List<CuratorFramework> sessions = new ArrayList<>();
  private final List<Guard> guards = new ArrayList<>();

  Driver(String servers, Map<String, String> words) throws Exception {
    this.words = words;
    workers = number("workers");
    locks = number("locks");
    kind = words.get("kind");
    if (number("async") != 0 || number("held") != 0) {
      throw new UnsupportedOperationException("async or held");
    }
    for (int i = 0; i < number("sessions"); i++) {
      CuratorFramework session =
          CuratorFrameworkFactory.newClient(servers, 20000, 20000, new ExponentialBackoffRetry(100, 10));
      sessions.add(session);
      session.start();
    }
    for (CuratorFramework session : sessions) {
      if (!session.blockUntilConnected((int) SETUP, TimeUnit.SECONDS)) {
        throw new IllegalStateException("no session");
      }
    }
    long limit = kind.equals("readwrite") ? Guard.WRITER : kind.equals("semaphore") ? number("permits") : 1;
    for (int i = 0; i < locks; i++) {
      guards.add(new Guard(limit));
    }
  }

  private int number(String key) {
    return Integer.parseInt(words.get(key));
  }

  private String path(int worker) {
    return String.format("%s/lock-%05d", words.get("path"), worker % locks);
  }

  private Lock lock(int worker, boolean reader) {
    CuratorFramework session = sessions.get(worker % sessions.size());
    if (kind.equals("semaphore")) {
      InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(session, path(worker), number("permits"));
      return new Lock() {
        private Lease lease;

        public void acquire() throws Exception {
          lease = semaphore.acquire();
        }

        public void release() {
          semaphore.returnLease(lease);
        }
      };
    }
    InterProcessMutex mutex;
    if (kind.equals("readwrite")) {
      InterProcessReadWriteLock both = new InterProcessReadWriteLock(session, path(worker));
      mutex = reader ? both.readLock() : both.writeLock();
    } else {
      mutex = new InterProcessMutex(session, path(worker));
    }
    return new Lock() {
      public void acquire() throws Exception {
        mutex.acquire();
      }

      public void release() throws Exception {
        mutex.release();
      }
    };
  }

  /** Returns the words of a result. */
  String measure() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(workers);
    try {
      return number("millis") == 0 ? drain(pool) : run(pool);
    } finally {
      pool.shutdown();
    }
  }

  private String run(ExecutorService pool) throws Exception {
    CountDownLatch prepared = new CountDownLatch(workers);
    CountDownLatch ready = new CountDownLatch(1);
    AtomicLong cycles = new AtomicLong();
    List<Future<Void>> all = new ArrayList<>();
    AtomicLong end = new AtomicLong(Long.MAX_VALUE);
    for (int i = 0; i < workers; i++) {
      int worker = i;
      all.add(pool.submit(() -> work(worker, prepared, ready, end, cycles)));
    }
    prepared.await();
    long begin = System.nanoTime();
    ready.countDown();
    Thread.sleep(number("millis"));
    long done = cycles.get();
    long took = System.nanoTime() - begin;
    end.set(0);
    for (Future<Void> one : all) {
      one.get(SETUP, TimeUnit.SECONDS);
    }
    return result(done, took);
  }

  private Void work(int i, CountDownLatch prepared, CountDownLatch ready, AtomicLong end, AtomicLong cycles)
      throws Exception {
    Lock exclusive = lock(i, false);
    Lock shared = lock(i, true);
    prepared.countDown();
    ready.await();
    Random random = new Random(i);
    Guard guard = guards.get(i % locks);
    long full = kind.equals("readwrite") ? Guard.WRITER : 1;
    int readers = number("readers");
    while (end.get() != 0) {
      boolean reader = random.nextInt(100) < readers;
      cycle(reader ? shared : exclusive, guard, reader ? 1 : full);
      cycles.incrementAndGet();
    }
    return null;
  }

  private static void cycle(Lock lock, Guard guard, long weight) throws Exception {
    long began = System.nanoTime();
    lock.acquire();
    guard.enter(began, weight);
    guard.leave(weight);
    lock.release();
  }

  private String drain(ExecutorService pool) throws Exception {
    Lock first = lock(0, false);
    first.acquire();
    List<Future<Void>> all = new ArrayList<>();
    for (int i = 0; i < workers; i++) {
      Lock lock = lock(i, false);
      all.add(pool.submit((Callable<Void>) () -> {
        cycle(lock, guards.get(0), 1);
        return null;
      }));
    }
    while (sessions.get(0).getChildren().forPath(path(0)).size() <= workers) {
      Thread.sleep(20);
    }
    long begin = System.nanoTime();
    first.release();
    for (Future<Void> one : all) {
      one.get(SETUP, TimeUnit.SECONDS);
    }
    return result(workers, System.nanoTime() - begin);
  }

  private String result(long cycles, long nanos) {
    List<Long> all = new ArrayList<>();
    long violations = 0;
    for (Guard guard : guards) {
      all.addAll(guard.handOvers);
      violations += guard.violations.get();
    }
    Collections.sort(all);
    long middle = all.isEmpty() ? 0 : all.get(all.size() / 2);
    long late = all.isEmpty() ? 0 : all.get(all.size() * 99 / 100);
    return String.format("cycles=%d nanos=%d ho50=%d ho99=%d violations=%d heap=0", cycles, nanos, middle, late, violations);
  }

  @Override
  public void close() {
    for (CuratorFramework session : sessions) {
      session.close();
    }
  }
}
