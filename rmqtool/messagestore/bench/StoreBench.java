// The Java store behind `rmqtool store bench --java`: one line on standard input, "WORK ROUNDS", is answered
// with "COUNT NANOSECONDS" of its best round. Launched from source, so that no compiled class is shipped.

import java.io.BufferedReader;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.store.*;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

public class StoreBench {
    private static final String TOPIC = "BenchTopic";
    private static final int QUEUES = 4;
    private static final int TOGETHER = 1000;
    private static final int WRITERS = 16;
    private static final int LOOKUPS = 10;
    private static final int SYNCED = 100;
    private static final long WARM_BYTES = 1L << 30;

    private interface Work {
        int run() throws Exception;
    }

    private final byte[] body;
    private final int number;
    private final long warmNanos;
    private final Random chance = new Random(1);
    private final InetSocketAddress host = new InetSocketAddress("127.0.0.1", 10911);
    private final DefaultMessageStore store;
    private final DefaultMessageStore synced;
    private final AtomicInteger turn = new AtomicInteger();

    private StoreBench(File root, int bodyBytes, int number, long warmNanos) throws Exception {
        this.body = new byte[bodyBytes];
        this.chance.nextBytes(this.body);
        this.number = number;
        this.warmNanos = warmNanos;
        this.store = open(new File(root, "async"), FlushDiskType.ASYNC_FLUSH);
        this.synced = open(new File(root, "sync"), FlushDiskType.SYNC_FLUSH);
        putMany();
        this.synced.putMessage(message("key-0"));
    }

    public static void main(String[] given) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        System.setOut(System.err);
        int bodyBytes = Integer.parseInt(given[1]);
        int number = Integer.parseInt(given[2]);
        StoreBench bench = new StoreBench(new File(given[0]), bodyBytes, number, Long.parseLong(given[3]));
        answers.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split(" ");
            answers.println(bench.best(bench.work(asked[0]), Integer.parseInt(asked[1]), asked[0].startsWith("put")));
        }
        bench.store.shutdown();
        bench.synced.shutdown();
        System.exit(0);
    }

    private DefaultMessageStore open(File root, FlushDiskType flush) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root.getPath());
        config.setStorePathCommitLog(new File(root, "commitlog").getPath());
        config.setMappedFileSizeCommitLog(1 << 28);
        config.setMaxHashSlotNum(500_000);
        config.setMaxIndexNum(2_000_000);
        config.setHaListenPort(0);
        config.setFlushDiskType(flush);
        ConcurrentMap<String, TopicConfig> topics = new ConcurrentHashMap<>();
        topics.put(TOPIC, new TopicConfig(TOPIC, QUEUES, QUEUES, 6));
        MessageArrivingListener nobody = (topic, queue, offset, code, time, bits, properties) -> { };
        Object[] all = {config, new BrokerStatsManager("bench", true), nobody, new BrokerConfig(), topics};
        for (Constructor<?> one : DefaultMessageStore.class.getConstructors()) {
            int count = one.getParameterCount();
            if (count == 4 || count == 5) {  // since 5.0 with the table of topics
                if (count == 5) {
                    MessageStoreConfig.class.getMethod("setTimerWheelEnable", boolean.class).invoke(config, false);
                }
                Object made = one.newInstance(java.util.Arrays.copyOf(all, count));
                DefaultMessageStore opened = (DefaultMessageStore) made;
                if (!opened.load()) {
                    throw new IllegalStateException("the store does not load");
                }
                opened.start();
                return opened;
            }
        }
        throw new IllegalStateException("a DefaultMessageStore that this program does not know");
    }

    private String best(Work work, int rounds, boolean writes) throws Exception {
        long deadline = System.nanoTime() + warmNanos;
        long most = writes ? WARM_BYTES / (body.length + 256L) : Long.MAX_VALUE;
        for (long done = 0; System.nanoTime() < deadline && done < most; ) {
            done += work.run();
        }
        long best = Long.MAX_VALUE;
        int count = 0;
        for (int round = 0; round < rounds; round++) {
            settle();
            long began = System.nanoTime();
            count = work.run();
            best = Math.min(best, System.nanoTime() - began);
        }
        return count + " " + best;
    }

    private void settle() throws Exception {
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
    }

    private Work work(String name) {
        switch (name) {
            case "put": return this::put;
            case "put_many": return this::putMany;
            case "put_sync": return () -> putSynced(Math.max(number / SYNCED, 1));
            case "put_sync_16": return this::putSyncedTogether;
            case "consume_raw": return () -> consume(false);
            case "consume_objects": return () -> consume(true);
            case "get_random": return this::getRandom;
            case "key": return this::key;
            default: throw new IllegalArgumentException(name);
        }
    }

    private MessageExtBrokerInner message(String key) {
        MessageExtBrokerInner made = new MessageExtBrokerInner();
        made.setTopic(TOPIC);
        made.setBody(body);
        made.setTags("TagA");
        made.setKeys(key);
        MessageClientIDSetter.setUniqID(made);
        made.setPropertiesString(MessageDecoder.messageProperties2String(made.getProperties()));
        made.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(null, "TagA"));
        made.setQueueId((turn.getAndIncrement() & Integer.MAX_VALUE) % QUEUES);
        made.setBornTimestamp(System.currentTimeMillis());
        made.setBornHost(host);
        made.setStoreHost(host);
        return made;
    }

    private static void check(PutMessageResult result) {
        if (!result.isOk()) {
            throw new IllegalStateException(result.getPutMessageStatus().toString());
        }
    }

    private int put() {
        for (int i = 0; i < number; i++) {
            check(store.putMessage(message("key-" + i)));
        }
        return number;
    }

    private int putMany() {
        for (int at = 0; at < number; at += TOGETHER) {
            List<Message> some = new ArrayList<>();
            for (int i = at; i < Math.min(at + TOGETHER, number); i++) {
                Message one = new Message(TOPIC, "TagA", "key-" + i, body);
                MessageClientIDSetter.setUniqID(one);
                some.add(one);
            }
            MessageExtBatch batch = new MessageExtBatch();
            batch.setTopic(TOPIC);
            batch.setQueueId((turn.getAndIncrement() & Integer.MAX_VALUE) % QUEUES);
            batch.setBody(MessageDecoder.encodeMessages(some));
            batch.setBornTimestamp(System.currentTimeMillis());
            batch.setBornHost(host);
            batch.setStoreHost(host);
            check(store.putMessages(batch));
        }
        return number;
    }

    private int putSynced(int some) {
        for (int i = 0; i < some; i++) {
            check(synced.putMessage(message("key-" + i)));
        }
        return some;
    }

    private int putSyncedTogether() throws Exception {
        int some = Math.max(number / SYNCED, 1);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread[] writers = new Thread[WRITERS];
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = new Thread(() -> putSynced(some));
            writers[i].setUncaughtExceptionHandler((thread, error) -> failure.set(error));
            writers[i].start();
        }
        for (Thread one : writers) {
            one.join();
        }
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        return some * WRITERS;
    }

    private int consume(boolean decode) throws Exception {
        int done = 0;
        long seen = 0;
        for (int queue = 0; queue < QUEUES; queue++) {
            long at = store.getMinOffsetInQueue(TOPIC, queue);
            long end = store.getMaxOffsetInQueue(TOPIC, queue);
            while (at < end) {
                GetMessageResult found = store.getMessage("bench", TOPIC, queue, at, 32, null);
                for (SelectMappedBufferResult one : found.getMessageMapedList()) {
                    ByteBuffer record = one.getByteBuffer();
                    seen += decode ? MessageDecoder.decode(record).getBody().length : record.remaining();
                    done++;
                }
                at = found.getNextBeginOffset();
                found.release();
            }
        }
        return seen < 0 ? 0 : done;
    }

    private int getRandom() throws Exception {
        int some = Math.max(number / LOOKUPS, 1);
        for (int i = 0; i < some; i++) {
            int queue = chance.nextInt(QUEUES);
            long begin = store.getMinOffsetInQueue(TOPIC, queue);
            long count = store.getMaxOffsetInQueue(TOPIC, queue) - begin;
            if (count > 0) {
                store.getMessage("bench", TOPIC, queue, begin + chance.nextInt((int) count), 1, null).release();
            }
        }
        return some;
    }

    private int key() {
        int some = Math.max(number / LOOKUPS, 1);
        for (int i = 0; i < some; i++) {
            store.queryMessage(TOPIC, "key-" + chance.nextInt(number), 1, 0, Long.MAX_VALUE).release();
        }
        return some;
    }
}
