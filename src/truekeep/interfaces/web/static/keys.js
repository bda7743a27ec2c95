// Keys, live search and news of changes. Every page works without this file.
"use strict";
(() => {
  const base = document.documentElement.dataset.base || ""; // where this site begins
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
    if (key === "/") { const box = document.querySelector("input[type=search]"); if (box) box.focus(); else location.href = `${base}/search`; event.preventDefault(); return; }
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

  // A form is sent once, however often its button is clicked; and nobody leaves what they typed without being asked.
  let sent = 0;
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (sent && performance.now() - sent < 3000) event.preventDefault();
    else sent = performance.now();
  });
  addEventListener("pageshow", () => { sent = 0; });
  const isTyped = (node) => node.value !== node.defaultValue || "typed" in node.dataset;
  addEventListener("beforeunload", (event) => {
    if (!sent && [...document.querySelectorAll("form[method=post] textarea")].some(isTyped)) event.preventDefault();
  });

  // Search as you type: the same page, only its results.
  const form = document.querySelector("form[data-live]");
  const place = form && document.getElementById(form.dataset.live);
  if (form && place) {
    let timer = 0, number = 0;
    const lost = () => {
      const told = document.createElement("p");
      told.className = "problem";
      told.setAttribute("role", "status");
      told.textContent = "This was not answered. The button asks again, and tells why.";
      place.replaceChildren(told);
    };
    const ask = async () => {
      const mine = ++number;
      const query = new URLSearchParams(new FormData(form));
      history.replaceState(null, "", `${form.action.split("?")[0]}?${query}`);
      query.set("fragment", "1");
      try {
        const answer = await fetch(`${form.action.split("?")[0]}?${query}`, { headers: { "X-Fragment": "1" } });
        const text = await answer.text();
        if (mine !== number) return;
        if (answer.ok) place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
        else lost();
      } catch { if (mine === number) lost(); }
    };
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 150); });
  }

  for (const back of document.querySelectorAll("[data-back]")) {
    back.addEventListener("click", (event) => { if (history.length > 1) { event.preventDefault(); history.back(); } });
  }

  // News of changes: the page only says so. Asked for while somebody looks; a stream would hold a connection of six.
  const changed = document.getElementById("changed"), away = document.getElementById("away");
  if (changed && away && "news" in changed.dataset) {
    const every = 1000 * Number(changed.dataset.seconds); // milliseconds
    let timer = 0, first = changed.dataset.news, failed = 0; // first: as memory was before the page was made
    const ask = async () => {
      clearTimeout(timer);
      if (document.visibilityState !== "visible") return;
      try {
        const answer = await fetch(`${base}/news?at=${encodeURIComponent(location.pathname)}`);
        const word = answer.ok ? await answer.text() : "";
        failed = answer.ok ? 0 : 2;
        if (word && first && word !== first) changed.hidden = false;
        first = first || word;
      } catch { failed += 1; } // once may be a page that is being left
      away.hidden = failed < 2;
      timer = setTimeout(ask, every);
    };
    document.addEventListener("visibilitychange", ask);
    ask();
  }
})();
