/**
 * State stores of Kafka Streams on Lithify, an embedded key-value store.
 *
 * <p>{@link org.lithify.streams.LithifyDslStoreSuppliers} replaces the stores of a whole topology by one setting;
 * {@link org.lithify.streams.LithifyStores} has suppliers for single stores;
 * {@link org.lithify.streams.LithifyConfig} has the settings.
 */
package org.lithify.streams;
