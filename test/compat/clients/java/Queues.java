import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/** The queues: one client produces, and the other consumes. */
final class Queues {
  private Queues() {}

  private static final class Consumer implements QueueConsumer<String> {
    private final BlockingQueue<String> items = new LinkedBlockingQueue<>();

    @Override
    public void consumeMessage(String item) {
      items.add(item);
    }

    @Override
    public void stateChanged(CuratorFramework client, ConnectionState state) {}
  }

  private static final class Serializer implements QueueSerializer<String> {
    @Override
    public byte[] serialize(String item) {
      return Steps.bytes(item);
    }

    @Override
    public String deserialize(byte[] bytes) {
      return Steps.text(bytes);
    }
  }

  private static QueueBuilder<String> builder(CuratorFramework c, Consumer consumer, String path) {
    return QueueBuilder.builder(c, consumer, new Serializer(), path);
  }

  static void queues(Steps s) throws Exception {
    for (boolean locked : new boolean[] {false, true}) {
      String path = locked ? "/q-locked" : "/q-plain";
      DistributedQueue<String> in = builder(s.a, null, path).buildQueue();
      in.start();
      for (int i = 0; i < 5; i++) {
        in.put("item " + i);
      }
      in.putMulti(
          new MultiItem<String>() {
            private int left = 2;

            @Override
            public String nextItem() {
              return left-- > 0 ? "one of two" : null;
            }
          });
      s.say("flushed", in.flushPuts(Steps.WAIT, TimeUnit.SECONDS));
      Consumer consumer = new Consumer();
      QueueBuilder<String> out = builder(s.b, consumer, path);
      DistributedQueue<String> queue = (locked ? out.lockPath("/q-locks") : out).buildQueue();
      queue.start();
      for (int i = 0; i < 7; i++) {
        s.say("item", s.take(consumer.items));
      }
      // Closing earlier would interrupt the removal of the last item.
      s.until("empty", () -> s.a.getChildren().forPath(path).isEmpty());
      queue.close();
      in.close();
    }
    ordered(s);
    others(s);
  }

  private static void ordered(Steps s) throws Exception {
    DistributedPriorityQueue<String> in = builder(s.a, null, "/q-priority").buildPriorityQueue(0);
    in.start();
    in.put("third", 300);
    in.put("first", -5);
    in.put("second", 20);
    in.flushPuts(Steps.WAIT, TimeUnit.SECONDS);
    Consumer consumer = new Consumer();
    DistributedPriorityQueue<String> out = builder(s.b, consumer, "/q-priority").buildPriorityQueue(0);
    out.start();
    s.say("by priority", List.of(s.take(consumer.items), s.take(consumer.items), s.take(consumer.items)));
    out.close();
    in.close();
    DistributedDelayQueue<String> delayed = builder(s.a, null, "/q-delay").buildDelayQueue();
    delayed.start();
    long now = System.currentTimeMillis();
    delayed.put("later", now + 1500);
    delayed.put("sooner", now + 500);
    delayed.flushPuts(Steps.WAIT, TimeUnit.SECONDS);
    // Both items must exist before the consumer starts, which otherwise could take the later first.
    Consumer late = new Consumer();
    DistributedDelayQueue<String> delay = builder(s.b, late, "/q-delay").buildDelayQueue();
    delay.start();
    s.say("by time", s.take(late.items) + " " + s.take(late.items) + " " + (System.currentTimeMillis() >= now + 1500));
    delay.close();
    delayed.close();
  }

  private static void others(Steps s) throws Exception {
    DistributedIdQueue<String> ids = builder(s.a, null, "/q-ids").buildIdQueue();
    ids.start();
    ids.put("a", "id a");
    ids.put("b", "id b");
    ids.flushPuts(Steps.WAIT, TimeUnit.SECONDS);
    s.say("removed by id", ids.remove("id a") + " " + ids.remove("id a") + " " + s.b.getChildren().forPath("/q-ids").size());
    ids.close();
    SimpleDistributedQueue simple = new SimpleDistributedQueue(s.a, "/q-simple");
    SimpleDistributedQueue other = new SimpleDistributedQueue(s.b, "/q-simple");
    s.say("offer", simple.offer(Steps.bytes("1")) + " " + simple.offer(Steps.bytes("2")));
    s.say("peek", Steps.text(other.peek()) + " " + Steps.text(other.element()));
    s.say("poll", Steps.text(other.poll()) + " " + Steps.text(other.take()));
    s.say("poll in time", Steps.text(other.poll(Steps.SHORT, TimeUnit.MILLISECONDS)));
    s.note("remove from none", other::remove);
  }
}
