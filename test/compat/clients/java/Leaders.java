import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** Elections and barriers. */
final class Leaders {
  private Leaders() {}

  private static String names(Collection<Participant> participants) {
    List<String> names = new ArrayList<>();
    for (Participant p : participants) {
      names.add(p.getId() + (p.isLeader() ? " leads" : ""));
    }
    return Steps.sorted(names).toString();
  }

  static void latches(Steps s) throws Exception {
    BlockingQueue<String> changes = new LinkedBlockingQueue<>();
    LeaderLatch one = new LeaderLatch(s.a, "/latch", "one", LeaderLatch.CloseMode.NOTIFY_LEADER);
    one.addListener(listener("one", changes));
    one.start();
    s.say("change", s.take(changes));
    LeaderLatch two = new LeaderLatch(s.b, "/latch", "two");
    two.addListener(listener("two", changes));
    two.start();
    s.until("both", () -> one.getParticipants().size() == 2);
    s.say("participants", names(two.getParticipants()));
    s.say("leader", two.getLeader().getId() + " " + one.hasLeadership() + " " + two.hasLeadership());
    s.say("does not lead in time", two.await(Steps.SHORT, TimeUnit.MILLISECONDS));
    // After the session ends, the other one leads, and the first one enqueues again.
    s.expire(s.a);
    s.say("changes", Steps.sorted(List.of(s.take(changes), s.take(changes))));
    s.until("both again", () -> two.getParticipants().size() == 2);
    s.say("participants", names(two.getParticipants()));
    two.close();
    s.say("change", s.take(changes));
    s.say("leads", one.await(Steps.WAIT, TimeUnit.SECONDS));
    one.close();
    s.say("change", s.take(changes));
    s.say("left", s.a.getChildren().forPath("/latch"));
  }

  private static LeaderLatchListener listener(String name, BlockingQueue<String> changes) {
    return new LeaderLatchListener() {
      @Override
      public void isLeader() {
        changes.add(name + " leads");
      }

      @Override
      public void notLeader() {
        changes.add(name + " leads no more");
      }
    };
  }

  private static LeaderSelector selector(CuratorFramework c, String name, BlockingQueue<String> led, boolean stay) {
    LeaderSelector selector =
        new LeaderSelector(
            c,
            "/selector",
            new LeaderSelectorListenerAdapter() {
              @Override
              public void takeLeadership(CuratorFramework client) throws Exception {
                led.add(name);
                if (stay) {
                  new CountDownLatch(1).await(); // until it is interrupted
                }
              }
            });
    selector.setId(name);
    return selector;
  }

  static void selectors(Steps s) throws Exception {
    BlockingQueue<String> led = new LinkedBlockingQueue<>();
    LeaderSelector one = selector(s.a, "one", led, true);
    one.start();
    s.say("leads", s.take(led));
    LeaderSelector two = selector(s.b, "two", led, false);
    two.start();
    s.until("both", () -> one.getParticipants().size() == 2);
    s.say("participants", names(one.getParticipants()));
    s.say("leader", two.getLeader().getId());
    one.interruptLeadership();
    s.say("leads", s.take(led));
    s.until("nobody", () -> two.getParticipants().isEmpty());
    LeaderSelector again = selector(s.a, "again", led, false);
    again.autoRequeue();
    again.start();
    s.say("leads", s.take(led) + " " + s.take(led) + " " + s.take(led));
    again.close();
    one.close();
    two.close();
    s.until("all gone", () -> s.a.getChildren().forPath("/selector").isEmpty());
  }

  static void barriers(Steps s) throws Exception {
    ExecutorService pool = Executors.newCachedThreadPool();
    DistributedBarrier barrier = new DistributedBarrier(s.a, "/barrier");
    s.say("no barrier", barrier.waitOnBarrier(Steps.SHORT, TimeUnit.MILLISECONDS));
    barrier.setBarrier();
    DistributedBarrier other = new DistributedBarrier(s.b, "/barrier");
    s.say("in time", other.waitOnBarrier(Steps.SHORT, TimeUnit.MILLISECONDS));
    Future<Boolean> waits = pool.submit(() -> other.waitOnBarrier(Steps.WAIT, TimeUnit.SECONDS));
    barrier.removeBarrier();
    s.say("removed", waits.get());
    List<Future<String>> members = new ArrayList<>();
    // Curator's barrier blocks a member that checks it only after others have left.
    CyclicBarrier inside = new CyclicBarrier(3);
    for (CuratorFramework c : List.of(s.a, s.b, s.client())) {
      members.add(
          pool.submit(
              () -> {
                DistributedDoubleBarrier d = new DistributedDoubleBarrier(c, "/double", 3);
                boolean entered = d.enter(Steps.WAIT, TimeUnit.SECONDS);
                inside.await(Steps.WAIT, TimeUnit.SECONDS);
                return entered + " " + d.leave(Steps.WAIT, TimeUnit.SECONDS);
              }));
    }
    for (Future<String> member : members) {
      s.say("double", member.get());
    }
    s.say("in vain", new DistributedDoubleBarrier(s.a, "/double2", 2).enter(Steps.SHORT, TimeUnit.MILLISECONDS));
    pool.shutdown();
  }
}
