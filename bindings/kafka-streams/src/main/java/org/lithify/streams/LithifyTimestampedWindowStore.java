package org.lithify.streams;

import org.apache.kafka.streams.state.TimestampedBytesStore;

/** A window store whose values begin with a timestamp. */
final class LithifyTimestampedWindowStore extends LithifyWindowStore implements TimestampedBytesStore {
    LithifyTimestampedWindowStore(final WindowSettings settings) {
        super(settings);
    }

    @Override
    String values() {
        return "timestamped";
    }
}
