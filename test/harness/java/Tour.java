import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.data.Stat;

/** One pass over the API; its lines hold nothing that differs between runs. */
final class Tour {
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
    WatchedEvent event = events.poll(60, TimeUnit.SECONDS);
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
