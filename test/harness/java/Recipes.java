import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * Curator's recipes with one interface, by kind: none (no lock), mutex, revocable (a mutex that
 * accepts release requests), read, write, semaphore:N and semaphore:N:K (K of N leases), resizable
 * (a semaphore with a SharedCount), semaphoremutex, multi and multi:KIND (mutexes, or locks of that
 * kind, at several paths with commas), latch, selector, and writelock, which is the recipe in
 * ZooKeeper's own source.
 */
final class Recipes {
  /** One lock, for one thread. */
  interface Recipe {
    /** Reports whether it acquired the lock within the time. */
    boolean acquire(long millis) throws Exception;

    void release() throws Exception;

    /** Returns the path of the holder's node, or null if the recipe does not know it. */
    default String node() throws Exception {
      return null;
    }
  }

  private final CuratorFramework client;
  private volatile CountDownLatch revoked = new CountDownLatch(1);

  Recipes(CuratorFramework client) {
    this.client = client;
  }

  Recipe make(String kind, String path) {
    String[] parts = kind.split(":");
    switch (parts[0]) {
      case "none":
        return new Unguarded();
      case "mutex":
        return new Mutex(new InterProcessMutex(client, path));
      case "revocable":
        return new Mutex(revocable(path));
      case "read":
        return new Mutex(new InterProcessReadWriteLock(client, path).readLock());
      case "write":
        return new Mutex(new InterProcessReadWriteLock(client, path).writeLock());
      case "semaphore":
        return new Semaphore(
            client,
            path,
            Integer.parseInt(parts[1]),
            parts.length > 2 ? Integer.parseInt(parts[2]) : 1);
      case "resizable":
        return new Semaphore(client, path);
      case "semaphoremutex":
        return new Lock(new InterProcessSemaphoreMutex(client, path));
      case "multi":
        return new Lock(multi(parts.length > 1 ? parts[1] : "mutex", path.split(",")));
      case "latch":
        return new Latch(client, path);
      case "selector":
        return new Selector(client, path);
      case "writelock":
        return new ApacheLock(client, path);
      default:
        throw new IllegalArgumentException("unknown kind " + kind);
    }
  }

  private InterProcessMultiLock multi(String kind, String[] paths) {
    List<InterProcessLock> locks = new ArrayList<>();
    for (String path : paths) {
      locks.add(((Lock) make(kind, path)).lock);
    }
    return new InterProcessMultiLock(locks);
  }

  private InterProcessMutex revocable(String path) {
    CountDownLatch requested = new CountDownLatch(1);
    revoked = requested;
    InterProcessMutex mutex = new InterProcessMutex(client, path);
    mutex.makeRevocable(lock -> requested.countDown());
    return mutex;
  }

  /** Waits for a release request for the last revocable lock. */
  boolean awaitRevocation(long millis) throws InterruptedException {
    return revoked.await(millis, TimeUnit.MILLISECONDS);
  }

  Collection<Participant> participants(String kind, String path) throws Exception {
    if (kind.equals("latch")) {
      return new LeaderLatch(client, path).getParticipants();
    }
    return new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
          @Override
          public void takeLeadership(CuratorFramework ignored) {}
        })
        .getParticipants();
  }

  private static final class Unguarded implements Recipe {
    @Override
    public boolean acquire(long millis) {
      return true;
    }

    @Override
    public void release() {}
  }

  /** Creates a WriteLock for each acquire, because one that timed out may lock again by itself. */
  private static final class ApacheLock implements Recipe {
    private static final long RETRY_MILLIS = 200;

    private final CuratorFramework client;
    private final String path;
    private WriteLock lock;

    ApacheLock(CuratorFramework client, String path) {
      this.client = client;
      this.path = path;
    }

    @Override
    public boolean acquire(long millis) throws Exception {
      client.createContainers(path);
      CountDownLatch acquired = new CountDownLatch(1);
      lock = new WriteLock(client.getZookeeperClient().getZooKeeper(), path, null);
      lock.setLockListener(
          new LockListener() {
            @Override
            public void lockAcquired() {
              acquired.countDown();
            }

            @Override
            public void lockReleased() {}
          });
      // If its predecessor is deleted between its listing and its watch, WriteLock waits forever,
      // so call lock repeatedly.
      for (long left = millis; left > 0; left -= RETRY_MILLIS) {
        lock.lock();
        if (acquired.await(Math.min(left, RETRY_MILLIS), TimeUnit.MILLISECONDS)) {
          return true;
        }
      }
      release();
      return false;
    }

    @Override
    public void release() {
      lock.unlock();
      lock.close();
    }

    @Override
    public String node() {
      return lock.getId();
    }
  }

  /** An implementation of Curator's InterProcessLock. */
  private static class Lock implements Recipe {
    private final InterProcessLock lock;

    Lock(InterProcessLock lock) {
      this.lock = lock;
    }

    @Override
    public boolean acquire(long millis) throws Exception {
      return lock.acquire(millis, TimeUnit.MILLISECONDS);
    }

    @Override
    public void release() throws Exception {
      lock.release();
    }
  }

  private static final class Mutex extends Lock {
    private final InterProcessMutex mutex;

    Mutex(InterProcessMutex mutex) {
      super(mutex);
      this.mutex = mutex;
    }

    /** The first node is the holder's. With several readers it may be another reader's. */
    @Override
    public String node() throws Exception {
      return mutex.getParticipantNodes().iterator().next();
    }
  }

  private static final class Semaphore implements Recipe {
    private final InterProcessSemaphoreV2 semaphore;
    private final String path;
    private final int leases;
    private Collection<Lease> held;

    Semaphore(CuratorFramework client, String path, int max, int leases) {
      this.semaphore = new InterProcessSemaphoreV2(client, path, max);
      this.path = path;
      this.leases = leases;
    }

    Semaphore(CuratorFramework client, String path) {
      SharedCount size = new SharedCount(client, path + "/size", 1); // ends with the client
      try {
        size.start();
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
      this.semaphore = new InterProcessSemaphoreV2(client, path, size);
      this.path = path;
      this.leases = 1;
    }

    @Override
    public boolean acquire(long millis) throws Exception {
      held = semaphore.acquire(leases, millis, TimeUnit.MILLISECONDS);
      return held != null;
    }

    @Override
    public void release() {
      semaphore.returnAll(held);
    }

    @Override
    public String node() throws Exception {
      return path + "/leases/" + held.iterator().next().getNodeName();
    }
  }

  private static final class Latch implements Recipe {
    private final CuratorFramework client;
    private final String path;
    private LeaderLatch latch;

    Latch(CuratorFramework client, String path) {
      this.client = client;
      this.path = path;
    }

    @Override
    public boolean acquire(long millis) throws Exception {
      latch = new LeaderLatch(client, path, "curator");
      latch.start();
      if (latch.await(millis, TimeUnit.MILLISECONDS)) {
        return true;
      }
      latch.close();
      return false;
    }

    @Override
    public void release() throws Exception {
      latch.close();
    }

    @Override
    public String node() {
      return latch.getOurPath();
    }
  }

  private static final class Selector implements Recipe {
    private final CuratorFramework client;
    private final String path;
    private LeaderSelector selector;

    Selector(CuratorFramework client, String path) {
      this.client = client;
      this.path = path;
    }

    @Override
    public boolean acquire(long millis) throws Exception {
      CountDownLatch leads = new CountDownLatch(1);
      selector =
          new LeaderSelector(
              client,
              path,
              new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework ignored) throws Exception {
                  leads.countDown();
                  new CountDownLatch(1).await(); // until close interrupts it
                }
              });
      selector.setId("curator");
      selector.start();
      if (leads.await(millis, TimeUnit.MILLISECONDS)) {
        return true;
      }
      selector.close();
      return false;
    }

    @Override
    public void release() {
      selector.close();
    }
  }
}
