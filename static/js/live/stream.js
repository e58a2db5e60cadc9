/* Live hints for pages: `subscribe(["run:ID", "runs"], (hint) => ...)`.
   A hint is { kind, topic, data }; kind "resync" means that some were missed: fetch everything.
   One connection per browser: the tab that holds the lock "temper-live" listens for all and passes
   hints on. A hidden tab lets go and asks for nothing; when it is seen again it resyncs. Where the
   browser has no locks (plain http on another host) each visible tab has its own connection. */

import { drawPill } from "./pill.js";
import { Source } from "./source.js";

const ADDRESSES = { events: "/live/events", news: "/live/news" };
const SIGN_OF_LIFE_MS = 5000;
const LEADER_LOST_MS = 16_000;
const LOCK = "temper-live";

const me = `${Date.now()}-${Math.random()}`;
const handlers = new Map(); // handler -> Set of topics
const others = new Map(); // other tab -> its topics, as long as we lead
let channel = null;
let source = null;
let letGo = null; // ends our leadership, or our wait for it
let heardAt = 0;
let cursor = "";
let pulse = 0;
let isCaughtUp = false; // whether the pages have fetched since hints are heard

/** Hear about topics from now on; returns a function that ends it. */
export function subscribe(topics, handler) {
  handlers.set(handler, new Set(topics));
  start();
  tellTopics();
  extend();
  return () => {
    handlers.delete(handler);
    tellTopics();
    if (handlers.size === 0) {
      stop();
    }
  };
}

function start() {
  if (channel || handlers.size === 0 || document.hidden) {
    return;
  }
  channel = new BroadcastChannel(LOCK);
  channel.onmessage = ({ data }) => onMessage(data);
  heardAt = Date.now();
  isCaughtUp = false;
  pulse = setInterval(beat, SIGN_OF_LIFE_MS);
  setStatus("catching-up");
  compete();
  channel.postMessage({ type: "who-leads", from: me });
}

function stop() {
  clearInterval(pulse);
  letGo?.();
  letGo = null;
  if (source) {
    others.clear();
    source.close();
    source = null;
  }
  channel?.postMessage({ type: "topics", from: me, topics: [] });
  channel?.close();
  channel = null;
}

/** Wait for the lock and lead while we hold it; without locks lead at once, for ourselves. */
function compete() {
  if (!navigator.locks) {
    lead();
    return;
  }
  const abort = new AbortController();
  const held = new Promise((resolve) => {
    letGo = () => {
      abort.abort();
      resolve();
    };
  });
  navigator.locks
    .request(LOCK, { signal: abort.signal }, () => {
      lead();
      return held;
    })
    .catch(() => {}); // let go before the lock was ours
}

function lead() {
  if (!channel || source) {
    return;
  }
  connect();
  channel.postMessage({ type: "who-listens", from: me });
}

function connect() {
  source?.close();
  const topics = [...wanted()];
  source = new Source(ADDRESSES, topics, cursor, {
    hint: (hint, at) => pass({ type: "hint", hint, cursor: at }),
    resync: (at) => pass({ type: "resync", cursor: at }),
    status: (status) => pass({ type: "status", status }),
  });
}

/** Topics of all tabs. */
function wanted() {
  return new Set([...own(), ...[...others.values()].flat()]);
}

function own() {
  return new Set([...handlers.values()].flatMap((topics) => [...topics]));
}

/** Connect anew when a topic has come that the connection does not cover. */
function extend() {
  if (source && [...wanted()].some((topic) => !source.topics.includes(topic))) {
    connect();
  }
}

function tellTopics() {
  channel?.postMessage({ type: "topics", from: me, topics: [...own()] });
}

/** Something from our own connection: for us and, if we lead for them, for the other tabs. */
function pass(message) {
  if (navigator.locks) {
    channel?.postMessage(message);
  }
  onNews(message);
}

function onMessage(message) {
  if (message.type === "topics") {
    others.set(message.from, message.topics);
    extend();
  } else if (message.type === "who-listens") {
    tellTopics();
  } else if (message.type === "who-leads") {
    if (source) {
      pass({ type: "status", status: status() });
    }
  } else {
    heardAt = Date.now();
    onNews(message);
  }
}

function onNews(message) {
  cursor = message.cursor ?? cursor;
  if (message.type === "status") {
    setStatus(message.status);
  } else if (message.type === "resync") {
    resync();
  } else {
    for (const [handler, topics] of handlers) {
      if (topics.has(message.hint.topic)) {
        handler(message.hint);
      }
    }
  }
}

/** Leaders say that they live; followers who hear nothing help themselves. */
function beat() {
  if (source) {
    pass({ type: "status", status: status() });
  } else if (Date.now() - heardAt > LEADER_LOST_MS) {
    lead();
  }
}

function resync() {
  for (const handler of handlers.keys()) {
    handler({ kind: "resync", topic: "", data: {} });
  }
}

function status() {
  return document.documentElement.dataset.live ?? "catching-up";
}

/* What a page fetched before the connection stood may be old by now, so it fetches once more. */
function setStatus(word) {
  document.documentElement.dataset.live = word;
  drawPill(word);
  if (word === "live" && !isCaughtUp) {
    isCaughtUp = true;
    resync();
  }
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stop();
  } else if (handlers.size) {
    cursor = "";
    start();
  }
});
window.addEventListener("pagehide", stop);
window.addEventListener("pageshow", (event) => {
  if (event.persisted) {
    start();
  }
});
