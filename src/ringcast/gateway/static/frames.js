/** Binary frames between a page and the gateway: their kinds, flags and sizes. */

export const MESSAGE = 1, PULLED = 2, PUBLISH = 3, SENT = 4, TAKEN = 5;
export const DISCARDABLE = 1, TIMED = 2;
export const MESSAGE_HEADER = 48, PUBLISH_HEADER = 24, TAKEN_BYTES = 12;
export const WRAP = 2 ** 32;
