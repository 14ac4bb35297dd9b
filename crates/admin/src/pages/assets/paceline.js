// A page asks for itself and takes over what changed; a replay is sent again for as long as there is more.
// Without this file every page works, and a person reloads.
"use strict";
(() => {
  const FRAGMENT = "x-paceline-fragment";
  // A page that gets no answer by then says so: old numbers must not look like new ones.
  const PATIENCE_MS = 5000;
  const page = () => document.getElementById("page");
  const state = document.getElementById("live-state");
  let asked = location.href, tag = null, timer = null, stopped = false, failures = 0, running = false;

  // --- Taking over -----------------------------------------------------------------------------------------------------------

  // Nodes that say the same stay as they are: focus, selection and what a person typed or ticked survive.
  function take(old, fresh) {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
      old.replaceWith(fresh);
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (old.hasAttribute("data-keep") && fresh.hasAttribute("data-keep")) return;
    takeAttributes(old, fresh);
    takeChildren(old, fresh);
  }

  function takeAttributes(old, fresh) {
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    for (const { name, value } of [...fresh.attributes]) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
  }

  // A row belongs to its key: a tick must never come to stand at another job.
  function takeChildren(old, fresh) {
    const keyed = new Map([...old.children].filter((child) => child.dataset.key).map((child) => [child.dataset.key, child]));
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      const key = next.dataset && next.dataset.key;
      const known = key ? keyed.get(key) : at && !(at.dataset && at.dataset.key) ? at : null;
      if (!known) {
        old.insertBefore(next, at);
      } else {
        if (known !== at) old.insertBefore(known, at);
        const after = known.nextSibling;
        take(known, next);
        at = after;
      }
    }
    while (at) {
      const after = at.nextSibling;
      at.remove();
      at = after;
    }
  }

  function show(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("page");
    if (!fresh) return false;
    const said = words();
    take(page(), document.adoptNode(fresh));
    document.title = page().dataset.title || document.title;
    const says = words();
    if (says && says !== said) document.getElementById("said").textContent = says;
    return true;
  }

  // Only what matters is read out, and only when it changes.
  const words = () => [...document.querySelectorAll("[data-say]")].map((each) => each.textContent.trim()).join(" ");

  async function ask(url, options = {}) {
    const headers = { [FRAGMENT]: "1", ...(options.headers || {}) };
    const answer = await fetch(url, { cache: "no-store", credentials: "same-origin", ...options, headers });
    // The session is over: the whole page leads to the sign-in.
    if (answer.status === 401 && page().dataset.live) location.reload();
    return answer;
  }

  // --- Live ------------------------------------------------------------------------------------------------------------------

  async function look() {
    if (stopped || running || document.hidden) return plan();
    try {
      const headers = tag ? { "if-none-match": tag } : {};
      const answer = await ask(asked, { headers, signal: AbortSignal.timeout(PATIENCE_MS) });
      if (answer.status === 200) {
        tag = answer.headers.get("etag");
        show(await answer.text());
      }
      failures = answer.ok || answer.status === 304 ? 0 : failures + 1;
    } catch {
      failures += 1;
    }
    plan();
  }

  function plan() {
    clearTimeout(timer);
    const every = Number(page().dataset.live);
    if (every) timer = setTimeout(look, Math.min(every * 2 ** failures, 15000));
    tell();
  }

  function tell() {
    if (!page().dataset.live) return state.replaceChildren("This page stands as it was asked for.");
    const label = stopped ? "Go on" : "Stop updates";
    let button = state.querySelector("button");
    if (!button) {
      button = Object.assign(document.createElement("button"), { type: "button", className: "link" });
      button.addEventListener("click", () => { stopped = !stopped; look(); });
      state.replaceChildren(document.createElement("span"), " ", button);
    }
    const told = failures > 0 ? "No answer: these numbers are old. Asking again." : stopped ? "Stopped." : "Live.";
    if (button.textContent !== label) button.textContent = label;
    if (state.firstChild.textContent !== told) state.firstChild.textContent = told;
    state.firstChild.className = failures > 0 ? "late" : "";
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });

  // --- A replay --------------------------------------------------------------------------------------------------------------

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-run]")) return;
    event.preventDefault();
    run(event.target);
  });
  document.addEventListener("click", (event) => {
    if (event.target.matches("[data-stop]")) running = false;
  });

  async function run(form) {
    running = true;
    while (form && running) {
      form.querySelectorAll("button").forEach((each) => { each.hidden = !each.matches("[data-stop]"); });
      try {
        const answer = await ask(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
        if (!show(await answer.text())) break;
        // A refusal stands where the order was sent to, which is no page to come back to.
        if (answer.redirected) asked = answer.url;
        history.replaceState(null, "", asked);
      } catch {
        document.getElementById("said").textContent = "No answer; what was moved is moved. Send it again.";
        break;
      }
      form = document.querySelector("form[data-run][data-more]");
    }
    running = false;
    document.querySelectorAll("form[data-run] button").forEach((each) => { each.hidden = each.matches("[data-stop]"); });
    tag = null;
    plan();
  }

  // --- At the start ----------------------------------------------------------------------------------------------------------

  // What was done is told until the page is left, and not again by a reload.
  const here = new URL(location.href);
  if (here.searchParams.has("told")) {
    here.searchParams.delete("told");
    history.replaceState(null, "", here);
  }
  plan();
})();
