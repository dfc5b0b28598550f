import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.api.BackgroundCallback;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** The operations of Curator's builders. */
final class Framework {
  private Framework() {}

  static void nodes(Steps s) throws Exception {
    CuratorFramework c = s.a;
    s.note("create", () -> c.create().forPath("/n", Steps.bytes("data")));
    s.note("again", () -> c.create().forPath("/n"));
    s.note("or set", () -> c.create().orSetData().forPath("/n", Steps.bytes("set")));
    s.note("no parent", () -> c.create().forPath("/x/y"));
    s.note("with parents", () -> c.create().creatingParentsIfNeeded().forPath("/x/y/z"));
    s.note("in containers", () -> c.create().creatingParentContainersIfNeeded().forPath("/box/in/x"));
    s.note("a container", () -> Steps.stat(c.checkExists().forPath("/box/in")));
    for (CreateMode mode : CreateMode.values()) {
      s.note(
          "create " + mode,
          () ->
              mode.isTTL()
                  ? c.create().withTtl(3600000).withMode(mode).forPath("/n/ttl-")
                  : c.create().withMode(mode).forPath("/n/" + mode.name().toLowerCase() + "-"));
    }
    s.note("no time to live", () -> c.create().withTtl(0).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/n/z"));
    s.note("protected", () -> c.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/n/p-"));
    s.note(
        "protected in containers",
        () ->
            c.create()
                .creatingParentContainersIfNeeded()
                .withProtection()
                .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                .forPath("/box/new/p-"));
    s.note("idempotent", () -> c.create().idempotent().forPath("/n/i"));
    s.note("idempotent again", () -> c.create().idempotent().forPath("/n/i"));
    s.note("below ephemeral", () -> c.create().forPath("/n/ephemeral-/x"));
    Stat made = new Stat();
    s.note("storing a stat", () -> c.create().storingStatIn(made).forPath("/n/s", Steps.bytes("12345")));
    s.say("stat", Steps.stat(made));
    s.note("compressed", () -> c.create().compressed().forPath("/n/gz", new byte[5000]));
    s.note("and back", () -> c.getData().decompressed().forPath("/n/gz").length);
    s.note("stat", () -> Steps.stat(c.checkExists().forPath("/n")));
    s.note("missing", () -> c.checkExists().forPath("/missing"));
    s.note("children", () -> Steps.sorted(c.getChildren().forPath("/n")));
    s.note("no children", () -> c.getChildren().forPath("/missing"));
    s.note("set", () -> Steps.stat(c.setData().withVersion(1).forPath("/n", Steps.bytes("2"))));
    s.note("set bad version", () -> c.setData().withVersion(1).forPath("/n"));
    s.note("idempotent set", () -> Steps.stat(c.setData().idempotent().withVersion(2).forPath("/n", Steps.bytes("3"))));
    s.note("get", () -> Steps.text(c.getData().forPath("/n")));
    s.note("delete not empty", () -> c.delete().forPath("/n"));
    s.note("delete bad version", () -> c.delete().withVersion(5).forPath("/n/s"));
    s.note("delete quietly", () -> c.delete().quietly().forPath("/missing"));
    s.note("delete guaranteed", () -> c.delete().guaranteed().withVersion(0).forPath("/n/s"));
    s.note("configuration", () -> c.getConfig().forEnsemble().length);
    s.note("reconfig", () -> c.reconfig().leaving("1").forEnsemble());
    s.note("sync", () -> c.sync().forPath("/n"));
    CuratorFramework below = c.usingNamespace("space");
    s.note("namespace", () -> below.create().creatingParentsIfNeeded().forPath("/1/2"));
    s.note("really", () -> c.getChildren().forPath("/space/1"));
    s.note("namespace's root", () -> below.getChildren().forPath("/"));
    s.note("a megabyte", () -> Steps.stat(c.setData().forPath("/n", new byte[1000000])));
    for (String path : Arrays.asList("/n", "/x", "/box", "/space")) {
      s.note("delete " + path, () -> c.delete().deletingChildrenIfNeeded().forPath(path));
    }
  }

  static void background(Steps s) throws Exception {
    BlockingQueue<String> done = new LinkedBlockingQueue<>();
    BackgroundCallback callback =
        (client, e) ->
            done.add(
                e.getType() + " " + e.getResultCode() + " " + e.getPath() + " " + e.getName() + " "
                    + Steps.stat(e.getStat()) + " " + Steps.text(e.getData()) + " " + e.getChildren() + " " + e.getContext());
    CuratorFramework c = s.a;
    c.create().inBackground(callback, "context").forPath("/bg", Steps.bytes("x"));
    c.create().inBackground(callback).forPath("/bg");
    c.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).inBackground(callback).forPath("/bg/s-");
    c.getData().inBackground(callback).forPath("/bg");
    c.getChildren().inBackground(callback).forPath("/bg");
    c.setData().inBackground(callback).forPath("/bg", Steps.bytes("yy"));
    c.checkExists().inBackground(callback).forPath("/bg");
    c.checkExists().inBackground(callback).forPath("/missing");
    c.sync().inBackground(callback).forPath("/bg");
    c.delete().inBackground(callback).forPath("/bg/s-0000000000");
    c.delete().inBackground(callback).forPath("/bg");
    c.delete().inBackground(callback).forPath("/bg");
    for (int i = 0; i < 12; i++) {
      s.say("background", s.take(done));
    }
  }

  static void acls(Steps s) throws Exception {
    CuratorFramework owner = s.started(s.builder().authorization("digest", Steps.bytes("user:secret")).build());
    CuratorFramework admin = s.started(s.builder().authorization("digest", Steps.bytes("super:test")).build());
    s.note("creator", () -> owner.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/acl", Steps.bytes("mine")));
    s.note("acl", () -> owner.getACL().forPath("/acl"));
    s.note("a stranger reads", () -> s.a.getData().forPath("/acl"));
    s.note("a stranger deletes", () -> s.a.setACL().withACL(ZooDefs.Ids.OPEN_ACL_UNSAFE).forPath("/acl"));
    s.note("auth of nobody", () -> s.a.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath("/acl2"));
    s.note("nonsense", () -> s.a.create().withACL(Collections.singletonList(new ACL(31, new Id("no", "x")))).forPath("/acl2"));
    s.note("bad digest", () -> s.a.create().withACL(Collections.singletonList(new ACL(31, new Id("digest", "x")))).forPath("/acl2"));
    s.note("bad address", () -> s.a.create().withACL(Collections.singletonList(new ACL(31, new Id("ip", "1.2.3")))).forPath("/acl2"));
    s.note("read for all", () -> Steps.stat(owner.setACL().withVersion(0).withACL(ZooDefs.Ids.READ_ACL_UNSAFE).forPath("/acl")));
    s.note("a stranger reads now", () -> Steps.text(s.a.getData().forPath("/acl")));
    s.note("the owner without permission", () -> owner.setData().forPath("/acl"));
    s.note("super sets", () -> Steps.stat(admin.setData().forPath("/acl", Steps.bytes("super"))));
    CuratorFramework provided = s.started(s.builder().aclProvider(new Provider()).build());
    s.note("provider", () -> provided.create().creatingParentsIfNeeded().forPath("/prov/x"));
    s.note("its acl", () -> provided.getACL().forPath("/prov/x"));
    s.note("delete below a read-only parent", () -> provided.delete().forPath("/prov/x"));
    s.note("who", () -> owner.getZookeeperClient().getZooKeeper().whoAmI().size());
    s.note("super deletes", () -> admin.delete().deletingChildrenIfNeeded().forPath("/prov"));
    s.note("super deletes", () -> admin.delete().forPath("/acl"));
  }

  /** Creates parents without the permission to write. */
  private static final class Provider implements ACLProvider {
    @Override
    public List<ACL> getDefaultAcl() {
      return ZooDefs.Ids.OPEN_ACL_UNSAFE;
    }

    @Override
    public List<ACL> getAclForPath(String path) {
      return path.equals("/prov")
          ? Collections.singletonList(new ACL(ZooDefs.Perms.READ | ZooDefs.Perms.CREATE, ZooDefs.Ids.ANYONE_ID_UNSAFE))
          : getDefaultAcl();
    }
  }

  static void transactions(Steps s) throws Exception {
    CuratorFramework c = s.a;
    s.note(
        "transaction",
        () ->
            results(
                c.transaction()
                    .forOperations(
                        c.transactionOp().create().forPath("/t", Steps.bytes("1")),
                        c.transactionOp().create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/t/e-"),
                        c.transactionOp().create().withMode(CreateMode.CONTAINER).forPath("/t/box"),
                        c.transactionOp().create().withTtl(3600000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/t/ttl"),
                        c.transactionOp().check().withVersion(0).forPath("/t"),
                        c.transactionOp().setData().withVersion(0).forPath("/t", Steps.bytes("22")),
                        c.transactionOp().delete().forPath("/t/box"))));
    s.note(
        "failing",
        () ->
            results(
                c.transaction()
                    .forOperations(
                        c.transactionOp().create().forPath("/t/n"),
                        c.transactionOp().check().withVersion(9).forPath("/t"),
                        c.transactionOp().delete().forPath("/t"))));
    s.note("nothing of it", () -> c.checkExists().forPath("/t/n"));
    BlockingQueue<String> done = new LinkedBlockingQueue<>();
    c.transaction()
        .inBackground((client, e) -> done.add(e.getResultCode() + " " + results(e.getOpResults())))
        .forOperations(c.transactionOp().create().forPath("/t/bg"), c.transactionOp().delete().forPath("/t/none"));
    s.say("in background", s.take(done));
    s.note("delete", () -> c.delete().deletingChildrenIfNeeded().forPath("/t"));
  }

  private static String results(List<CuratorTransactionResult> results) {
    StringBuilder text = new StringBuilder();
    for (CuratorTransactionResult r : results) {
      text.append(r.getType()).append(' ').append(r.getError()).append(' ').append(r.getResultPath());
      text.append(' ').append(Steps.stat(r.getResultStat())).append("; ");
    }
    return text.toString();
  }

  static void watches(Steps s) throws Exception {
    BlockingQueue<WatchedEvent> q = new LinkedBlockingQueue<>();
    CuratorWatcher watcher = q::add;
    CuratorFramework c = s.a;
    s.note("exists", () -> c.checkExists().usingWatcher(watcher).forPath("/w"));
    s.b.create().forPath("/w");
    s.event(q);
    s.note("get", () -> c.getData().usingWatcher(watcher).forPath("/w").length > 0);
    s.note("children", () -> c.getChildren().usingWatcher(watcher).forPath("/w"));
    s.b.create().forPath("/w/1");
    s.event(q);
    s.b.setData().forPath("/w");
    s.event(q);
    s.note("to be removed", () -> c.getData().usingWatcher(watcher).forPath("/w").length > 0);
    s.note("remove", () -> c.watchers().remove(watcher).ofType(WatcherType.Data).forPath("/w"));
    s.event(q);
    s.note("remove again", () -> c.watchers().remove(watcher).ofType(WatcherType.Data).forPath("/w"));
    s.note("quietly", () -> c.watchers().removeAll().quietly().forPath("/w"));
    s.note("locally", () -> c.watchers().removeAll().locally().quietly().forPath("/w"));
    s.note("persistent", () -> c.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(watcher).forPath("/w"));
    s.b.setData().forPath("/w");
    s.event(q);
    s.b.create().forPath("/w/2");
    s.event(q);
    s.b.setData().forPath("/w/2");
    s.b.delete().forPath("/w/2");
    s.event(q);
    s.note("remove all", () -> c.watchers().removeAll().ofType(WatcherType.Any).forPath("/w"));
    s.event(q);
    s.note("recursive", () -> c.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(watcher).forPath("/w"));
    s.b.setData().forPath("/w/1");
    s.event(q);
    s.b.create().creatingParentsIfNeeded().forPath("/w/a/b");
    s.event(q);
    s.event(q);
    s.b.delete().deletingChildrenIfNeeded().forPath("/w");
    for (int i = 0; i < 4; i++) {
      s.event(q);
    }
    s.b.create().forPath("/w");
    s.event(q);
    s.note("remove", () -> c.watchers().remove(watcher).forPath("/w"));
    s.event(q);
    s.say("more", q.size());
    s.b.delete().forPath("/w");
  }
}
