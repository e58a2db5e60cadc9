/* One connection to the live hints of the server: an EventSource, or polling where it does not get
   through (a proxy that buffers). Used by stream.js, which shares it among a browser's tabs. */

const POLL_MS = 2000;
const FAILURES_BEFORE_POLLING = 2;
const TRY_STREAM_AGAIN_MS = 60_000;
const FIRST_WORD_MS = 8000;

export class Source {
  /** on: { hint(hint, cursor), resync(cursor), status(word) }. */
  constructor(addresses, topics, cursor, on) {
    this.addresses = addresses;
    this.topics = topics;
    this.cursor = cursor;
    this.on = on;
    this.failures = 0;
    this.isClosed = false;
    this.#stream();
  }

  /** End it for good. */
  close() {
    this.isClosed = true;
    this.#endStream();
    clearTimeout(this.pollTimer);
  }

  #stream() {
    if (this.isClosed) {
      return;
    }
    this.on.status("catching-up");
    const events = new EventSource(this.#address(this.addresses.events));
    this.events = events;
    this.firstWord = setTimeout(() => this.#onFailure(), FIRST_WORD_MS);
    events.addEventListener("hello", (event) => {
      clearTimeout(this.firstWord);
      this.failures = 0;
      this.cursor = event.lastEventId;
      this.on.status("live");
    });
    events.addEventListener("message", (event) => {
      this.cursor = event.lastEventId;
      this.on.hint(JSON.parse(event.data), this.cursor);
    });
    events.addEventListener("resync", (event) => {
      this.cursor = event.lastEventId;
      this.on.resync(this.cursor);
    });
    events.addEventListener("bye", () => this.#signedOut());
    events.addEventListener("error", () => this.#onFailure());
  }

  /* The browser reconnects by itself after a lost connection; after a refusal it does not. */
  #onFailure() {
    if (this.isClosed) {
      return;
    }
    this.failures += 1;
    const isRefused = this.events?.readyState === EventSource.CLOSED;
    if (this.failures >= FAILURES_BEFORE_POLLING || isRefused) {
      this.#endStream();
      this.streamAgainAt = Date.now() + TRY_STREAM_AGAIN_MS;
      this.#poll();
    } else {
      this.on.status("catching-up");
    }
  }

  #endStream() {
    clearTimeout(this.firstWord);
    this.events?.close();
    this.events = null;
  }

  async #poll() {
    if (this.isClosed) {
      return;
    }
    if (Date.now() > this.streamAgainAt) {
      this.failures = FAILURES_BEFORE_POLLING - 1;
      this.#stream();
      return;
    }
    try {
      const answer = await fetch(this.#address(this.addresses.news));
      if (answer.status === 401) {
        this.#signedOut();
        return;
      }
      if (!answer.ok) {
        throw new Error(`status ${answer.status}`);
      }
      this.#told(await answer.json());
      this.on.status("live");
    } catch {
      this.on.status("offline");
    }
    this.pollTimer = setTimeout(() => this.#poll(), POLL_MS);
  }

  #told({ cursor, hints, resync }) {
    this.cursor = String(cursor);
    if (resync) {
      this.on.resync(this.cursor);
    }
    hints.forEach((text) => this.on.hint(JSON.parse(text), this.cursor));
  }

  #signedOut() {
    this.close();
    this.on.status("signed-out");
  }

  #address(base) {
    const params = new URLSearchParams({ topics: this.topics.join(",") });
    if (this.cursor) {
      params.set("since", this.cursor);
    }
    return `${base}?${params}`;
  }
}
