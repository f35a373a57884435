// SPDX-License-Identifier: Apache-2.0
package snib.interop;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/**
 * What the lock protects in the contention run: a number in a file. contention.py describes the file and reads what it
 * proves; verbs.c does the same.
 */
final class Counter {
    private static final long WAIT_MS = 2000;
    private static final long LOOK_PAUSE_MS = 5;

    private final RLock lock;
    private final FileChannel record;
    private final FileChannel log;
    private final long self = ProcessHandle.current().pid();

    Counter(RLock lock, String path, String logPath) throws IOException {
        this.lock = lock;
        record = FileChannel.open(Path.of(path), StandardOpenOption.READ, StandardOpenOption.WRITE);
        log = FileChannel.open(Path.of(logPath), StandardOpenOption.WRITE, StandardOpenOption.APPEND);
    }

    /** Counts, or only looks, for so long; how often it did. */
    long run(boolean looks, long ms) throws Exception {
        long times = 0;
        for (long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms); System.nanoTime() < end;) {
            if (lock.tryLock(WAIT_MS, -1, TimeUnit.MILLISECONDS)) {
                try {
                    if (looks) {
                        look();
                    } else {
                        countOne();
                    }
                    times++;
                } finally {
                    lock.unlock();
                }
            }
            if (looks) {
                Thread.sleep(LOOK_PAUSE_MS); // readers all the time would let no writer in
            }
        }
        return times;
    }

    private void look() throws IOException {
        long[] before = read();
        if (before[1] != 0 && Files.exists(Path.of("/proc/" + before[1]))) {
            throw new IllegalStateException("overlap: process " + before[1] + " is inside");
        }
        if (read()[0] != before[0]) {
            throw new IllegalStateException("overlap: the number changed");
        }
    }

    private void countOne() throws IOException {
        long[] before = read();
        if (before[1] != 0 && Files.exists(Path.of("/proc/" + before[1]))) {
            throw new IllegalStateException("overlap: process " + before[1] + " is inside");
        }
        write(before[0], self);
        long[] after = read();
        if (after[0] != before[0] || after[1] != self) {
            throw new IllegalStateException("overlap: process " + after[1] + " came in");
        }
        write(before[0] + 1, 0);
        log.write(ByteBuffer.wrap(((before[0] + 1) + " " + self + "\n").getBytes(StandardCharsets.US_ASCII)));
    }

    private long[] read() throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN);
        if (record.read(bytes, 0) != 16) {
            throw new IllegalStateException("the record is cut");
        }
        return new long[] {bytes.getLong(0), bytes.getLong(8)};
    }

    private void write(long value, long holder) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putLong(value).putLong(holder).flip();
        record.write(bytes, 0);
    }
}
