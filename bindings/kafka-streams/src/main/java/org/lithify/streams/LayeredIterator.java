package org.lithify.streams;

import java.util.Arrays;
import java.util.List;

/**
 * Rows of several layers in one order: of one key the newest layer's row, and none if that is a removal.
 */
final class LayeredIterator implements RowIterator {
    private final RowIterator[] layers;
    private final boolean[] standing;
    private final boolean forward;
    private boolean started;
    private int current = -1;
    private byte[] key;
    private byte[] value;

    /** Takes over {@code layers}, the newest first. */
    LayeredIterator(final List<RowIterator> layers, final boolean forward) {
        this.layers = layers.toArray(new RowIterator[0]);
        this.standing = new boolean[layers.size()];
        this.forward = forward;
    }

    @Override
    public boolean next() {
        if (!started) {
            started = true;
            for (int i = 0; i < layers.length; i++) {
                standing[i] = layers[i].next();
            }
        }
        do {
            current = nearest();
            if (current < 0) {
                return false;
            }
            key = layers[current].key();
            value = layers[current].value();
            pass(key);
        } while (value == null);
        return true;
    }

    @Override
    public byte[] key() {
        return key;
    }

    @Override
    public byte[] value() {
        return value;
    }

    @Override
    public void close() {
        for (final RowIterator layer : layers) {
            layer.close();
        }
    }

    /** The newest of the layers with the next key; -1 if all are through. */
    private int nearest() {
        int nearest = -1;
        for (int i = 0; i < layers.length; i++) {
            if (standing[i] && (nearest < 0 || order(layers[i].key(), layers[nearest].key()) < 0)) {
                nearest = i;
            }
        }
        return nearest;
    }

    private void pass(final byte[] passed) {
        for (int i = 0; i < layers.length; i++) {
            if (standing[i] && Arrays.equals(layers[i].key(), passed)) {
                standing[i] = layers[i].next();
            }
        }
    }

    private int order(final byte[] left, final byte[] right) {
        final int order = Arrays.compareUnsigned(left, right);
        return forward ? order : -order;
    }
}
