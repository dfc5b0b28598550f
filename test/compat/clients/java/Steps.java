import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** Clients, and functions that print values without parts that differ between runs. */
final class Steps {
  /** In seconds, for an expected event. */
  static final int WAIT = 60;

  /** In milliseconds, for an event that must not occur. */
  static final int SHORT = 300;

  /** In milliseconds. Sessions must survive a stall of the machine. */
  static final int SESSION = 30000;

  private final String addr;
  private final List<CuratorFramework> clients = new ArrayList<>();
  final CuratorFramework a;
  final CuratorFramework b;

  Steps(String addr) throws Exception {
    this.addr = addr;
    a = client();
    b = client();
  }

  CuratorFrameworkFactory.Builder builder() {
    return CuratorFrameworkFactory.builder()
        .connectString(addr)
        .sessionTimeoutMs(SESSION)
        .connectionTimeoutMs(SESSION)
        .retryPolicy(new RetryNTimes(5, 200));
  }

  CuratorFramework client() throws Exception {
    return started(builder().build());
  }

  CuratorFramework started(CuratorFramework client) throws Exception {
    clients.add(client);
    client.start();
    if (!client.blockUntilConnected(WAIT, TimeUnit.SECONDS)) {
      say("FAILED", "no connection");
    }
    return client;
  }

  void close() {
    for (CuratorFramework client : clients) {
      client.close();
    }
  }

  void say(String what, Object value) {
    String text = String.valueOf(value).replaceAll("_c_[0-9a-f]{8}-[0-9a-f-]{27}", "GUID");
    System.out.println(what + ": " + text.replace("\n", ""));
  }

  void note(String what, Callable<Object> call) {
    Object value;
    try {
      value = call.call();
    } catch (KeeperException e) {
      value = e.code();
    } catch (Exception e) {
      value = e.getClass().getSimpleName();
    }
    say(what, value);
  }

  <T> T take(BlockingQueue<T> queue) throws InterruptedException {
    return queue.poll(WAIT, TimeUnit.SECONDS);
  }

  void event(BlockingQueue<WatchedEvent> queue) throws InterruptedException {
    WatchedEvent e = take(queue);
    say("event", e == null ? "none" : e.getType() + " " + e.getState() + " " + e.getPath());
  }

  /** Waits for a condition that depends on another client. */
  void until(String what, Callable<Boolean> condition) throws Exception {
    for (int i = 0; i < WAIT * 100; i++) {
      if (condition.call()) {
        return;
      }
      TimeUnit.MILLISECONDS.sleep(10);
    }
    say("FAILED: never came", what);
  }

  /**
   * Ends a client's session: a second handle connects to it and closes it. If the client reconnects
   * first, the close has no effect, so this repeats until the server does not know the session.
   */
  void expire(CuratorFramework client) throws Exception {
    ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
    long id = zk.getSessionId();
    byte[] password = zk.getSessionPasswd();
    for (boolean over = false; !over; ) {
      ZooKeeper second = new ZooKeeper(addr, SESSION, event -> {}, id, password);
      until("the take-over", () -> second.getState().isConnected() || !second.getState().isAlive());
      over = !second.getState().isAlive();
      second.close();
    }
  }

  static String stat(Stat s) {
    if (s == null) {
      return "null";
    }
    return String.format(
        "v=%d cv=%d av=%d len=%d children=%d owned=%b",
        s.getVersion(),
        s.getCversion(),
        s.getAversion(),
        s.getDataLength(),
        s.getNumChildren(),
        s.getEphemeralOwner() != 0);
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] data) {
    return data == null ? "null" : new String(data, StandardCharsets.UTF_8);
  }

  static List<String> sorted(List<String> list) {
    List<String> copy = new ArrayList<>(list);
    copy.sort(null);
    return copy;
  }
}
