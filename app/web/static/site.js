// Runs in the head, before the first paint: the theme must be known by then. The rest waits for the document.
(() => {
  "use strict";
  const root = document.documentElement;
  const THEMES = ["system", "light", "dark"];
  root.classList.add("js");

  const remembered = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // storage may be refused; the theme then lasts for the page
    }
  };
  const show = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  show(remembered());

  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const typing = (element) => element && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));

  function themeSwitch(button) {
    const name = () => {
      const now = root.dataset.theme || "system";
      button.textContent = `Theme: ${now}`;
      button.setAttribute("aria-label", `Theme: ${now}. Change`);
    };
    button.addEventListener("click", () => {
      const next = THEMES[(THEMES.indexOf(root.dataset.theme || "system") + 1) % THEMES.length];
      show(next);
      try {
        localStorage.setItem("theme", next);
      } catch {
        // see above
      }
      name();
    });
    name();
  }

  async function copy(button) {
    const code = button.closest("figure").querySelector("pre, .rows");
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(code.innerText.replace(/\n$/, ""));
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = before), 1600);
  }

  function wrap(button) {
    const on = button.closest("figure").classList.toggle("wrap");
    button.setAttribute("aria-pressed", String(on));
  }

  // A request that a newer one makes pointless is dropped, and so is its late answer.
  function latest() {
    let running = null;
    return async (url, headers) => {
      running?.abort();
      running = new AbortController();
      const answer = await fetch(url, { signal: running.signal, headers });
      if (!answer.ok) throw new Error(answer.status);
      return answer.text();
    };
  }

  function debounced(run, delay) {
    let timer;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(run, delay);
    };
  }

  // The list is fetched as the page it is, and its results are put in place: one template for both ways.
  function instantSearch(form) {
    const input = form.elements.q;
    const load = latest();
    let shown = location.search;
    const go = async (url, push) => {
      let text;
      try {
        text = await load(url, { accept: "text/html" });
      } catch (error) {
        if (error.name !== "AbortError") location.assign(url);
        return;
      }
      const page = new DOMParser().parseFromString(text, "text/html");
      const fresh = page.getElementById("results");
      const open = all("#results details").map((d) => [d.querySelector("summary").textContent, d.open]);
      const row = all("#results a.hit").indexOf(document.activeElement);
      document.getElementById("results").replaceWith(document.adoptNode(fresh));
      if (row >= 0) all("#results a.hit")[row]?.focus(); // a late answer does not take the reader's place away
      for (const details of all("#results details")) {
        const was = open.find(([name]) => name === details.querySelector("summary").textContent);
        if (was) details.open = was[1];
      }
      all("input[type=hidden]", form).forEach((field) => field.remove());
      all("form[data-instant] input[type=hidden]", page).forEach((field) => form.append(document.adoptNode(field)));
      document.title = page.title;
      history[push ? "pushState" : "replaceState"](null, "", url);
      shown = location.search;
    };
    const address = () => {
      const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
      const query = new URLSearchParams(pairs).toString();
      return form.getAttribute("action") + (query ? `?${query}` : "");
    };
    input.addEventListener("input", debounced(() => go(address(), false), 140));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      go(address(), true);
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest("#results .facets a, #results .chips a");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      go(link.getAttribute("href"), true).then(() => {
        const same = all("#results .facets a").find((a) => a.firstElementChild.textContent === link.firstElementChild?.textContent);
        (same || input).focus();
      });
    });
    // A jump to a section is no other list; Back to another list is.
    addEventListener("popstate", () => {
      if (location.search !== shown) location.reload();
    });
  }

  // Suggestions under the one box; what was pasted as a block is left to the button.
  function suggest(box) {
    const list = document.getElementById("suggestions");
    const load = latest();
    const run = async () => {
      const text = box.value.trim();
      if (text.length < 2 || text.length > 120 || text.includes("\n")) return list.replaceChildren();
      let found;
      try {
        found = JSON.parse(await load(`/api/suggestions?q=${encodeURIComponent(text)}`)).suggestions;
      } catch (error) {
        if (error.name !== "AbortError") list.replaceChildren();
        return;
      }
      const items = document.createElement("ul");
      items.className = "list";
      items.dataset.list = "";
      for (const one of found) {
        const link = Object.assign(document.createElement("a"), { className: "hit", href: one.url });
        const words = Object.assign(document.createElement("span"), { className: "text", textContent: one.text });
        const meta = Object.assign(document.createElement("span"), { className: "meta" });
        meta.append(Object.assign(document.createElement("span"), { textContent: one.note || one.kind }));
        link.append(words, meta);
        const item = document.createElement("li");
        item.append(link);
        items.append(item);
      }
      list.replaceChildren(...(found.length ? [items] : []));
    };
    box.addEventListener("input", debounced(run, 140));
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !box.value.includes("\n")) {
        event.preventDefault();
        box.form.requestSubmit();
      }
    });
  }

  function step(by) {
    const links = all("[data-list] a.hit, [data-list] a[data-hit]").filter((link) => link.offsetParent);
    if (!links.length) return;
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const dialog = document.getElementById("keys");
    if (event.key === "Escape" && typing(event.target)) event.target.blur();
    if (typing(event.target) || dialog.open) return;
    if (event.key === "/") {
      const field = document.querySelector("main [data-focus]") || document.querySelector("[data-focus]");
      if (field) {
        event.preventDefault();
        field.focus();
        field.select();
      }
    } else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "?") dialog.showModal();
  }

  document.addEventListener("DOMContentLoaded", () => {
    all("[data-theme-switch]").forEach(themeSwitch);
    all("form[data-instant]").forEach(instantSearch);
    all("[data-suggest]").forEach(suggest);
    document.addEventListener("keydown", keys);
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button?.matches("[data-copy]")) copy(button);
      else if (button?.matches("[data-wrap]")) wrap(button);
      else if (button?.matches("[data-help]")) document.getElementById("keys").showModal();
    });
  });
})();
