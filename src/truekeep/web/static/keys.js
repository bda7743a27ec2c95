// Keys, live search and news of changes. Every page works without this file.
"use strict";
(() => {
  const plain = /^(button|checkbox|radio|reset|submit)$/; // inputs that nobody types into
  const editing = (node) => node && (/^(TEXTAREA|SELECT)$/.test(node.tagName) || (node.tagName === "INPUT" && !plain.test(node.type)));
  // A key that is held down, or pressed twice, must not decide on the page that comes next.
  const changes = (node) => Boolean(node.form && node.form.method === "post");
  const early = 400; // milliseconds
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const go = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.contains(document.activeElement) || row === document.activeElement);
    const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + step))];
    const target = next.querySelector("a, button, input") || next;
    if (target === next) next.tabIndex = -1;
    target.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  let prefix = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape" && editing(document.activeElement)) { document.activeElement.blur(); return; }
    if (editing(document.activeElement) || document.querySelector("dialog[open]")) return;
    const key = prefix ? `${prefix} ${event.key}` : event.key;
    prefix = "";
    if (key === "g") { prefix = "g"; return; }
    if (key === "?") { const help = document.getElementById("keys"); if (help && !help.open) help.showModal(); event.preventDefault(); return; }
    if (key === "/") { const box = document.querySelector("input[type=search]"); if (box) box.focus(); else location.href = "/search"; event.preventDefault(); return; }
    if (key === "j" || key === "k") { go(key === "j" ? 1 : -1); event.preventDefault(); return; }
    if (key === "v") {
      const row = document.activeElement && document.activeElement.closest("[data-row]");
      const box = row && row.querySelector("input[type=checkbox]");
      if (box) { box.click(); event.preventDefault(); return; }
    }
    const wanted = [...document.querySelectorAll("[data-key]")].find((node) => node.dataset.key === key && !node.disabled);
    if (!wanted) return;
    event.preventDefault();
    if (editing(wanted)) wanted.focus();
    else if (!event.repeat && !(changes(wanted) && performance.now() < early)) wanted.click();
  });

  // Search as you type: the same page, only its results.
  const form = document.querySelector("form[data-live]");
  const place = form && document.getElementById(form.dataset.live);
  if (form && place) {
    let timer = 0, number = 0;
    const ask = async () => {
      const mine = ++number;
      const query = new URLSearchParams(new FormData(form));
      history.replaceState(null, "", `${form.action.split("?")[0]}?${query}`);
      query.set("fragment", "1");
      try {
        const answer = await fetch(`${form.action.split("?")[0]}?${query}`, { headers: { "X-Fragment": "1" } });
        const text = await answer.text();
        if (mine !== number || !answer.ok) return;
        place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
      } catch { /* the button still works */ }
    };
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 150); });
  }

  for (const back of document.querySelectorAll("[data-back]")) {
    back.addEventListener("click", (event) => { if (history.length > 1) { event.preventDefault(); history.back(); } });
  }

  // News of changes: never while somebody writes; the page only says so.
  const news = document.getElementById("changed");
  if (news && window.EventSource) {
    const start = () => {
      const stream = new EventSource(`/events?at=${encodeURIComponent(decodeURIComponent(location.pathname))}`);
      stream.addEventListener("changed", () => { news.hidden = false; });
      stream.addEventListener("full", () => stream.close());
      addEventListener("pagehide", () => stream.close(), { once: true });
    };
    if (document.visibilityState === "visible") start();
    else document.addEventListener("visibilitychange", start, { once: true });
  }
})();
