/* Words for states that hints name: the same as webapp.ui.wording.STATES. */

import { t } from "./texts.js";

const WORDS = {
  draft: t("draft"),
  queued: t("queued"),
  starting: t("starting"),
  running: t("running"),
  pausing: t("pausing"),
  paused: t("paused"),
  stopping: t("stopping"),
  stopped: t("stopped"),
  succeeded: t("succeeded"),
  failed: t("failed"),
  lost: t("lost"),
  deleted: t("deleted"),
  waiting: t("waiting"),
  done: t("done"),
  cancelled: t("cancelled"),
};

/** The word for a state; an unknown one is its own word. */
export function stateOf(state) {
  return WORDS[state] ?? state;
}
