/** Calls Curator's framework and recipes on the server at args[0]. */
final class CuratorScript {
  private CuratorScript() {}

  private interface Part {
    void run(Steps s) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    Steps s = new Steps(args[0]);
    if (args.length > 1) {
      part(s, "collection", Nodes::collection);
    } else {
      part(s, "nodes", Framework::nodes);
      part(s, "background", Framework::background);
      part(s, "acls", Framework::acls);
      part(s, "transactions", Framework::transactions);
      part(s, "watches", Framework::watches);
      part(s, "mutexes", Locks::mutexes);
      part(s, "read-write locks", Locks::readWrite);
      part(s, "semaphores", Locks::semaphores);
      part(s, "multi-locks", Locks::multi);
      part(s, "contention", Locks::contention);
      part(s, "latches", Leaders::latches);
      part(s, "selectors", Leaders::selectors);
      part(s, "barriers", Leaders::barriers);
      part(s, "old caches", Caches::old);
      part(s, "tree cache", Caches::tree);
      part(s, "curator cache", Caches::curator);
      part(s, "persistent watcher", Caches::persistentWatcher);
      part(s, "persistent nodes", Nodes::persistent);
      part(s, "groups", Nodes::groups);
      part(s, "counters", Values::counters);
      part(s, "shared values", Values::shared);
      part(s, "queues", Queues::queues);
      part(s, "sessions", Nodes::sessions);
    }
    s.say("left", Steps.sorted(s.a.getChildren().forPath("/")));
    s.close();
    System.out.println("end of script");
    System.exit(0); // some recipes leave threads
  }

  private static void part(Steps s, String name, Part part) throws Exception {
    s.say("#", name);
    part.run(s);
  }
}
