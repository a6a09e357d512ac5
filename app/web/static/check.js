// The check page: stages tick off as they pass, examples fill the form, Share puts the command into the address.
(() => {
  "use strict";
  const form = document.querySelector("form[data-check]");
  const out = document.getElementById("answer");
  if (!form || !window.ReadableStream) return;
  const fields = ["command", "engine", "hardware", "gpus"];
  let running = null;

  const line = (kind, text, note) => {
    const item = document.createElement("li");
    item.className = kind.replace(" ", "-");
    item.append(text, " ");
    const small = document.createElement("span");
    small.className = "muted small";
    small.textContent = note;
    item.append(small);
    return item;
  };
  const say = (text, kind) => {
    const p = document.createElement("p");
    p.className = kind;
    p.textContent = text;
    return p;
  };

  async function* events(answer) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const [name, data] = text.slice(0, end).split("\n").map((part) => part.slice(part.indexOf(": ") + 2));
        yield [name, JSON.parse(data)];
      }
    }
  }

  async function check() {
    running?.abort();
    const mine = (running = new AbortController());
    const state = say("Running SGLang's start-up", "muted");
    const stages = document.createElement("ol");
    stages.className = "stages";
    out.replaceChildren(state, stages);
    try {
      const answer = await fetch("/check", {
        method: "POST",
        signal: mine.signal,
        headers: { accept: "text/event-stream" },
        body: new URLSearchParams(new FormData(form)),
      });
      if (!answer.ok) {
        const problem = (answer.headers.get("content-type") || "").includes("json") ? await answer.json() : { detail: answer.statusText };
        out.replaceChildren(say(problem.detail, "notice no"));
        return;
      }
      for await (const [name, data] of events(answer)) {
        if (name === "state") state.textContent = data.state === "warming up" ? "The engine is warming up; this takes some seconds once" : "Waiting for a free worker";
        else if (name === "stage") {
          const item = line(data.outcome, data.name, `${Math.round(data.ms)} ms`);
          const before = [...stages.children].find((other) => other.dataset.stage === data.name); // told again as it goes on
          item.dataset.stage = data.name;
          before ? before.replaceWith(item) : stages.append(item);
        }
        else if (name === "tried") {
          const word = { pass: "starts", fail: "refused" }[data.verdict] || "not decided";
          document.querySelector("[data-tried]")?.append(line(data.verdict, data.edit, word));
        }
        else if (name === "fixes") document.getElementById("fixes").outerHTML = data.html; // rendered and escaped by the server
        else if (name === "problem") out.replaceChildren(say(`${data.title}. ${data.detail}`, "notice no"));
        else if (name === "answer") {
          out.innerHTML = data.html; // rendered and escaped by the server
          document.getElementById("verdict").focus({ preventScroll: true });
        }
      }
    } catch (error) {
      if (error.name !== "AbortError") out.replaceChildren(say("The server could not be reached.", "notice no"));
    }
  }

  form.addEventListener("submit", (event) => {
    if (event.submitter?.hasAttribute("formaction")) return; // another page's
    event.preventDefault();
    check();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.querySelector("[data-share]").addEventListener("click", async (event) => {
    const shared = new URLSearchParams(fields.map((name) => [name, form.elements[name].value]).filter(([, value]) => value));
    history.replaceState(null, "", `/check#${shared}`);
    try {
      await navigator.clipboard.writeText(location.href);
      event.target.textContent = "Address copied";
    } catch {
      event.target.textContent = "Address is in the address bar";
    }
    setTimeout(() => (event.target.textContent = "Share"), 2000);
  });

  // What came by the one box or by a shared address does not stay in the address of the page.
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("command")) {
    for (const name of fields) if (given.has(name)) form.elements[name].value = given.get(name);
    check();
  } else if (new URLSearchParams(location.search).has("command")) history.replaceState(null, "", "/check");
})();
