import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.cassandra.schema.CompressionParams;

/** Prints the options that Cassandra keeps of a map as CQL writes it. Needs no node. */
public class Judge {
    public static void main(String[] arguments) {
        Map<String, String> options = new LinkedHashMap<>();
        Matcher pair = Pattern.compile("'([^']*)'\\s*:\\s*'([^']*)'").matcher(arguments[0]);
        while (pair.find()) {
            options.put(pair.group(1), pair.group(2));
        }
        System.out.println(new TreeMap<>(CompressionParams.fromMap(options).asMap()));
        System.exit(0);
    }
}
