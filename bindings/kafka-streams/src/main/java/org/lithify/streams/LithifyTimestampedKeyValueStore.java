package org.lithify.streams;

import org.apache.kafka.streams.state.TimestampedBytesStore;

/** A key-value store whose values begin with a timestamp. */
final class LithifyTimestampedKeyValueStore extends LithifyKeyValueStore implements TimestampedBytesStore {
    LithifyTimestampedKeyValueStore(final String name) {
        super(name);
    }

    @Override
    String format() {
        return "key-value timestamped 1";
    }
}
