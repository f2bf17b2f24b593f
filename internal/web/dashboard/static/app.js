"use strict";
// The pages work without this script. It shows times in the time zone of the reader, copies ids, and keeps a page up to date.

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function localTimes(within) {
  for (const t of within.querySelectorAll("time[datetime]")) {
    const at = new Date(t.dateTime);
    if (!isNaN(at)) {
      t.title = t.dateTime;
      t.textContent = clock.format(at);
    }
  }
}

// say tells a screen reader something, too.
function say(text, lost) {
  const line = document.getElementById("connection");
  line.textContent = text;
  line.classList.toggle("lost", Boolean(lost));
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    say("Copied " + button.dataset.copy);
  } catch {
    getSelection().selectAllChildren(button);
  }
});

// merge makes an element like another one, and changes as little as possible: what the reader has selected, opened or typed stays.
function merge(old, made) {
  if (made.dataset?.round && made.dataset.round === old.dataset.round) return; // the output of this round, to which the stream only adds
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const byId = new Map([...old.children].filter((c) => c.id).map((c) => [c.id, c]));
  let at = old.firstChild;
  for (const child of [...made.childNodes]) {
    const known = child.id && byId.get(child.id);
    if (known && known !== at) old.insertBefore(known, at), (at = known);
    if (at && at.nodeName === child.nodeName && (at.id || "") === (child.id || "")) {
      if (at.nodeType === Node.ELEMENT_NODE) at.isEqualNode(child) || merge(at, child);
      else if (at.data !== child.data) at.data = child.data;
      at = at.nextSibling;
    } else {
      old.insertBefore(child, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function show(html) {
  const made = new DOMParser().parseFromString(html, "text/html");
  for (const part of made.querySelectorAll("[data-live][id]")) {
    const old = document.getElementById(part.id);
    localTimes(part);
    if (old && !old.isEqualNode(part)) merge(old, part);
  }
  document.dispatchEvent(new Event("shown"));
}

// The output of a running round grows at its end. A reader at the end stays there, and for all others the text stays where it is.
const longestOutput = 64 << 10;
const output = () => document.getElementById("tail");
const atEnd = (of) => of.scrollHeight - of.scrollTop - of.clientHeight < 5;
const toEnd = (of) => (of.scrollTop = of.scrollHeight);

function grow(html, position) {
  const to = output();
  if (!to) return;
  const stays = !atEnd(to);
  to.querySelector("data")?.remove(); // the old position
  to.insertAdjacentHTML("beforeend", html);
  const height = to.scrollHeight;
  for (let extra = to.textContent.length - longestOutput; extra > 0; ) {
    const first = document.createTreeWalker(to, NodeFilter.SHOW_TEXT).nextNode();
    const cut = Math.min(extra, first.length);
    first.deleteData(0, cut);
    extra -= cut;
    while (!to.firstChild.textContent) to.firstChild.remove();
    if (!first.length) first.remove();
  }
  const at = document.createElement("data");
  at.value = position;
  to.append(at);
  if (stays) to.scrollTop -= height - to.scrollHeight;
  else toEnd(to);
}

// follow keeps the page up to date. The address of a page is also that of its stream.
function follow() {
  let lost = false;
  let last = new Date();
  const fresh = () => {
    last = new Date();
    if (lost) say("Connected again.");
    lost = false;
  };
  const away = () => {
    if (!lost) say("Connection lost. The page is as of " + clock.format(last) + ", and comes back by itself.", true);
    lost = true;
  };
  const open = () => {
    const at = output()?.querySelector("data")?.value; // the stream goes on there
    const stream = new EventSource(location.pathname + location.search + (at ? (location.search ? "&" : "?") + "at=" + at : ""));
    stream.addEventListener("main", (event) => { fresh(); show(event.data); });
    stream.addEventListener("output", (event) => { fresh(); grow(event.data, event.lastEventId); });
    stream.addEventListener("same", fresh);
    stream.addEventListener("old", away);
    stream.onerror = () => {
      away();
      if (stream.readyState === EventSource.CLOSED) setTimeout(again, 5000 + 5000 * Math.random()); // such as after a status of 503
    };
  };
  const again = async () => {
    try {
      const answer = await fetch(location.href, { method: "HEAD", redirect: "manual" });
      if (answer.type === "opaqueredirect") return say("You are logged out. Reload the page to log in.", true);
    } catch {} // the server is away
    open();
  };
  open();
}

localTimes(document);
if (output()) toEnd(output());
document.querySelector("form[data-submit]")?.requestSubmit();
if (document.querySelector("#connection[data-live]")) follow();
