// The five tags of one conference through the gateway: publish and subscribe to each medium, at any time.
import { connect } from "/ringcast.js";

const ROOT = "conference";

export class Link {
  constructor(conference, media) {
    this.conference = conference;
    this.media = media; // as the server describes them, by name
    this.publishers = new Map();
    this.subscribers = new Map();
    this.lost = new Map();
  }

  async open(changed) {
    this.session = await connect({ onState: changed });
    return this.session;
  }

  tagName(medium) {
    return `${ROOT}/${this.conference}/${medium}`;
  }

  tag(medium) {
    return this.session.tag(this.tagName(medium), this.media[medium].options);
  }

  async publish(medium) {
    if (this.publishers.has(medium)) return;
    const tag = await this.tag(medium);
    this.publishers.set(medium, await tag.publisher({ onSlow: "skip" }));
  }

  async unpublish(medium) {
    const publisher = this.publishers.get(medium);
    this.publishers.delete(medium);
    await publisher?.close();
  }

  // Nothing is queued for long: what cannot be sent now is left out, and counted by the caller.
  send(medium, bytes, at = Date.now(), discardable = false) {
    const publisher = this.publishers.get(medium);
    if (!publisher) return false;
    publisher.send(bytes, { eventNs: BigInt(at) * 1000000n, discardable }).catch(() => {});
    return true;
  }

  async subscribe(medium, options, take) {
    await this.unsubscribe(medium);
    const tag = await this.tag(medium);
    const subscriber = await tag.subscribe({ reliable: this.media[medium].reliable, ...options });
    this.subscribers.set(medium, subscriber);
    this.run(subscriber, take);
    return subscriber;
  }

  async run(subscriber, take) {
    for await (const message of subscriber) take(message);
  }

  async unsubscribe(medium) {
    const subscriber = this.subscribers.get(medium);
    this.subscribers.delete(medium);
    await subscriber?.close();
  }

  // All that the tag's history holds, oldest first.
  async pull(medium) {
    const tag = await this.tag(medium);
    try {
      return await tag.history().between(0n, BigInt(Date.now() + 60000) * 1000000n);
    } catch (error) {
      if (error.name === "Empty") return [];
      throw error;
    }
  }
}
