package org.lithify.streams;

import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.CompressionType;
import org.rocksdb.Options;

import java.util.Map;

/**
 * Compression and block size of the built-in stores, by the settings {@code test.compression} (a constant of
 * RocksDB's {@link CompressionType}) and {@code test.block.bytes}.
 */
public final class BuiltInSettings implements RocksDBConfigSetter {
    @Override
    public void setConfig(final String store, final Options options, final Map<String, Object> settings) {
        if (settings.get("test.compression") instanceof String codec) {
            options.setCompressionType(CompressionType.valueOf(codec));
        }
        if (settings.get("test.block.bytes") instanceof String bytes) {
            final BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
            options.setTableFormatConfig(table.setBlockSize(Long.parseLong(bytes)));
        }
    }

    @Override
    public void close(final String store, final Options options) {
        // Nothing was made.
    }
}
