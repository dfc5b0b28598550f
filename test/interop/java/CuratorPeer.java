import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.data.Stat;

/**
 * A Curator client that does what its standard input says: tour ROOT; acquire KIND PATH MILLIS
 * (KIND: mutex, read, write, semaphore:N, latch); release; close. Each answer is one line of JSON
 * with ok, error, node and lines.
 */
public final class CuratorPeer {
  private interface Held {
    void release() throws Exception;
  }

  private final CuratorFramework client;
  private final Map<String, Object> answer = new LinkedHashMap<>();
  private Held held;

  private CuratorPeer(CuratorFramework client) {
    this.client = client;
  }

  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.builder()
            .connectString(args[0])
            .sessionTimeoutMs(Integer.parseInt(args[1]))
            .connectionTimeoutMs(20000)
            .retryPolicy(new RetryOneTime(100))
            .build();
    client.start();
    new CuratorPeer(client).serve();
    System.exit(0);
  }

  private void serve() throws Exception {
    ObjectMapper json = new ObjectMapper();
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    String line;
    boolean open = true;
    while (open && (line = in.readLine()) != null) {
      String[] words = line.split(" ");
      answer.clear();
      answer.put("ok", true);
      try {
        open = obey(words);
      } catch (Exception e) {
        answer.put("ok", false);
        answer.put("error", e.toString());
      }
      System.out.println(json.writeValueAsString(answer));
    }
  }

  private boolean obey(String[] words) throws Exception {
    switch (words[0]) {
      case "tour":
        answer.put("lines", new Tour(client, words[1]).run());
        return true;
      case "acquire":
        if (!acquire(words[1], words[2], Long.parseLong(words[3]))) {
          answer.put("ok", false);
          answer.put("error", "timeout");
        }
        return true;
      case "release":
        held.release();
        held = null;
        return true;
      case "close":
        client.close();
        return false;
      default:
        throw new IllegalArgumentException("unknown command " + words[0]);
    }
  }

  private boolean acquire(String kind, String path, long millis) throws Exception {
    if (kind.startsWith("semaphore:")) {
      int leases = Integer.parseInt(kind.substring(10));
      InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, leases);
      Lease lease = semaphore.acquire(millis, TimeUnit.MILLISECONDS);
      if (lease == null) {
        return false;
      }
      answer.put("node", path + "/leases/" + lease.getNodeName());
      held = () -> semaphore.returnLease(lease);
      return true;
    }
    if (kind.equals("latch")) {
      LeaderLatch latch = new LeaderLatch(client, path, "curator");
      latch.start();
      if (!latch.await(millis, TimeUnit.MILLISECONDS)) {
        latch.close();
        return false;
      }
      answer.put("node", latch.getOurPath());
      held = latch::close;
      return true;
    }
    InterProcessMutex mutex = mutex(kind, path);
    if (!mutex.acquire(millis, TimeUnit.MILLISECONDS)) {
      return false;
    }
    // The holder comes first; for several readers this may name another one.
    answer.put("node", mutex.getParticipantNodes().iterator().next());
    held = mutex::release;
    return true;
  }

  private InterProcessMutex mutex(String kind, String path) {
    switch (kind) {
      case "mutex":
        return new InterProcessMutex(client, path);
      case "read":
        return new InterProcessReadWriteLock(client, path).readLock();
      case "write":
        return new InterProcessReadWriteLock(client, path).writeLock();
      default:
        throw new IllegalArgumentException("unknown kind " + kind);
    }
  }

  /** One pass over the API; its lines hold nothing that differs between runs. */
  private static final class Tour {
    private final CuratorFramework zk;
    private final String root;
    private final List<String> lines = new ArrayList<>();
    private final LinkedBlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
    private final CuratorWatcher watcher = events::add;

    Tour(CuratorFramework zk, String root) {
      this.zk = zk;
      this.root = root;
    }

    List<String> run() throws Exception {
      nodes();
      stats();
      watches();
      persistentWatches();
      transactions();
      return lines;
    }

    private void note(String what, Callable<Object> call) throws Exception {
      String result;
      try {
        result = String.valueOf(call.call());
      } catch (KeeperException e) {
        result = e.code().toString();
      }
      lines.add(what + ": " + result.replaceAll("_c_[0-9a-f-]{36}", "GUID").replace(root, "ROOT"));
    }

    private String event() throws InterruptedException {
      WatchedEvent event = events.poll(20, TimeUnit.SECONDS);
      return event == null
          ? "none came"
          : event.getType() + " " + event.getState() + " " + event.getPath();
    }

    private String stat(Stat stat) throws Exception {
      if (stat == null) {
        return "null";
      }
      long id = zk.getZookeeperClient().getZooKeeper().getSessionId();
      String owner = "other";
      if (stat.getEphemeralOwner() == 0) {
        owner = "none";
      } else if (stat.getEphemeralOwner() == id) {
        owner = "mine";
      }
      return String.format(
          "version=%d cversion=%d aversion=%d length=%d children=%d owner=%s",
          stat.getVersion(),
          stat.getCversion(),
          stat.getAversion(),
          stat.getDataLength(),
          stat.getNumChildren(),
          owner);
    }

    private static byte[] bytes(String text) {
      return text.getBytes(StandardCharsets.UTF_8);
    }

    private void nodes() throws Exception {
      note("create", () -> zk.create().creatingParentsIfNeeded().forPath(root, bytes("root")));
      for (CreateMode mode : CreateMode.values()) {
        String path = root + "/" + mode.name().toLowerCase() + "-";
        if (mode.isTTL()) {
          note(
              "create " + mode,
              () -> zk.create().withTtl(3600000).withMode(mode).forPath(path, bytes("x")));
        } else {
          note("create " + mode, () -> zk.create().withMode(mode).forPath(path, bytes("x")));
        }
      }
      note(
          "create protected",
          () ->
              zk.create()
                  .creatingParentContainersIfNeeded()
                  .withProtection()
                  .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                  .forPath(root + "/box/lock-", bytes("x")));
      note("create again", () -> zk.create().forPath(root));
      note("create without parent", () -> zk.create().forPath(root + "/no/such"));
      note("delete not empty", () -> zk.delete().forPath(root));
      note("delete missing", () -> zk.delete().forPath(root + "/missing"));
      note("delete", () -> zk.delete().forPath(root + "/persistent-"));
    }

    private void stats() throws Exception {
      note("exists", () -> stat(zk.checkExists().forPath(root)));
      note("exists ephemeral", () -> stat(zk.checkExists().forPath(root + "/ephemeral-")));
      note("exists container", () -> stat(zk.checkExists().forPath(root + "/container-")));
      note("exists box", () -> stat(zk.checkExists().forPath(root + "/box")));
      note("exists missing", () -> stat(zk.checkExists().forPath(root + "/missing")));
      note(
          "children",
          () -> {
            List<String> children = new ArrayList<>(zk.getChildren().forPath(root));
            Collections.sort(children);
            return children;
          });
      note("get", () -> new String(zk.getData().forPath(root), StandardCharsets.UTF_8));
      note("set", () -> stat(zk.setData().withVersion(0).forPath(root, bytes("new"))));
      note("set bad version", () -> zk.setData().withVersion(9).forPath(root, bytes("")));
      note("get acl", () -> zk.getACL().forPath(root).toString().replace("\n", ""));
    }

    private void watches() throws Exception {
      String w = root + "/w";
      note("watch exists", () -> zk.checkExists().usingWatcher(watcher).forPath(w));
      note("create watched", () -> zk.create().forPath(w, bytes("1")));
      note("event", this::event);
      note("watch get", () -> zk.getData().usingWatcher(watcher).forPath(w).length);
      note("set watched", () -> stat(zk.setData().forPath(w, bytes("2"))));
      note("event", this::event);
      note("watch children", () -> zk.getChildren().usingWatcher(watcher).forPath(w));
      note("create child", () -> zk.create().forPath(w + "/c", bytes("c")));
      note("event", this::event);
      note("watch for deletion", () -> zk.getData().usingWatcher(watcher).forPath(w + "/c").length);
      note("delete child", () -> zk.delete().forPath(w + "/c"));
      note("event", this::event);
      note("watch to remove", () -> zk.getData().usingWatcher(watcher).forPath(w).length);
      note("remove watches", () -> zk.watchers().remove(watcher).forPath(w));
      note("event", this::event);
    }

    private void persistentWatches() throws Exception {
      String w = root + "/recursive";
      note("create", () -> zk.create().forPath(w));
      note(
          "add watch",
          () ->
              zk.watchers()
                  .add()
                  .withMode(AddWatchMode.PERSISTENT_RECURSIVE)
                  .usingWatcher(watcher)
                  .forPath(w));
      note("create child", () -> zk.create().forPath(w + "/c"));
      note("event", this::event);
      note("set child", () -> stat(zk.setData().forPath(w + "/c", bytes("2"))));
      note("event", this::event);
      note("delete child", () -> zk.delete().forPath(w + "/c"));
      note("event", this::event);
    }

    private void transactions() throws Exception {
      String t = root + "/t";
      note(
          "transaction",
          () ->
              results(
                  zk.transaction()
                      .forOperations(
                          zk.transactionOp().create().forPath(t, bytes("1")),
                          zk.transactionOp()
                              .create()
                              .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                              .forPath(t + "/s-"),
                          zk.transactionOp().check().withVersion(0).forPath(t),
                          zk.transactionOp().setData().withVersion(0).forPath(t, bytes("22")),
                          zk.transactionOp().delete().forPath(root + "/w"))));
      note(
          "failing transaction",
          () ->
              results(
                  zk.transaction()
                      .forOperations(
                          zk.transactionOp().create().forPath(t + "/n"),
                          zk.transactionOp().check().withVersion(9).forPath(t))));
      note("nothing of it happened", () -> stat(zk.checkExists().forPath(t + "/n")));
    }

    private String results(List<CuratorTransactionResult> results) throws Exception {
      List<String> texts = new ArrayList<>();
      for (CuratorTransactionResult r : results) {
        texts.add(
            r.getType()
                + " "
                + r.getError()
                + " "
                + r.getResultPath()
                + " "
                + stat(r.getResultStat()));
      }
      return texts.toString();
    }
  }
}
