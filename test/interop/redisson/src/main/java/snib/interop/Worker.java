// SPDX-License-Identifier: Apache-2.0
package snib.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * The Java side of the interop suite: the real Redisson, told on stdin what to do, answering on stdout. The lines are
 * described in workers.py; worker.c is the other side and understands the same ones. Each actor is a thread, and so an
 * owner of its own; what only one Redisson version has is called by name, and answered with NotInThisVersion elsewhere.
 *
 * <pre>Worker REDIS-URL LEASE-MS [REDIS-URL...]</pre>
 */
public final class Worker {
    private final RedissonClient client;
    private final List<RedissonClient> clients = new ArrayList<>(); // of all servers
    private final Map<String, ExecutorService> actors = new ConcurrentHashMap<>();
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Worker(String[] args) {
        long leaseMs = Long.parseLong(args[1]);
        client = open(args[0], leaseMs);
        clients.add(client);
        for (int i = 2; i < args.length; i++) {
            clients.add(open(args[i], leaseMs));
        }
    }

    private static RedissonClient open(String url, long leaseMs) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE).setThreads(4).setNettyThreads(4).setLockWatchdogTimeout(leaseMs);
        config.useSingleServer().setAddress(url).setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1);
        return Redisson.create(config);
    }

    public static void main(String[] args) throws IOException {
        Worker worker = new Worker(args);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        worker.say("ready " + ProcessHandle.current().pid());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            worker.accept(line.split(" "));
        }
        Runtime.getRuntime().halt(0); // what is still held is the driver's business
    }

    private synchronized void say(String line) {
        out.println(line);
    }

    private void accept(String[] words) {
        actors.computeIfAbsent(words[1], actor -> Executors.newSingleThreadExecutor()).execute(() -> {
            long begin = System.nanoTime();
            String answer = answer(Arrays.copyOfRange(words, 2, words.length));
            say(words[0] + " " + begin + " " + System.nanoTime() + " " + answer);
        });
    }

    private String answer(String[] words) {
        try {
            return execute(words[0], words[1], Arrays.asList(words).subList(2, words.length));
        } catch (Exception e) {
            Throwable cause = e;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            String text = String.valueOf(cause.getMessage()).replaceAll("\\s+", " ");
            return "error " + cause.getClass().getSimpleName() + " " + text;
        }
    }

    private String execute(String verb, String name, List<String> args) throws Exception {
        if (verb.startsWith("sem-")) {
            return semaphore(verb, client.getSemaphore(name), args);
        }
        if (verb.startsWith("permits-")) {
            return permits(verb, client.getPermitExpirableSemaphore(name), args);
        }
        if (verb.startsWith("latch-")) {
            return latch(verb, client.getCountDownLatch(name), args);
        }
        RLock lock = lock(args.get(0), name);
        switch (verb) {
            case "acquire":
                return acquire(lock, args.get(0), number(args, 1), number(args, 2));
            case "release":
                lock.unlock();
                return "1";
            case "force":
                return yes(lock.forceUnlock());
            case "query":
                return "held=" + yes(lock.isLocked()) + " mine=" + yes(lock.isHeldByCurrentThread()) + " depth=" + lock.getHoldCount()
                    + " left=" + lock.remainTimeToLive();
            case "count":
            case "look":
                return Long.toString(new Counter(lock, args.get(1), args.get(2)).run(verb.equals("look"), number(args, 3)));
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    @SuppressWarnings("deprecation") // red locks are what this is about
    private RLock lock(String kind, String name) throws Exception {
        switch (kind) {
            case "lock":
                return client.getLock(name);
            case "fair":
                return client.getFairLock(name);
            case "spin":
                return client.getSpinLock(name);
            case "read":
                return client.getReadWriteLock(name).readLock();
            case "write":
                return client.getReadWriteLock(name).writeLock();
            case "multi":
                return client.getMultiLock(Arrays.stream(name.split(",")).map(client::getLock).toArray(RLock[]::new));
            case "red":
                return new RedissonRedLock(clients.stream().map(c -> c.getLock(name)).toArray(RLock[]::new));
            case "fenced":
                return (RLock) newer(client, "getFencedLock", name);
            case "non-reentrant":
                return (RLock) newer(client, "getNonReentrantLock", name);
            case "non-reentrant-fair":
                return (RLock) newer(client, "getNonReentrantFairLock", name);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    /** 1 and the token, if the kind has one, or 0. A wait of 0 tries once, -1 waits for ever; a lease of 0 is renewed. */
    private String acquire(RLock lock, String kind, long waitMs, long leaseMs) throws Exception {
        long lease = leaseMs == 0 ? -1 : leaseMs;
        if (waitMs < 0) {
            lock.lock(lease, TimeUnit.MILLISECONDS);
        } else if (waitMs == 0 && leaseMs == 0 ? !lock.tryLock() : !lock.tryLock(waitMs, lease, TimeUnit.MILLISECONDS)) {
            return "0";
        }
        return kind.equals("fenced") ? "1 " + newer(lock, "getToken") : "1";
    }

    @SuppressWarnings("deprecation") // what both versions have
    private String semaphore(String verb, RSemaphore semaphore, List<String> args) throws Exception {
        switch (verb) {
            case "sem-set":
                return yes(semaphore.trySetPermits((int) number(args, 0)));
            case "sem-acquire":
                if (number(args, 1) < 0) {
                    semaphore.acquire((int) number(args, 0));
                    return "1";
                }
                return yes(semaphore.tryAcquire((int) number(args, 0), number(args, 1), TimeUnit.MILLISECONDS));
            case "sem-release":
                semaphore.release((int) number(args, 0));
                return "1";
            case "sem-add":
                semaphore.addPermits((int) number(args, 0));
                return "1";
            case "sem-drain":
                return "1 " + semaphore.drainPermits();
            case "sem-query":
                return "free=" + semaphore.availablePermits();
            case "sem-delete":
                return yes(semaphore.delete());
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private String permits(String verb, RPermitExpirableSemaphore permits, List<String> args) throws Exception {
        switch (verb) {
            case "permits-set":
                return yes(permits.trySetPermits((int) number(args, 0)));
            case "permits-add":
                permits.addPermits((int) number(args, 0));
                return "1";
            case "permits-acquire":
                return permitsAcquire(permits, (int) number(args, 0), number(args, 1), number(args, 2));
            case "permits-release":
                return args.size() == 1 ? yes(permits.tryRelease(args.get(0)))
                    : yes((Integer) newer(permits, "tryRelease", args) == args.size());
            case "permits-renew":
                return yes(permits.updateLeaseTime(args.get(0), number(args, 1), TimeUnit.MILLISECONDS));
            case "permits-query":
                return "free=" + permits.availablePermits();
            case "permits-delete":
                return yes(permits.delete());
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    /** 1 and the ids, or 0. A lease of 0 never ends. */
    private String permitsAcquire(RPermitExpirableSemaphore permits, int count, long waitMs, long leaseMs) throws Exception {
        long wait = waitMs < 0 ? TimeUnit.DAYS.toMillis(1) : waitMs;
        long lease = leaseMs == 0 ? -1 : leaseMs;
        if (count == 1) {
            String id = permits.tryAcquire(wait, lease, TimeUnit.MILLISECONDS);
            return id == null ? "0" : "1 " + id;
        }
        List<?> ids = (List<?>) newer(permits, "tryAcquire", count, wait, lease, TimeUnit.MILLISECONDS);
        return ids.isEmpty() ? "0" : "1 " + String.join(" ", ids.toArray(new String[0]));
    }

    private String latch(String verb, RCountDownLatch latch, List<String> args) throws Exception {
        switch (verb) {
            case "latch-set":
                return yes(latch.trySetCount(number(args, 0)));
            case "latch-down":
                latch.countDown();
                return "1";
            case "latch-await":
                if (number(args, 0) < 0) {
                    latch.await();
                    return "1";
                }
                if (number(args, 0) == 0) { // await(0) would leave its subscription behind
                    return yes(latch.getCount() == 0);
                }
                return yes(latch.await(number(args, 0), TimeUnit.MILLISECONDS));
            case "latch-query":
                return "left=" + latch.getCount();
            case "latch-delete":
                return yes(latch.delete());
            default:
                throw new IllegalArgumentException(verb);
        }
    }

    private static long number(List<String> args, int index) {
        return Long.parseLong(args.get(index));
    }

    private static String yes(boolean b) {
        return b ? "1" : "0";
    }

    /** Calls a method that not every version has. */
    private static Object newer(Object object, String method, Object... args) throws Exception {
        for (java.lang.reflect.Method m : object.getClass().getMethods()) {
            if (m.getName().equals(method) && fits(m.getParameterTypes(), args)) {
                try {
                    return m.invoke(object, args);
                } catch (InvocationTargetException e) {
                    throw (Exception) e.getCause();
                }
            }
        }
        throw new NotInThisVersion(method);
    }

    private static boolean fits(Class<?>[] types, Object[] args) {
        if (types.length != args.length) {
            return false;
        }
        for (int i = 0; i < args.length; i++) {
            boolean number = types[i].isPrimitive() && args[i].getClass().getSimpleName().toLowerCase().startsWith(types[i].getName());
            if (!number && !types[i].isInstance(args[i])) {
                return false;
            }
        }
        return true;
    }

    private static final class NotInThisVersion extends Exception {
        private static final long serialVersionUID = 1;

        NotInThisVersion(String method) {
            super(method);
        }
    }
}
