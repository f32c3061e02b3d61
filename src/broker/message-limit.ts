/**
 * The largest message that every RabbitMQ accepts by default: `max_message_size` is 16 MiB since
 * 4.0, and was 128 MiB before (https://www.rabbitmq.com/docs/configure). RabbitMQ closes the
 * channel of a larger message.
 */
export const maxMessageBytes = 16 * 1024 ** 2;

/**
 * Most bytes of a presented record as JSON, so that its event fits into a message. 1 MiB is left
 * for the envelope.
 */
export const maxPresentedBytes = maxMessageBytes - 1024 ** 2;

/**
 * Above this size, the relay reads no captured record, although a transform might make it smaller.
 * A record of 32 MB took 0.4 s, one of 128 MB took 2.3 s and 500 MB of memory. The relay's
 * statement may take 2 s, and reads all events.
 */
export const mostReadBytes = 2 * maxMessageBytes;
