// The five tags of one conference through the gateway: publish and receive each medium, at any time.
import { connect } from "/ringcast/ringcast.js";

const ROOT = "conference";

export class Link {
  // `media` are as the server describes them, by name.
  constructor(conference, media) {
    this.conference = conference;
    this.media = media;
    this.publishers = new Map();
    this.subscribers = new Map();
    this.onPaced = () => {};
    this.onFailed = () => {};
  }

  // `changed` is called with "connected", "lost" or "back".
  async open(changed) {
    this.session = await connect();
    this.session.onConnectionChange(changed);
  }

  tagName(medium) {
    return `${ROOT}/${this.conference}/${medium}`;
  }

  tag(medium) {
    return this.session.tag(this.tagName(medium), this.media[medium].options);
  }

  async publish(medium) {
    if (this.publishers.has(medium)) return;
    const publisher = this.tag(medium).publisher({ onSlow: "skip" });
    await publisher.ready;
    this.publishers.set(medium, publisher);
  }

  unpublish(medium) {
    this.publishers.get(medium)?.close();
    this.publishers.delete(medium);
  }

  // Sound and pictures are not queued: when the gateway is behind or away, the next one is better. The rest waits.
  send(medium, bytes, at = Date.now(), discardable = false) {
    const publisher = this.publishers.get(medium);
    if (!publisher) return false;
    const options = { eventNs: BigInt(at) * 1000000n, discardable };
    if (this.media[medium].reliable || medium === "control") publisher.send(bytes, options);
    else publisher.sendNowait(bytes, options);
    return true;
  }

  async subscribe(medium, options, take) {
    const subscriber = this.tag(medium).subscribe({ reliable: this.media[medium].reliable, ...options });
    await subscriber.ready;
    this.unsubscribe(medium);
    this.subscribers.set(medium, subscriber);
    subscriber.onPaced((every) => this.subscribers.get(medium) === subscriber && this.onPaced(medium, every));
    subscriber.onMessage((message) => take(message)).catch((error) => this.onFailed(medium, error));
  }

  unsubscribe(medium) {
    this.subscribers.get(medium)?.close();
    this.subscribers.delete(medium);
  }

  // All that the tag's history holds, oldest first. The gateway gives so many at once: then by halves of the time.
  async pull(medium, first = 0n, last = BigInt(Date.now() + 60000) * 1000000n) {
    try {
      return await this.tag(medium).history().between(first, last);
    } catch (error) {
      if (error.kind === "Empty") return [];
      if (error.kind !== "HistoryError" || first >= last) throw error;
    }
    const middle = (first + last) / 2n;
    return [...(await this.pull(medium, first, middle)), ...(await this.pull(medium, middle + 1n, last))];
  }
}
