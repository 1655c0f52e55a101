/** Which replica of a server that is scaled out the views show. */

import { h } from "../base/dom.js";
import { setChoices } from "../parts/fields.js";

/** A select that is there where there are replicas. */
export function replicaSelect(feed) {
  const select = h("select", { "aria-label": "Replica", onchange: () => feed.followReplica(select.value) });
  const update = () => {
    select.hidden = feed.replicas.length === 0;
    setChoices(
      select,
      feed.replicas.map((name) => [name]),
    );
    select.value = feed.replica;
  };
  feed.addEventListener("replicas", update);
  update();
  return select;
}
