import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.security.auth.x500.X500Principal;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;

/** Prints names of certificates ("names"), or connects ("client ADDRESS KEYSTORE TRUSTSTORE NODE"). */
final class TlsPeer {
  private TlsPeer() {}

  public static void main(String[] args) throws Exception {
    if (args[0].equals("names")) {
      names();
      return;
    }
    client(args[1], args[2], args[3], args[4]);
  }

  /** Converts names in DER to text. Each is one line in hexadecimal. */
  private static void names() throws Exception {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String text;
      try {
        text = "=" + new X500Principal(HexFormat.of().parseHex(line)).getName();
      } catch (IllegalArgumentException e) {
        text = "!" + e.getMessage();
      }
      System.out.println(HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8)));
    }
  }

  /** Creates a node for this client's certificate, and tries to read a node for another one. */
  private static void client(String address, String key, String trust, String other)
      throws Exception {
    ZKClientConfig config = new ZKClientConfig();
    config.setProperty("zookeeper.client.secure", "true");
    config.setProperty(
        "zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty");
    config.setProperty("zookeeper.ssl.keyStore.location", key);
    config.setProperty("zookeeper.ssl.keyStore.type", "PEM");
    config.setProperty("zookeeper.ssl.trustStore.location", trust);
    config.setProperty("zookeeper.ssl.trustStore.type", "PEM");
    CountDownLatch connected = new CountDownLatch(1);
    ZooKeeper zk =
        new ZooKeeper(
            address,
            20000,
            event -> {
              if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
              }
            },
            false,
            config);
    if (!connected.await(Long.parseLong(System.getProperty("patience", "30")), TimeUnit.SECONDS)) {
      System.out.println("not connected");
      System.exit(0);
    }
    zk.create("/java", new byte[0], ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
    List<ACL> acl = zk.getACL("/java", null);
    System.out.println("acl " + acl.get(0).getId().getScheme() + " " + acl.get(0).getId().getId());
    zk.setData("/java", new byte[1], -1);
    try {
      zk.getData(other, false, null);
      System.out.println("read " + other);
    } catch (KeeperException e) {
      System.out.println("refused " + e.code());
    }
    zk.create(
        "/for-go",
        new byte[0],
        Collections.singletonList(new ACL(ZooDefs.Perms.ALL, new Id("x509", "CN=go"))),
        CreateMode.PERSISTENT);
    zk.close();
    System.out.println("done");
  }
}
