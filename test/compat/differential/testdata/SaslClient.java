import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Authenticates as the user of the JAAS file's Client section, and prints the result. */
public class SaslClient {
	public static void main(String[] args) throws Exception {
		CountDownLatch decided = new CountDownLatch(1);
		AtomicReference<KeeperState> state = new AtomicReference<>();
		ZooKeeper zk = new ZooKeeper(args[0], 20000, event -> {
			if (event.getState() == KeeperState.SaslAuthenticated || event.getState() == KeeperState.AuthFailed) {
				state.compareAndSet(null, event.getState());
				decided.countDown();
			}
		});
		if (!decided.await(60, TimeUnit.SECONDS)) {
			throw new IllegalStateException("neither authenticated nor refused");
		}
		System.out.println(state.get());
		if (state.get() == KeeperState.SaslAuthenticated) {
			zk.create("/java", new byte[] {1}, ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.EPHEMERAL);
			System.out.println(zk.getACL("/java", null));
			System.out.println("read " + (zk.getData("/java", false, null).length == 1));
		}
		zk.close(5000);
	}
}
