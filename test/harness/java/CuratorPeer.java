import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;

/**
 * A Curator client that runs the commands on its standard input. Each answer is one line of JSON
 * with ok, error, node, lines, and timeouts. The commands:
 *
 * <pre>
 * acquire KIND PATH MILLIS     for the kinds, see Recipes
 * release                      release the last acquired lock
 * revoked MILLIS               wait for a release request for the last acquired lock
 * revoke NODE                  request the release of the holder with this node
 * participants KIND PATH       of a latch or selector: lines are "leader ID" or "waiting ID"
 * contend PATH ROUNDS MILLIS PAUSE WITNESS NAME CHOICE...    see Contention
 * </pre>
 */
public final class CuratorPeer {
  private final CuratorFramework client;
  private final Recipes recipes;
  private final Map<String, Object> answer = new LinkedHashMap<>();
  private Recipes.Recipe held;

  private CuratorPeer(CuratorFramework client) {
    this.client = client;
    this.recipes = new Recipes(client);
  }

  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.builder()
            .connectString(args[0])
            .sessionTimeoutMs(Integer.parseInt(args[1]))
            .connectionTimeoutMs(120000)
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
    while ((line = in.readLine()) != null) {
      String[] words = line.split(" ");
      answer.clear();
      answer.put("ok", true);
      try {
        execute(words);
      } catch (Exception e) {
        fail(e.toString());
      }
      System.out.println(json.writeValueAsString(answer));
    }
  }

  private void fail(String error) {
    answer.put("ok", false);
    answer.put("error", error);
  }

  private void execute(String[] words) throws Exception {
    switch (words[0]) {
      case "acquire":
        acquire(recipes.make(words[1], words[2]), Long.parseLong(words[3]));
        return;
      case "release":
        held.release();
        held = null;
        return;
      case "revoked":
        if (!recipes.awaitRevocation(Long.parseLong(words[1]))) {
          fail("timeout");
        }
        return;
      case "revoke":
        Revoker.attemptRevoke(client, words[1]);
        return;
      case "participants":
        answer.put("lines", participants(words[1], words[2]));
        return;
      case "contend":
        List<String> choices = Arrays.asList(words).subList(7, words.length);
        Contention contention =
            new Contention(recipes, words[1], Long.parseLong(words[3]), Long.parseLong(words[4]));
        answer.put(
            "timeouts", contention.run(Integer.parseInt(words[2]), words[5], words[6], choices));
        return;
      default:
        throw new IllegalArgumentException("unknown command " + words[0]);
    }
  }

  private void acquire(Recipes.Recipe recipe, long millis) throws Exception {
    if (!recipe.acquire(millis)) {
      fail("timeout");
      return;
    }
    held = recipe;
    answer.put("node", recipe.node());
  }

  private List<String> participants(String kind, String path) throws Exception {
    List<String> lines = new ArrayList<>();
    for (Participant p : recipes.participants(kind, path)) {
      lines.add((p.isLeader() ? "leader " : "waiting ") + p.getId());
    }
    return lines;
  }
}
