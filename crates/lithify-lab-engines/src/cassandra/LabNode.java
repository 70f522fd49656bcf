import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

import org.apache.cassandra.service.CassandraDaemon;
import org.apache.cassandra.service.StorageService;

/**
 * A node that takes orders from its standard input, a line each, and answers each with a line on
 * its standard output: "ready" when it has started, then "done", or "failed: " and the reason.
 *
 * The orders are what nodetool asks for through JMX, given in the node's own process: a Java
 * virtual machine for every flush would take longer than the flush. What a node says otherwise goes
 * to standard error. It ends when nobody can give it orders any more.
 */
public final class LabNode {
    private static final String KEYSPACE = "lab";
    private static final String TABLE = "lines";

    private LabNode() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BlockingQueue<String> orders = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(orders), "orders");
        reader.setDaemon(true);
        reader.start();
        CassandraDaemon.main(arguments);
        answer(answers, "ready");
        while (true) {
            answer(answers, obey(orders.take()));
        }
    }

    private static void read(BlockingQueue<String> orders) {
        try {
            BufferedReader lines = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                orders.add(line);
            }
        } catch (IOException unreadable) {
            // As if there were no other line.
        }
        Runtime.getRuntime().halt(1);
    }

    private static String obey(String order) {
        try {
            switch (order) {
                case "flush":
                    StorageService.instance.forceKeyspaceFlush(KEYSPACE, TABLE);
                    return "done";
                case "compact":
                    StorageService.instance.forceKeyspaceCompaction(false, KEYSPACE, TABLE);
                    return "done";
                case "stop":
                    System.exit(0);
                    return "done";
                default:
                    return "failed: there is no order " + order;
            }
        } catch (Throwable failure) {
            return "failed: " + String.valueOf(failure).replace('\n', ' ');
        }
    }

    private static void answer(PrintStream answers, String line) {
        answers.println(line);
        answers.flush();
    }
}
