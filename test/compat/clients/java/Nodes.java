import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.data.Stat;

/** Persistent nodes, expired sessions, and nodes that the server collects. */
final class Nodes {
  private Nodes() {}

  static void persistent(Steps s) throws Exception {
    PersistentNode node = new PersistentNode(s.a, CreateMode.EPHEMERAL, false, "/pn/x/y", Steps.bytes("1"));
    node.start();
    s.say("created", node.waitForInitialCreate(Steps.WAIT, TimeUnit.SECONDS));
    s.say("where", node.getActualPath());
    s.b.delete().forPath("/pn/x/y");
    s.until("it comes again", () -> s.b.checkExists().forPath("/pn/x/y") != null);
    node.setData(Steps.bytes("2"));
    s.until("the new data", () -> Steps.text(s.b.getData().forPath("/pn/x/y")).equals("2"));
    long before = s.b.checkExists().forPath("/pn/x/y").getEphemeralOwner();
    s.expire(s.a);
    s.until(
        "in a new session",
        () -> {
          Stat stat = s.b.checkExists().forPath("/pn/x/y");
          return stat != null && stat.getEphemeralOwner() != before;
        });
    s.say("data", Steps.text(s.b.getData().forPath("/pn/x/y")));
    node.close();
    s.say("closed", s.b.checkExists().forPath("/pn/x/y"));
    PersistentNode sequential = new PersistentNode(s.a, CreateMode.PERSISTENT_SEQUENTIAL, true, "/pn/s-", new byte[0]);
    sequential.start();
    sequential.waitForInitialCreate(Steps.WAIT, TimeUnit.SECONDS);
    s.say("sequential", sequential.getActualPath());
    sequential.close();
    PersistentTtlNode ttl = new PersistentTtlNode(s.a, "/pn/ttl", 3600000, Steps.bytes("t"));
    ttl.start();
    s.say("with a time to live", ttl.waitForInitialCreate(Steps.WAIT, TimeUnit.SECONDS));
    s.say("data", Steps.text(s.b.getData().forPath("/pn/ttl")));
    ttl.close();
    s.say("left", Steps.sorted(s.b.getChildren().forPath("/pn")));
  }

  static void groups(Steps s) throws Exception {
    GroupMember one = new GroupMember(s.a, "/group", "one", Steps.bytes("1"));
    GroupMember two = new GroupMember(s.b, "/group", "two", Steps.bytes("2"));
    one.start();
    two.start();
    s.until("both see both", () -> one.getCurrentMembers().size() == 2 && two.getCurrentMembers().size() == 2);
    s.say("members", Steps.sorted(java.util.List.copyOf(two.getCurrentMembers().keySet())));
    one.setThisData(Steps.bytes("new"));
    s.until("new data", () -> Steps.text(two.getCurrentMembers().get("one")).equals("new"));
    one.close();
    s.until("one left", () -> two.getCurrentMembers().size() == 1);
    s.say("members", two.getCurrentMembers().keySet());
    two.close();
  }

  static void sessions(Steps s) throws Exception {
    CuratorFramework c = s.client();
    BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
    c.getConnectionStateListenable().addListener((client, state) -> states.add(state));
    BlockingQueue<WatchedEvent> q = new LinkedBlockingQueue<>();
    c.create().withMode(CreateMode.EPHEMERAL).forPath("/mine");
    c.checkExists().usingWatcher((org.apache.zookeeper.Watcher) q::add).forPath("/later");
    s.expire(c);
    // Earlier states vary: the listener may receive the first connection, and the client may
    // reconnect to its session several times before it is closed.
    ConnectionState state = s.take(states);
    while (state != null && state != ConnectionState.LOST) {
      state = s.take(states);
    }
    s.say("states", state + " " + s.take(states));
    s.say("ephemeral", s.b.checkExists().forPath("/mine"));
    s.until("connected", () -> c.getZookeeperClient().isConnected());
    s.note("goes on", () -> c.create().forPath("/later"));
    s.note("tidy", () -> c.delete().forPath("/later"));
  }

  /** The server deletes containers and expired nodes only if they are empty. */
  static void collection(Steps s) throws Exception {
    CuratorFramework c = s.a;
    BlockingQueue<WatchedEvent> q = new LinkedBlockingQueue<>();
    s.note("never used", () -> c.create().withMode(CreateMode.CONTAINER).forPath("/unused"));
    s.note("used", () -> c.create().withMode(CreateMode.CONTAINER).forPath("/used"));
    s.note("its child", () -> c.create().withMode(CreateMode.EPHEMERAL).forPath("/used/child"));
    s.note("to be kept", () -> c.create().creatingParentContainersIfNeeded().forPath("/kept/child"));
    s.note("nested", () -> c.create().creatingParentContainersIfNeeded().forPath("/outer/inner/x"));
    s.note("short", () -> c.create().withTtl(10).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/short"));
    // In one transaction, because the server could delete the parent first.
    s.note(
        "short with child",
        () ->
            c.transaction()
                .forOperations(
                    c.transactionOp().create().withTtl(10).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/parent"),
                    c.transactionOp().create().forPath("/parent/child"))
                .size());
    s.note("sequential", () -> c.create().withTtl(10).withMode(CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL).forPath("/seq-"));
    s.note("long", () -> c.create().withTtl(3600000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/long"));
    c.checkExists().usingWatcher((org.apache.zookeeper.Watcher) q::add).forPath("/used");
    c.delete().forPath("/used/child");
    c.delete().forPath("/outer/inner/x");
    s.event(q);
    s.until("short gone", () -> c.checkExists().forPath("/short") == null);
    s.until("sequential gone", () -> c.getChildren().forPath("/").stream().noneMatch(n -> n.startsWith("seq-")));
    s.until("nested gone", () -> c.checkExists().forPath("/outer") == null);
    s.say("kept", Steps.sorted(c.getChildren().forPath("/")));
    c.delete().forPath("/parent/child");
    s.until("parent gone", () -> c.checkExists().forPath("/parent") == null);
    PersistentTtlNode ttl = new PersistentTtlNode(s.a, "/ttl", 3000, Steps.bytes("t"));
    ttl.start();
    s.say("kept alive", ttl.waitForInitialCreate(Steps.WAIT, TimeUnit.SECONDS));
    s.until("its child", () -> c.checkExists().forPath("/ttl/touch") != null);
    ttl.close();
    s.until("gone once nobody keeps it", () -> c.checkExists().forPath("/ttl") == null);
  }
}
