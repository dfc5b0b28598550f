import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;

/** Observes one lock: which holders it has, and how long handovers take. */
final class Guard {
  static final long WRITER = 1 << 20;

  final ConcurrentLinkedQueue<Long> handOvers = new ConcurrentLinkedQueue<>();
  final AtomicLong violations = new AtomicLong();
  private final AtomicLong inside = new AtomicLong();
  private final AtomicLong released = new AtomicLong();
  private final long limit;
  private final long begin = System.nanoTime() - 1;

  Guard(long limit) {
    this.limit = limit;
  }

  void enter(long began, long weight) {
    long now = System.nanoTime() - begin;
    long in = inside.addAndGet(weight);
    if (weight == WRITER && in != WRITER || in > limit) {
      violations.incrementAndGet();
    }
    long at = released.get();
    if (at != 0 && began - begin <= at && now >= at) {
      handOvers.add(now - at);
    }
  }

  void leave(long weight) {
    inside.addAndGet(-weight);
    released.set(System.nanoTime() - begin);
  }
}
