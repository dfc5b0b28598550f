import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicValue;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/** Counters and shared values. */
final class Values {
  private Values() {}

  private static String value(AtomicValue<?> v) {
    return v.succeeded() + " " + v.preValue() + " -> " + v.postValue();
  }

  static void counters(Steps s) throws Exception {
    PromotedToLock promoted =
        PromotedToLock.builder().lockPath("/atomic-lock").retryPolicy(new RetryNTimes(50, 10)).timeout(Steps.WAIT, TimeUnit.SECONDS).build();
    DistributedAtomicLong n = new DistributedAtomicLong(s.a, "/atomic", new RetryNTimes(0, 0), promoted);
    s.say("initialize", n.initialize(5L) + " " + n.initialize(6L));
    s.say("get", n.get().postValue());
    s.say("increment", value(n.increment()));
    s.say("add", value(n.add(10L)));
    s.say("subtract", value(n.subtract(3L)));
    s.say("set", value(n.trySet(100L)));
    s.say("compare and set", value(n.compareAndSet(100L, 7L)));
    s.say("compare in vain", n.compareAndSet(100L, 8L).succeeded());
    n.forceSet(0L);
    ExecutorService pool = Executors.newCachedThreadPool();
    Future<?>[] adders = new Future<?>[4];
    for (int i = 0; i < adders.length; i++) {
      CuratorFramework c = i % 2 == 0 ? s.a : s.b;
      adders[i] =
          pool.submit(
              () -> {
                DistributedAtomicLong mine = new DistributedAtomicLong(c, "/atomic", new RetryNTimes(2, 1), promoted);
                int done = 0;
                while (done < 15) {
                  done += mine.increment().succeeded() ? 1 : 0;
                }
                return done;
              });
    }
    for (Future<?> adder : adders) {
      adder.get();
    }
    s.say("all together", n.get().postValue());
    CachedAtomicLong cached = new CachedAtomicLong(new DistributedAtomicLong(s.a, "/cached", new RetryNTimes(5, 1)), 10);
    s.say("cached", cached.next().postValue() + " " + cached.next().postValue());
    s.say("integer", value(new DistributedAtomicInteger(s.a, "/int", new RetryNTimes(5, 1)).decrement()));
    DistributedAtomicValue v = new DistributedAtomicValue(s.a, "/value", new RetryNTimes(5, 1));
    s.say("value", v.trySet(Steps.bytes("x")).succeeded() + " " + Steps.text(v.get().postValue()));
    pool.shutdown();
  }

  static void shared(Steps s) throws Exception {
    BlockingQueue<Integer> seen = new LinkedBlockingQueue<>();
    SharedCount one = new SharedCount(s.a, "/count", 3);
    SharedCount two = new SharedCount(s.b, "/count", 9);
    one.addListener(
        new SharedCountListener() {
          @Override
          public void countHasChanged(SharedCountReader reader, int count) {
            seen.add(count);
          }

          @Override
          public void stateChanged(CuratorFramework c, ConnectionState state) {}
        });
    one.start();
    two.start();
    s.say("counts", one.getCount() + " " + two.getCount());
    two.setCount(4);
    s.say("seen", s.take(seen));
    s.say("try", two.trySetCount(two.getVersionedValue(), 5));
    s.say("seen", s.take(seen));
    s.say("out of date", one.trySetCount(two.getVersionedValue(), 6));
    one.close();
    two.close();
    SharedValue value = new SharedValue(s.a, "/shared", Steps.bytes("seed"));
    value.start();
    value.setValue(Steps.bytes("new"));
    s.say("value", Steps.text(value.getValue()) + " version " + value.getVersionedValue().getVersion());
    value.close();
  }
}
