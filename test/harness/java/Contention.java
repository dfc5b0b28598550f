import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.zookeeper.KeeperException;

/**
 * Contends for locks with other processes, and reports each hold to a witness. A choice is
 * KIND=CLAIMS: a kind of Recipes, and the claims for the witness. The rounds use the choices in
 * turn. A negative time limit means a random one up to its absolute value. After a timeout, the
 * client counts it and tries again. After each round, the client pauses for a random time up to a
 * limit.
 */
final class Contention {
  private final Recipes recipes;
  private final String path;
  private final long millis;
  private final long pause;

  Contention(Recipes recipes, String path, long millis, long pause) {
    this.recipes = recipes;
    this.path = path;
    this.millis = millis;
    this.pause = pause;
  }

  /** Returns the number of timeouts. */
  int run(int rounds, String witness, String name, List<String> choices) throws Exception {
    List<Recipes.Recipe> locks = new ArrayList<>();
    List<String> claims = new ArrayList<>();
    for (String choice : choices) {
      String[] parts = choice.split("=");
      locks.add(recipes.make(parts[0], path));
      claims.add(parts[1]);
    }
    int timeouts = 0;
    try (Witness w = new Witness(witness)) {
      w.say("join " + name);
      for (int i = 0; i < rounds; i++) {
        Recipes.Recipe lock = locks.get(i % locks.size());
        w.say("turn");
        while (!acquire(lock)) {
          timeouts++;
        }
        w.say("enter " + claims.get(i % claims.size()) + " 0");
        w.say("leave");
        lock.release();
        if (pause > 0) {
          Thread.sleep(ThreadLocalRandom.current().nextLong(pause));
        }
      }
    }
    return timeouts;
  }

  /** Also returns false if another process deleted the new parent. */
  private boolean acquire(Recipes.Recipe lock) throws Exception {
    try {
      return lock.acquire(limit());
    } catch (KeeperException.NoNodeException e) {
      return false;
    }
  }

  private long limit() {
    return millis >= 0 ? millis : 1 + ThreadLocalRandom.current().nextLong(-millis);
  }

  private static final class Witness implements AutoCloseable {
    private final Socket socket;
    private final OutputStream out;
    private final BufferedReader in;

    Witness(String address) throws IOException {
      int colon = address.lastIndexOf(':');
      socket = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
      socket.setTcpNoDelay(true);
      out = socket.getOutputStream();
      in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    }

    void say(String line) throws IOException {
      out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
      String answer = in.readLine();
      if (!"ok".equals(answer)) {
        throw new IOException("the witness answered " + answer + " to " + line);
      }
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }
}
