// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Redisson's RLock as a peer of the bench; the lines it is told by are described in bench/peer.c. Redisson and the JVM
 * are as they are by default.
 *
 * <pre>Worker REDIS-URL</pre>
 */
public final class Worker {
    /** The JVM compiles what it runs often; the first seconds say nothing about it. */
    private static final long COMPILE_MS = 3000;

    private final String url;
    private final RedissonClient client;

    private Worker(String url) {
        this.url = url;
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        client = Redisson.create(config);
    }

    /** One of many clients: by default each would keep 24 connections that nobody uses. */
    private RedissonClient another() {
        Config config = new Config();
        config.useSingleServer().setAddress(url).setConnectionMinimumIdleSize(1);
        return Redisson.create(config);
    }

    /** What one thread of a run does. */
    private static final class Caller extends Thread {
        private final RLock lock;
        private final boolean alone;
        private final CountDownLatch done, measured;
        private long from, until, all, pairs, longest;
        private long[] samples = new long[1024];

        Caller(RLock lock, boolean alone, CountDownLatch done, CountDownLatch measured) {
            this.lock = lock;
            this.alone = alone;
            this.done = done;
            this.measured = measured;
        }

        @Override
        public void run() {
            for (long start = System.nanoTime(); start < until;) {
                lock.lock();
                long acquired = System.nanoTime();
                lock.unlock();
                long end = System.nanoTime();
                count(start, alone ? end - start : acquired - start, end);
                start = end;
                all++;
            }
            done.countDown();
            try {
                measured.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }

        private void count(long start, long took, long end) {
            if (end >= from && start < until) {
                longest = Math.max(longest, took);
            }
            if (end < from || end >= until) {
                return;
            }
            if (pairs == samples.length) {
                samples = Arrays.copyOf(samples, samples.length * 2);
            }
            samples[(int) pairs++] = took;
        }
    }

    /** CPU in ns, voluntary and involuntary context switches of all threads. */
    private static long[] usage() throws IOException {
        long[] sum = {((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime(), 0, 0};
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path thread : threads) {
                try {
                    for (String line : Files.readAllLines(thread.resolve("status"))) {
                        int kind = line.startsWith("voluntary_ctxt") ? 1 : line.startsWith("nonvoluntary_ctxt") ? 2 : 0;
                        if (kind > 0) {
                            sum[kind] += Long.parseLong(line.substring(line.indexOf(':') + 1).trim());
                        }
                    }
                } catch (IOException e) {
                    // it has ended; callers do not before they were looked at
                }
            }
        }
        return sum;
    }

    private String run(String mode, int threads, long warmMs, long runMs) throws Exception {
        List<RedissonClient> clients = new ArrayList<>();
        Caller[] callers = new Caller[threads];
        CountDownLatch done = new CountDownLatch(threads), measured = new CountDownLatch(1);
        for (int i = 0; i < threads; i++) {
            boolean alone = mode.equals("distinct");
            if (mode.equals("clients")) {
                clients.add(another());
            }
            RedissonClient mine = mode.equals("clients") ? clients.get(i) : client;
            callers[i] = new Caller(mine.getLock(alone ? "bench:" + i : "bench:crowd"), alone, done, measured);
        }
        long[] before = usage();
        long from = System.nanoTime() + warmMs * 1000000, until = from + runMs * 1000000;
        for (Caller c : callers) {
            c.from = from;
            c.until = until;
            c.start();
        }
        done.await();
        long[] after = usage();
        measured.countDown();
        for (Caller c : callers) {
            c.join();
        }
        clients.forEach(RedissonClient::shutdown);
        return summary(callers, before, after);
    }

    private static String summary(Caller[] callers, long[] before, long[] after) {
        long[] all = Arrays.stream(callers).flatMapToLong(c -> Arrays.stream(c.samples, 0, (int) c.pairs)).sorted().toArray();
        long longest = Arrays.stream(callers).mapToLong(c -> c.longest).max().orElse(0);
        int count = all.length;
        long p50 = count == 0 ? longest : all[count / 2], p99 = count == 0 ? longest : all[count - 1 - count / 100];
        long made = Arrays.stream(callers).mapToLong(c -> c.all).sum();
        return String.format("done %d %d %d %d %d %d %d %d", count, p50, p99, longest, made, after[0] - before[0], after[1] - before[1],
            after[2] - before[2]);
    }

    private String answer(String[] words, RLock[] held) throws Exception {
        switch (words[0]) {
        case "run":
            return run(words[1], Integer.parseInt(words[2]), Long.parseLong(words[3]), Long.parseLong(words[4]));
        case "wait":
            held[0] = client.getLock(words[1]);
            held[0].lock();
            return "granted " + System.nanoTime();
        case "release":
            long instant = System.nanoTime();
            held[0].unlock();
            return "released " + instant;
        default:
            return "error unknown " + words[0];
        }
    }

    public static void main(String[] args) throws Exception {
        Worker worker = new Worker(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        RLock[] held = new RLock[1];
        worker.run("distinct", 4, 0, COMPILE_MS);
        System.out.println("ready Redisson " + Redisson.class.getPackage().getImplementationVersion() + ", Java " + System.getProperty("java.version"));
        for (String line = in.readLine(); line != null && !line.equals("end"); line = in.readLine()) {
            System.out.println(worker.answer(line.split(" "), held));
        }
        Runtime.getRuntime().halt(0);
    }
}
