"use strict";
// Keeps a page of the service current: when the service says that a model changed, the page is fetched again and its
// changed sections are replaced. Without this script the page works, but must be reloaded.
(() => {
  const { events, model, revision } = document.body.dataset;
  const state = document.getElementById("live");
  const text = document.getElementById("live-text");
  const PAUSE = 1500; // milliseconds between two updates
  const POLL = 15000; // while there is no stream of events
  let etag = null;
  let running = false;
  let wanted = false;
  let last = 0;
  let timer = 0;

  const say = (words, off) => {
    state.hidden = false;
    state.classList.toggle("off", Boolean(off));
    text.textContent = words;
  };
  const clock = () => new Date().toISOString().slice(11, 19) + " UTC";

  // A form that somebody fills in, and a section with the focus in a field, stay as they are.
  const isBusy = (section) => {
    const focus = document.activeElement;
    const typed = [...section.querySelectorAll("input:not([type=hidden])")].some((each) => each.value !== each.defaultValue);
    return typed || section.querySelector("details.act[open]") || (section.contains(focus) && focus.matches("input, select, textarea"));
  };

  const place = (element) => {
    if (!element || !element.closest) return null;
    const link = element.closest("a[href]");
    return link ? 'a[href="' + CSS.escape(link.getAttribute("href")) + '"]' : null;
  };

  const replace = (old, fresh) => {
    const focus = old.contains(document.activeElement) ? place(document.activeElement) : null;
    const unfolded = [...old.querySelectorAll("details[open][id]")].map((each) => each.id);
    const scrolled = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    const node = document.adoptNode(fresh);
    old.replaceWith(node);
    node.classList.add("changed");
    node.dispatchEvent(new CustomEvent("replaced", { bubbles: true }));
    node.querySelectorAll(".scroll").forEach((each, i) => { each.scrollLeft = scrolled[i] || 0; });
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
    enable(node);
    if (focus) node.querySelector(focus)?.focus();
  };

  const apply = (html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const before = Number(document.getElementById("heading")?.dataset.alarms || 0);
    for (const fresh of [...page.querySelectorAll("[data-live]")]) {
      const old = document.getElementById(fresh.id);
      const source = fresh.outerHTML;
      if (old && sources.get(fresh.id) !== source && !isBusy(old)) {
        sources.set(fresh.id, source);
        replace(old, fresh);
      }
    }
    document.title = page.title;
    const heading = document.getElementById("heading");
    const now = Number(heading?.dataset.alarms || 0);
    if (now > before) document.getElementById("announce").textContent = heading.querySelector(".headline").textContent;
  };

  const update = async () => {
    if (running) { wanted = true; return; }
    running = true;
    wanted = false;
    last = Date.now();
    try {
      const headers = { "X-Calibrant-Live": "1" };
      if (etag) headers["If-None-Match"] = etag;
      const answer = await fetch(location.href, { headers, cache: "no-store", credentials: "same-origin" });
      if (answer.ok) {
        etag = answer.headers.get("ETag");
        apply(await answer.text());
      }
      // The page is drawn a tenth of the time at most; there may be newer rows after a pause.
      const pause = answer.headers.get("Calibrant-Refresh");
      if (pause !== null) timer = setTimeout(update, 1000 * Number(pause) + 200);
      if (answer.ok || answer.status === 304) say("Live, updated " + clock());
      else say("Not updated: the service answered " + answer.status, true);
    } catch (error) {
      say("No connection since " + clock(), true);
    }
    running = false;
    if (wanted) plan();
  };
  const plan = () => {
    clearTimeout(timer);
    timer = setTimeout(update, Math.max(150, PAUSE - (Date.now() - last)));
  };

  // The page as the server sent it: sections are compared with it, not with what scripts changed.
  const sources = new Map();
  for (const each of document.querySelectorAll("[data-live]")) sources.set(each.id, each.outerHTML);

  // Forms that acknowledge or silence need this script.
  const enable = (root) => {
    for (const part of root.querySelectorAll("details.act")) {
      part.hidden = false;
      const form = part.querySelector("form");
      form.addEventListener("submit", (event) => { event.preventDefault(); send(form); });
    }
  };
  const send = async (form) => {
    const fields = Object.fromEntries(new FormData(form));
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    if (fields.token) headers.Authorization = "Bearer " + fields.token;
    delete fields.token;
    const output = form.querySelector("output");
    output.textContent = "Sending …";
    try {
      const answer = await fetch(form.action, { method: "POST", headers, body: JSON.stringify(fields), credentials: "omit" });
      if (answer.ok) {
        form.reset();
        output.textContent = "Done.";
        form.closest("details").open = false;
        document.activeElement.blur();
        update();
      } else {
        const problem = await answer.json().catch(() => ({}));
        output.textContent = problem.detail || "The service answered " + answer.status + ".";
      }
    } catch (error) {
      output.textContent = "No connection to the service. Try again.";
    }
  };
  enable(document);
  if (!events) return;

  let poll = 0;
  const known = new Map();
  const connect = () => {
    const stream = new EventSource(events);
    stream.addEventListener("open", () => { clearInterval(poll); poll = 0; say("Live"); });
    stream.addEventListener("revision", (event) => {
      const change = JSON.parse(event.data);
      const first = !known.has(change.model);
      known.set(change.model, change.revision);
      if (model !== undefined && change.model !== model) return;
      const total = model === undefined ? [...known.values()].reduce((sum, each) => sum + each, 0) : change.revision;
      if (first && String(total) === revision) { clearTimeout(timer); return; } // the page as it was sent
      plan();
    });
    stream.addEventListener("error", () => {
      say("Connecting …", true);
      if (stream.readyState === EventSource.CLOSED && !poll) poll = setInterval(() => { if (!document.hidden) update(); }, POLL);
    });
  };
  connect();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) plan(); });
})();
