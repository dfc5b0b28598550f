import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/**
 * Sends every operation of the Java client once, through a recording proxy. Before each step, it
 * prints the step's name and waits for a line on standard input, so the recorder knows the step
 * of each frame.
 */
public final class Golden {
  private static final int TIMEOUT_MS = 6000;
  private static final List<ACL> OPEN = ZooDefs.Ids.OPEN_ACL_UNSAFE;

  private final BufferedReader in =
      new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
  private final String proxied;
  private final String direct;
  private Client zk;

  private Golden(String proxied, String direct) {
    this.proxied = proxied;
    this.direct = direct;
  }

  public static void main(String[] args) throws Exception {
    Golden golden = new Golden(args[0], args[1]);
    golden.handshake();
    golden.create();
    golden.read();
    golden.write();
    golden.acl();
    golden.multi();
    golden.multiRead();
    golden.watch();
    golden.removeWatches();
    golden.session(); // before the cuts below, which affect all connections
    golden.setWatches();
    golden.setWatches2();
    golden.say("end", "");
    System.exit(0);
  }

  /** A connection with its events in the order of arrival. */
  private static final class Client {
    final LinkedBlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
    final ZooKeeper zk;

    Client(String address) throws IOException {
      zk = new ZooKeeper(address, TIMEOUT_MS, events::add);
    }

    Client(String address, long id, byte[] password) throws IOException {
      zk = new ZooKeeper(address, TIMEOUT_MS, events::add, id, password);
    }

    Client(String address, boolean readOnly) throws IOException {
      zk = new ZooKeeper(address, TIMEOUT_MS, events::add, readOnly);
    }

    WatchedEvent next() throws InterruptedException {
      WatchedEvent event = events.poll(20, TimeUnit.SECONDS);
      if (event == null) {
        throw new IllegalStateException("no event came");
      }
      return event;
    }

    Client await(Watcher.Event.KeeperState state) throws InterruptedException {
      while (next().getState() != state) {
        // Disconnected may come first.
      }
      return this;
    }

    /** Waits for watch events of these types, in this order. */
    void expect(Watcher.Event.EventType... types) throws InterruptedException {
      for (Watcher.Event.EventType type : types) {
        WatchedEvent event = next();
        if (event.getType() != type) {
          throw new IllegalStateException("event " + event + " instead of " + type);
        }
      }
    }

    void close() throws InterruptedException {
      zk.close();
    }
  }

  private interface Action {
    void run() throws Exception;
  }

  private void say(String verb, String name) throws IOException {
    System.out.println(verb + " " + name);
    if (in.readLine() == null) {
      throw new IOException("the recorder has gone");
    }
  }

  private void step(String name, Action action) throws Exception {
    say("step", name);
    try {
      action.run();
    } catch (Exception e) {
      throw new IllegalStateException("step " + name, e);
    }
  }

  /** A step whose action must fail with a code. */
  private void fails(String name, KeeperException.Code code, Action action) throws Exception {
    step(
        name,
        () -> {
          try {
            action.run();
          } catch (KeeperException e) {
            if (e.code() == code) {
              return;
            }
            throw e;
          }
          throw new IllegalStateException("no error, expected " + code);
        });
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static ACL digest(int perms, String id) {
    return new ACL(perms, new Id("digest", id));
  }

  private void handshake() throws Exception {
    step(
        "handshake/new-session",
        () -> zk = new Client(proxied).await(Watcher.Event.KeeperState.SyncConnected));
    step(
        "handshake/read-only-allowed",
        () -> new Client(proxied, true).await(Watcher.Event.KeeperState.SyncConnected).close());
    step(
        "handshake/wrong-password",
        () -> {
          byte[] password = new byte[16];
          password[0] = 1;
          Client c = new Client(proxied, zk.zk.getSessionId(), password);
          c.await(Watcher.Event.KeeperState.Expired).close();
        });
    say("cut", "handshake/resumed-session");
    zk.await(Watcher.Event.KeeperState.Disconnected);
    say("open", "handshake/resumed-session");
    zk.await(Watcher.Event.KeeperState.SyncConnected);
  }

  private void create() throws Exception {
    ZooKeeper c = zk.zk;
    step("create/persistent", () -> c.create("/a", bytes("data"), OPEN, CreateMode.PERSISTENT));
    step("create/null-data", () -> c.create("/null", null, OPEN, CreateMode.PERSISTENT));
    step("create/empty-data", () -> c.create("/empty", new byte[0], OPEN, CreateMode.PERSISTENT));
    step(
        "create/utf8-path",
        () -> c.create("/gr\u00fc\u00df-\u6f22", bytes("\u00fc"), OPEN, CreateMode.PERSISTENT));
    step("create/ephemeral", () -> c.create("/a/e", bytes("e"), OPEN, CreateMode.EPHEMERAL));
    step(
        "create/persistent-sequential",
        () -> c.create("/a/ps-", bytes("1"), OPEN, CreateMode.PERSISTENT_SEQUENTIAL));
    step(
        "create/ephemeral-sequential",
        () -> c.create("/a/es-", bytes("2"), OPEN, CreateMode.EPHEMERAL_SEQUENTIAL));
    step("create/container", () -> c.create("/c", bytes("c"), OPEN, CreateMode.CONTAINER));
    step(
        "create/ttl",
        () ->
            c.create("/t", bytes("t"), OPEN, CreateMode.PERSISTENT_WITH_TTL, new Stat(), 3600000));
    step(
        "create/ttl-sequential",
        () ->
            c.create(
                "/t-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, new Stat(), 3600000));
    step(
        "create/create2-persistent",
        () -> c.create("/s", bytes("s"), OPEN, CreateMode.PERSISTENT, new Stat()));
    step(
        "create/create2-ephemeral-sequential",
        () -> c.create("/s/es-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL, new Stat()));
    step(
        "create/container-with-stat",
        () -> c.create("/c2", null, OPEN, CreateMode.CONTAINER, new Stat()));
    fails(
        "create/node-exists",
        KeeperException.Code.NODEEXISTS,
        () -> c.create("/a", null, OPEN, CreateMode.PERSISTENT));
    fails(
        "create/no-parent",
        KeeperException.Code.NONODE,
        () -> c.create("/no/such", null, OPEN, CreateMode.PERSISTENT));
    fails(
        "create/no-children-for-ephemerals",
        KeeperException.Code.NOCHILDRENFOREPHEMERALS,
        () -> c.create("/a/e/x", null, OPEN, CreateMode.PERSISTENT));
    fails(
        "create/invalid-acl",
        KeeperException.Code.INVALIDACL,
        () ->
            c.create(
                "/bad",
                null,
                Collections.singletonList(new ACL(31, new Id("nonsense", "x"))),
                CreateMode.PERSISTENT));
  }

  private void read() throws Exception {
    ZooKeeper c = zk.zk;
    step("read/exists", () -> c.exists("/a", false));
    step("read/exists-no-node", () -> c.exists("/missing", false));
    step("read/get-data", () -> c.getData("/a", false, new Stat()));
    step("read/get-data-null", () -> c.getData("/null", false, new Stat()));
    step("read/get-data-empty", () -> c.getData("/empty", false, new Stat()));
    step("read/get-data-ephemeral", () -> c.getData("/a/e", false, new Stat()));
    step("read/get-data-container", () -> c.getData("/c", false, new Stat()));
    step("read/get-data-ttl", () -> c.getData("/t", false, new Stat()));
    step("read/get-config", () -> c.getConfig(false, new Stat()));
    fails(
        "read/get-data-no-node",
        KeeperException.Code.NONODE,
        () -> c.getData("/missing", false, new Stat()));
    step("read/get-children", () -> c.getChildren("/a", false));
    step("read/get-children-none", () -> c.getChildren("/c", false));
    step("read/get-children2", () -> c.getChildren("/a", false, new Stat()));
    step("read/get-children2-none", () -> c.getChildren("/c", false, new Stat()));
    fails(
        "read/get-children2-no-node",
        KeeperException.Code.NONODE,
        () -> c.getChildren("/missing", false, new Stat()));
    step("read/get-ephemerals", () -> c.getEphemerals());
    step("read/get-ephemerals-prefix", () -> c.getEphemerals("/a/e"));
    step("read/get-ephemerals-none", () -> c.getEphemerals("/zzz"));
    step("read/get-all-children-number", () -> c.getAllChildrenNumber("/"));
    step("read/who-am-i", () -> c.whoAmI());
    step(
        "read/sync",
        () -> {
          LinkedBlockingQueue<Integer> done = new LinkedBlockingQueue<>();
          c.sync("/a", (code, path, context) -> done.add(code), null);
          if (done.take() != 0) {
            throw new IllegalStateException("sync failed");
          }
        });
  }

  private void write() throws Exception {
    ZooKeeper c = zk.zk;
    step("write/set-data", () -> c.setData("/a", bytes("more data"), 0));
    step("write/set-data-any-version", () -> c.setData("/a", bytes("x"), -1));
    step("write/set-data-null", () -> c.setData("/a", null, -1));
    fails(
        "write/set-data-bad-version",
        KeeperException.Code.BADVERSION,
        () -> c.setData("/a", null, 77));
    fails(
        "write/set-data-no-node",
        KeeperException.Code.NONODE,
        () -> c.setData("/missing", null, -1));
    step("write/delete", () -> c.delete("/null", 0));
    step("write/delete-any-version", () -> c.delete("/empty", -1));
    fails("write/delete-not-empty", KeeperException.Code.NOTEMPTY, () -> c.delete("/a", -1));
    fails("write/delete-bad-version", KeeperException.Code.BADVERSION, () -> c.delete("/s", 9));
    fails("write/delete-no-node", KeeperException.Code.NONODE, () -> c.delete("/missing", -1));
    step(
        "write/reconfig-disabled",
        () -> {
          LinkedBlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
          ZooKeeperAdmin a = new ZooKeeperAdmin(proxied, TIMEOUT_MS, events::add);
          events.take();
          try {
            a.reconfigure("server.9=localhost:1:2;3", "8", null, -1, new Stat());
            throw new IllegalStateException("reconfig succeeded");
          } catch (KeeperException.ReconfigDisabledException e) {
            a.close();
          }
        });
  }

  private void acl() throws Exception {
    ZooKeeper c = zk.zk;
    step("acl/get", () -> c.getACL("/a", new Stat()));
    fails("acl/get-no-node", KeeperException.Code.NONODE, () -> c.getACL("/none", new Stat()));
    step("acl/auth-digest", () -> { c.addAuthInfo("digest", bytes("user:secret")); c.whoAmI(); });
    step(
        "acl/create-with-auth-scheme",
        () -> c.create("/mine", null, ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
    step("acl/get-digest", () -> c.getACL("/mine", new Stat()));
    List<ACL> several = new ArrayList<>();
    several.add(new ACL(ZooDefs.Perms.READ, ZooDefs.Ids.ANYONE_ID_UNSAFE));
    several.add(new ACL(ZooDefs.Perms.WRITE | ZooDefs.Perms.ADMIN, new Id("ip", "127.0.0.1/8")));
    several.add(digest(ZooDefs.Perms.ALL, "other:aGFzaCBvZiBub2JvZHkgYXQgYWxs"));
    step("acl/set", () -> c.setACL("/mine", several, 0));
    step("acl/get-several", () -> c.getACL("/mine", new Stat()));
    fails("acl/set-bad-version", KeeperException.Code.BADVERSION, () -> c.setACL("/a", OPEN, 5));
    fails(
        "acl/no-auth",
        KeeperException.Code.NOAUTH,
        () -> c.create("/mine/x", null, OPEN, CreateMode.PERSISTENT));
    step(
        "acl/auth-failed",
        () -> {
          Client other = new Client(proxied).await(Watcher.Event.KeeperState.SyncConnected);
          other.zk.addAuthInfo("nonsense", bytes("x"));
          other.await(Watcher.Event.KeeperState.AuthFailed).close();
        });
  }

  private void multi() throws Exception {
    ZooKeeper c = zk.zk;
    step(
        "multi/create-all-modes",
        () ->
            c.multi(
                List.of(
                    Op.create("/m", bytes("m"), OPEN, CreateMode.PERSISTENT),
                    Op.create("/m/e", null, OPEN, CreateMode.EPHEMERAL),
                    Op.create("/m/ps-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL),
                    Op.create("/m/es-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL),
                    Op.create("/m/c", null, OPEN, CreateMode.CONTAINER),
                    Op.create("/m/t", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, 60000))));
    step(
        "multi/check-set-delete",
        () ->
            c.multi(
                List.of(
                    Op.check("/m", 0),
                    Op.setData("/m", bytes("changed"), 0),
                    Op.delete("/m/c", -1),
                    Op.check("/m/t", -1))));
    fails(
        "multi/fails-first",
        KeeperException.Code.BADVERSION,
        () -> c.multi(List.of(Op.check("/m", 7), Op.delete("/m/t", -1))));
    fails(
        "multi/fails-in-the-middle",
        KeeperException.Code.NODEEXISTS,
        () ->
            c.multi(
                List.of(
                    Op.check("/m", 1),
                    Op.create("/m/e", null, OPEN, CreateMode.PERSISTENT),
                    Op.setData("/m", null, -1),
                    Op.delete("/m/t", -1))));
    step("multi/after-failure", () -> c.exists("/m", false));
  }

  private void multiRead() throws Exception {
    ZooKeeper c = zk.zk;
    step("multiread/data", () -> c.multi(List.of(Op.getData("/m"))));
    step(
        "multiread/data-and-children",
        () -> c.multi(List.of(Op.getData("/m/t"), Op.getChildren("/m"), Op.getChildren("/m/t"))));
    step(
        "multiread/some-fail",
        () ->
            c.multi(List.of(Op.getData("/no"), Op.getChildren("/m/t"), Op.getChildren("/none"))));
  }

  private void watch() throws Exception {
    ZooKeeper c = zk.zk;
    zk.events.clear();
    step("watch/exists-missing", () -> c.exists("/w", true));
    step(
        "watch/created",
        () -> {
          c.create("/w", null, OPEN, CreateMode.PERSISTENT);
          zk.expect(Watcher.Event.EventType.NodeCreated);
        });
    step("watch/get-data", () -> c.getData("/w", true, new Stat()));
    step(
        "watch/data-changed",
        () -> {
          c.setData("/w", bytes("new"), -1);
          zk.expect(Watcher.Event.EventType.NodeDataChanged);
        });
    step("watch/get-children", () -> c.getChildren("/w", true));
    step(
        "watch/children-changed",
        () -> {
          c.create("/w/c", null, OPEN, CreateMode.PERSISTENT);
          zk.expect(Watcher.Event.EventType.NodeChildrenChanged);
        });
    step("watch/get-children2", () -> c.getChildren("/w/c", true, new Stat()));
    step("watch/exists-present", () -> c.exists("/w/c", true));
    step(
        "watch/deleted",
        () -> {
          c.delete("/w/c", -1);
          zk.expect(Watcher.Event.EventType.NodeDeleted);
        });
    watchPersistent(c);
  }

  private void watchPersistent(ZooKeeper c) throws Exception {
    step("watch/add-persistent", () -> c.addWatch("/w", AddWatchMode.PERSISTENT));
    step(
        "watch/persistent-fires",
        () -> {
          c.setData("/w", bytes("again"), -1);
          c.create("/w/p", null, OPEN, CreateMode.PERSISTENT);
          zk.expect(
              Watcher.Event.EventType.NodeDataChanged, Watcher.Event.EventType.NodeChildrenChanged);
        });
    step(
        "watch/add-persistent-recursive",
        () -> c.addWatch("/w/p", AddWatchMode.PERSISTENT_RECURSIVE));
    step(
        "watch/persistent-recursive-fires",
        () -> {
          c.create("/w/p/x", null, OPEN, CreateMode.PERSISTENT);
          c.setData("/w/p/x", bytes("1"), -1);
          c.delete("/w/p/x", -1);
          zk.expect(
              Watcher.Event.EventType.NodeCreated,
              Watcher.Event.EventType.NodeDataChanged,
              Watcher.Event.EventType.NodeDeleted);
        });
  }

  private void removeWatches() throws Exception {
    ZooKeeper c = zk.zk;
    say("mute", "");
    Watcher mine = event -> {};
    c.exists("/w/gone", mine);
    c.getChildren("/w", mine);
    c.addWatch("/w/p", mine, AddWatchMode.PERSISTENT_RECURSIVE);
    step(
        "unwatch/check-watches",
        () -> c.removeWatches("/w/gone", mine, Watcher.WatcherType.Data, false));
    step(
        "unwatch/remove-children",
        () -> c.removeAllWatches("/w", Watcher.WatcherType.Children, false));
    step(
        "unwatch/remove-any",
        () -> c.removeAllWatches("/w", Watcher.WatcherType.Any, false));
    step(
        "unwatch/remove-recursive",
        () -> c.removeAllWatches("/w/p", Watcher.WatcherType.Any, false));
    step("unwatch/data-watch", () -> c.getData("/w", true, new Stat()));
    step(
        "unwatch/remove-data", () -> c.removeAllWatches("/w", Watcher.WatcherType.Data, false));
  }

  private void setWatches() throws Exception {
    say("mute", "");
    Client c = new Client(proxied).await(Watcher.Event.KeeperState.SyncConnected);
    Client other = new Client(direct).await(Watcher.Event.KeeperState.SyncConnected);
    for (String path : List.of("/r", "/r/data", "/r/del", "/r/child", "/r/same")) {
      other.zk.create(path, null, OPEN, CreateMode.PERSISTENT);
    }
    c.zk.sync("/r", (code, path, context) -> {}, null);
    c.zk.getData("/r/data", true, null);
    c.zk.getData("/r/del", true, null);
    c.zk.exists("/r/new", true);
    c.zk.exists("/r/never", true);
    c.zk.getChildren("/r/child", true);
    c.zk.getChildren("/r/same", true);
    say("cut", "setwatches/with-changes");
    c.await(Watcher.Event.KeeperState.Disconnected);
    other.zk.setData("/r/data", bytes("changed"), -1);
    other.zk.delete("/r/del", -1);
    other.zk.create("/r/new", null, OPEN, CreateMode.PERSISTENT);
    other.zk.create("/r/child/x", null, OPEN, CreateMode.PERSISTENT);
    say("open", "setwatches/with-changes");
    c.await(Watcher.Event.KeeperState.SyncConnected);
    for (int i = 0; i < 4; i++) {
      c.next();
    }
    c.zk.exists("/r", false);
    say("mute", "");
    c.close();
    other.close();
  }

  private void setWatches2() throws Exception {
    say("mute", "");
    Client c = new Client(proxied).await(Watcher.Event.KeeperState.SyncConnected);
    c.zk.addWatch("/r", AddWatchMode.PERSISTENT);
    c.zk.addWatch("/r/same", AddWatchMode.PERSISTENT_RECURSIVE);
    c.zk.getData("/r/data", true, null);
    c.zk.exists("/r/never", true);
    c.zk.getChildren("/r/child", true);
    say("cut", "setwatches/persistent-nothing-changed");
    c.await(Watcher.Event.KeeperState.Disconnected);
    say("open", "setwatches/persistent-nothing-changed");
    c.await(Watcher.Event.KeeperState.SyncConnected);
    c.zk.exists("/r", false);
    step(
        "setwatches/persistent-still-fires",
        () -> {
          c.zk.create("/r/same/x", null, OPEN, CreateMode.PERSISTENT);
          c.next();
        });
    say("mute", "");
    c.close();
  }

  private void session() throws Exception {
    say("ping", "session/ping");
    step("session/close", () -> zk.close());
    say("mute", "");
  }
}
