package org.lithify.streams;

/** What a window store is made of. Times are milliseconds. */
record WindowSettings(String name, long retentionPeriod, long segmentInterval, long windowSize,
                      boolean retainDuplicates) {
}
