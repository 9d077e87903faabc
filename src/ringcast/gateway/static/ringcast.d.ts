/** Types of `ringcast.js`. */

export interface PublisherInfo {
  readonly id: number;
  readonly node: string;
  readonly tag: string;
  readonly incarnation: bigint;
  readonly pid: number;
  readonly user: string;
  readonly program: string;
}

export interface SubscriberInfo {
  readonly id: number;
  readonly node: string;
  readonly pattern: string;
  readonly pid: number;
  readonly user: string;
  readonly reliable: boolean;
  readonly program: string;
}

export interface TagAttributes {
  codec: string;
  schema: Record<string, unknown> | null;
  depth: number;
  capacityBytes: number;
  maxWaitS: number;
  prefault: boolean;
  at: string;
  transport: string;
}

export interface TagOptions extends Partial<TagAttributes> {
  /** False: reject with UnknownTag instead of creating it. */
  create?: boolean;
}

export interface TagStatus {
  name: string;
  tagId: bigint;
  attributes: TagAttributes;
  publishers: number;
  subscribers: number;
  sent: number;
  bytes: number;
  lastSentNs: bigint;
}

export interface PublisherStatus {
  info: PublisherInfo;
  alive: boolean;
  counters: Record<string, number>;
  lastSentNs: bigint;
}

export interface SubscriberStatus {
  info: SubscriberInfo;
  counters: Record<string, number>;
  latency: number[];
}

export interface NodeStatus {
  name: string;
  state: string;
  me: boolean;
  linked: boolean;
  incarnation: bigint;
  control: string[];
  data: string[];
}

export interface ChannelStatus {
  direction: "in" | "out";
  node: string;
  tag: string;
  incarnation: bigint;
  transport: string;
  every: number;
  reliable: boolean;
  messages: number | null;
  bytes: number | null;
  lost: number | null;
  counters: Record<string, number>;
  size: [number, number] | null;
  rateHz: number;
}

export type PresenceKind = "node" | "publisher" | "subscriber";

export interface Presence {
  kind: PresenceKind;
  came: boolean;
  node: string;
  publisher?: PublisherInfo;
  subscriber?: SubscriberInfo;
}

export interface SubscribeOptions {
  /** "new" (default), "latest", "earliest", a sequence number, or numbers by incarnation. */
  start?: "new" | "latest" | "earliest" | number | Map<bigint, number>;
  reliable?: boolean;
  every?: number;
  rateHz?: number;
  size?: [number, number];
  at?: string;
  transport?: string;
  ordered?: boolean;
  /** While this page is behind, streams of higher priority are sent first and lower ones left out first. */
  priority?: number;
  /** How urgently other nodes send the tag to the gateway's; the tag's own class unless it is said. */
  urgency?: "low" | "normal" | "high" | "critical";
  /** Messages of these publishers alone, by incarnation in digits; of all when it is empty. */
  only?: string[];
}

export interface HistoryOptions {
  depth?: number;
  publisher?: PublisherInfo | PublisherStatus | Publisher | bigint;
  at?: string;
  every?: number;
  size?: [number, number];
}

export interface SendOptions {
  /** When it happened, UTC in nanoseconds; the time of sending when left out. */
  eventNs?: bigint;
  /** Receivers can do without it: it is left out first where something has to be. */
  discardable?: boolean;
}

export type ConnectionChange = "connected" | "lost" | "back";

export interface Codec<T = unknown> {
  encode(value: T): Uint8Array;
  decode(bytes: Uint8Array): T;
}

/** By the names of tags' codecs; add your own. */
export const codecs: Record<string, Codec<any>>;

/** `kind` is the name of the error in Python: "UnknownTag", "Empty", "TimeoutError"... */
export class RingcastError extends Error {
  constructor(kind: string, message: string);
  readonly kind: string;
}

/** Open a session with a gateway: by default the one that this module came from. */
export function connect(url?: string, options?: { timeoutMs?: number }): Promise<Session>;

export class Session extends EventTarget {
  readonly node: string;
  readonly connected: boolean;
  readonly closed: boolean;
  readonly held: boolean;
  tag<T = unknown>(name: string, options?: TagOptions): Tag<T>;
  subscribe<T = unknown>(pattern: string, options?: SubscribeOptions): Subscriber<T>;
  publisher<T = unknown>(name: string, options?: TagOptions & { onSlow?: "raise" | "skip" }): Publisher<T>;
  tags(pattern?: string): Promise<TagStatus[]>;
  nodes(): Promise<NodeStatus[]>;
  channels(): Promise<ChannelStatus[]>;
  watch(pattern?: string, options?: { kinds?: PresenceKind[] }): Watch;
  onConnectionChange(callback: (change: ConnectionChange) => void): { close(): void };
  close(): void;
}

export class Tag<T = unknown> {
  readonly name: string;
  readonly ready: Promise<this>;
  readonly attributes: TagAttributes | null;
  readonly codec: string | undefined;
  publisher(options?: { onSlow?: "raise" | "skip" }): Publisher<T>;
  subscribe(options?: SubscribeOptions): Subscriber<T>;
  history(options?: HistoryOptions): History<T>;
  watch(): Watch;
  publishers(): Promise<PublisherStatus[]>;
  subscribers(): Promise<SubscriberStatus[]>;
}

export class Message<T = unknown> {
  readonly data: T;
  readonly bytes: Uint8Array;
  readonly seq: number;
  readonly tag: string;
  readonly codec: string;
  readonly publisher: PublisherInfo;
  readonly eventNs: bigint;
  readonly sentNs: bigint;
  readonly receivedNs: bigint;
  readonly lost: number;
  readonly discardable: boolean;
}

export class Publisher<T = unknown> {
  readonly ready: Promise<this>;
  readonly tag: Tag<T>;
  readonly info: PublisherInfo | null;
  readonly closed: boolean;
  readonly dropped: number;
  readonly unanswered: number;
  readonly delayMs: number;
  send(data: T, options?: SendOptions): Promise<number>;
  sendNowait(data: T, options?: SendOptions): boolean;
  close(): void;
}

export class Subscriber<T = unknown> implements AsyncIterable<Message<T>> {
  readonly ready: Promise<this>;
  readonly pattern: string;
  readonly tag: Tag<T> | null;
  readonly closed: boolean;
  readonly lost: number;
  readonly received: number;
  readonly every: number;
  readonly latest: Message<T> | null;
  recv(timeoutMs?: number): Promise<Message<T>>;
  recvNowait(): Message<T> | undefined;
  onMessage(callback: (message: Message<T>) => unknown): Promise<void>;
  onPaced(callback: (every: number) => void): void;
  move(options: { at?: string; transport?: string }): Promise<void>;
  close(): void;
  [Symbol.asyncIterator](): AsyncGenerator<Message<T>, void, undefined>;
}

export class History<T = unknown> {
  readonly unanswered: string[];
  latest(back?: number): Promise<Message<T>>;
  at(seq: number): Promise<Message<T>>;
  range(first: number, last: number): Promise<Message<T>[]>;
  since(seq: number): Promise<Message<T>[]>;
  before(sentNs: bigint | Date): Promise<Message<T>>;
  between(firstNs: bigint | Date, lastNs: bigint | Date): Promise<Message<T>[]>;
  bounds(): Promise<[number, number]>;
}

export class Watch implements AsyncIterable<Presence> {
  readonly ready: Promise<this>;
  readonly present: Presence[];
  readonly closed: boolean;
  recv(timeoutMs?: number): Promise<Presence>;
  close(): void;
  [Symbol.asyncIterator](): AsyncGenerator<Presence, void, undefined>;
}
