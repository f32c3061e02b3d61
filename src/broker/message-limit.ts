/**
 * The largest message that every RabbitMQ takes by default: 16 MiB since 4.0, by its setting `max_message_size` (128 MiB before;
 * https://www.rabbitmq.com/docs/configure). It closes the channel of one that is larger.
 */
export const maxMessageBytes = 16 * 1024 ** 2;

/** As much JSON as a record may be presented in, in bytes, so that its event fits into a message. The rest of the envelope has 1 MiB. */
export const maxPresentedBytes = maxMessageBytes - 1024 ** 2;
