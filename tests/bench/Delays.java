// Delayed delivery by the Java store, 4.9: "NUMBER" messages of level 1, all due, then its ScheduleMessageService.
// Prints the nanoseconds from when it begins, a second after its start, to the last message in its queue.

import java.io.File;
import java.net.InetSocketAddress;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.store.*;
import org.apache.rocketmq.store.config.BrokerRole;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

public class Delays {
    private static final String TOPIC = "Later";
    private static final int QUEUES = 4;
    private static final long FIRST_NANOS = 1_000_000_000L;  // ScheduleMessageService.FIRST_DELAY_TIME

    public static void main(String[] given) throws Exception {
        File root = new File(given[0]);
        int number = Integer.parseInt(given[1]);
        java.io.PrintStream answers = System.out;
        System.setOut(System.err);
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root.getPath());
        config.setStorePathCommitLog(new File(root, "commitlog").getPath());
        config.setMappedFileSizeCommitLog(1 << 28);
        config.setMaxHashSlotNum(500_000);
        config.setMaxIndexNum(2_000_000);
        config.setHaListenPort(0);
        MessageArrivingListener nobody = (topic, queue, offset, code, time, bits, properties) -> { };
        BrokerStatsManager stats = new BrokerStatsManager("bench", true);
        DefaultMessageStore store = new DefaultMessageStore(config, stats, nobody, new BrokerConfig());
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        store.start();
        store.handleScheduleMessageService(BrokerRole.SLAVE);  // it delivers nothing until all is due
        for (int i = 0; i < number; i++) {
            PutMessageResult result = store.putMessage(message(i, Integer.parseInt(given[2])));
            if (!result.isOk()) {
                throw new IllegalStateException(result.getPutMessageStatus().toString());
            }
        }
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
        Thread.sleep(1100);
        long began = System.nanoTime() + FIRST_NANOS;
        store.handleScheduleMessageService(BrokerRole.ASYNC_MASTER);
        while (delivered(store) < number) {
            Thread.sleep(0, 100_000);
        }
        answers.println(System.nanoTime() - began);
        store.shutdown();
        System.exit(0);
    }

    private static long delivered(DefaultMessageStore store) {
        long found = 0;
        for (int queue = 0; queue < QUEUES; queue++) {
            found += store.getMaxOffsetInQueue(TOPIC, queue);
        }
        return found;
    }

    private static MessageExtBrokerInner message(int number, int size) {
        MessageExtBrokerInner made = new MessageExtBrokerInner();
        InetSocketAddress host = new InetSocketAddress("127.0.0.1", 10911);
        made.setTopic(TOPIC);
        made.setBody(new byte[size]);
        made.setKeys("key-" + number);
        made.setDelayTimeLevel(1);
        MessageClientIDSetter.setUniqID(made);
        made.setPropertiesString(MessageDecoder.messageProperties2String(made.getProperties()));
        made.setQueueId(number % QUEUES);
        made.setBornTimestamp(System.currentTimeMillis());
        made.setBornHost(host);
        made.setStoreHost(host);
        return made;
    }
}
