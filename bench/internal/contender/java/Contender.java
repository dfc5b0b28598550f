import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Reads lines with servers and a work from standard input, and answers each with a line. */
public final class Contender {
  private Contender() {}

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(answer(line));
      System.out.flush();
    }
    System.exit(0);
  }

  private static String answer(String line) {
    Map<String, String> words = new HashMap<>();
    String[] parts = line.split(" ");
    for (int i = 1; i < parts.length; i++) {
      String[] pair = parts[i].split("=", 2);
      words.put(pair[0], pair[1]);
    }
    try (Driver driver = new Driver(parts[0], words)) {
      return "ok " + driver.measure();
    } catch (UnsupportedOperationException e) {
      return "unsupported " + e.getMessage();
    } catch (Exception e) {
      return "error " + e.toString().replace('\n', ' ');
    }
  }
}
