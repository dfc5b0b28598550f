import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.zookeeper.WatchedEvent;

/** Recipes that keep a copy of nodes. */
final class Caches {
  private Caches() {}

  private static String child(ChildData d) {
    return d == null ? "null" : d.getPath() + "=" + Steps.text(d.getData()) + " v" + d.getStat().getVersion();
  }

  /** Prints n events sorted, because their order varies. */
  private static void several(Steps s, BlockingQueue<String> q, int n) throws Exception {
    List<String> batch = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      batch.add(String.valueOf(s.take(q)));
    }
    s.say("events", Steps.sorted(batch));
  }

  @SuppressWarnings("deprecation") // still in use
  static void old(Steps s) throws Exception {
    BlockingQueue<String> q = new LinkedBlockingQueue<>();
    s.b.create().creatingParentsIfNeeded().forPath("/pc/0", Steps.bytes("zero"));
    PathChildrenCache cache = new PathChildrenCache(s.a, "/pc", true);
    cache.getListenable().addListener((c, e) -> q.add(e.getType() + " " + child(e.getData())));
    cache.start(PathChildrenCache.StartMode.POST_INITIALIZED_EVENT);
    several(s, q, 2);
    s.b.create().forPath("/pc/1", Steps.bytes("one"));
    several(s, q, 1);
    s.b.setData().forPath("/pc/1", Steps.bytes("1"));
    several(s, q, 1);
    s.b.delete().forPath("/pc/0");
    several(s, q, 1);
    s.say("current", child(cache.getCurrentData("/pc/1")) + " of " + cache.getCurrentData().size());
    cache.close();
    BlockingQueue<String> n = new LinkedBlockingQueue<>();
    NodeCache node = new NodeCache(s.a, "/nc");
    node.getListenable().addListener(() -> n.add(child(node.getCurrentData())));
    node.start(true);
    s.b.create().forPath("/nc", Steps.bytes("a"));
    several(s, n, 1);
    s.b.setData().forPath("/nc", Steps.bytes("b"));
    several(s, n, 1);
    s.b.delete().forPath("/nc");
    several(s, n, 1);
    node.close();
    s.b.delete().deletingChildrenIfNeeded().forPath("/pc");
  }

  @SuppressWarnings("deprecation") // still in use
  static void tree(Steps s) throws Exception {
    BlockingQueue<String> q = new LinkedBlockingQueue<>();
    s.b.create().creatingParentsIfNeeded().forPath("/tc/a/b", Steps.bytes("ab"));
    s.b.setData().forPath("/tc", Steps.bytes("root"));
    s.b.setData().forPath("/tc/a", Steps.bytes("a"));
    TreeCache cache = TreeCache.newBuilder(s.a, "/tc").setCacheData(true).build();
    cache.getListenable().addListener((c, e) -> q.add(e.getType() + " " + child(e.getData())));
    cache.start();
    several(s, q, 4);
    s.b.setData().forPath("/tc/a/b", Steps.bytes("AB"));
    several(s, q, 1);
    s.b.create().forPath("/tc/a/c", Steps.bytes("ac"));
    several(s, q, 1);
    s.say("children", Steps.sorted(new ArrayList<>(cache.getCurrentChildren("/tc/a").keySet())));
    s.b.delete().deletingChildrenIfNeeded().forPath("/tc/a");
    several(s, q, 3);
    s.b.delete().forPath("/tc");
    several(s, q, 1);
    s.b.create().forPath("/tc", Steps.bytes("again"));
    several(s, q, 1);
    cache.close();
    s.b.delete().forPath("/tc");
  }

  static void curator(Steps s) throws Exception {
    BlockingQueue<String> q = new LinkedBlockingQueue<>();
    s.b.create().creatingParentsIfNeeded().forPath("/cc/a", Steps.bytes("a"));
    s.b.setData().forPath("/cc", Steps.bytes("root"));
    CuratorCache cache = CuratorCache.build(s.a, "/cc");
    cache.listenable()
        .addListener(
            CuratorCacheListener.builder()
                .forAll((type, before, now) -> q.add(type + " " + child(before) + " " + child(now)))
                .forInitialized(() -> q.add("initialized"))
                .build());
    cache.start();
    several(s, q, 3);
    s.b.create().creatingParentsIfNeeded().forPath("/cc/x", Steps.bytes("x"));
    several(s, q, 1);
    s.b.setData().forPath("/cc/x", Steps.bytes("X"));
    several(s, q, 1);
    s.say("get", child(cache.get("/cc/x").orElse(null)) + " of " + cache.size());
    s.b.delete().forPath("/cc/x");
    several(s, q, 1);
    cache.close();
    CuratorCache single = CuratorCache.build(s.a, "/cc/a", CuratorCache.Options.SINGLE_NODE_CACHE);
    single.listenable().addListener((type, before, now) -> q.add(type + " " + child(now)));
    single.start();
    several(s, q, 1);
    s.b.create().forPath("/cc/a/below");
    s.b.setData().forPath("/cc/a", Steps.bytes("A"));
    several(s, q, 1);
    single.close();
    s.b.delete().deletingChildrenIfNeeded().forPath("/cc");
  }

  static void persistentWatcher(Steps s) throws Exception {
    for (boolean recursive : new boolean[] {false, true}) {
      // Curator removes the first watch in the background, so the second has another path.
      String path = recursive ? "/pw-tree" : "/pw";
      BlockingQueue<WatchedEvent> q = new LinkedBlockingQueue<>();
      PersistentWatcher watcher = new PersistentWatcher(s.a, path, recursive);
      BlockingQueue<Boolean> ready = new LinkedBlockingQueue<>();
      watcher.getListenable().addListener(q::add);
      watcher.getResetListenable().addListener(() -> ready.add(true));
      watcher.start();
      s.say("set", s.take(ready));
      s.b.create().creatingParentsIfNeeded().forPath(path + "/1");
      s.b.setData().forPath(path + "/1");
      s.b.delete().forPath(path + "/1");
      s.b.delete().forPath(path);
      for (int i = 0; i < (recursive ? 5 : 4); i++) {
        s.event(q);
      }
      watcher.close();
      List<String> rest = new ArrayList<>();
      for (WatchedEvent e; (e = q.poll()) != null; ) {
        rest.add(e.getType().toString());
      }
      rest.remove("PersistentWatchRemoved"); // may arrive later
      s.say("rest", rest);
    }
  }
}
