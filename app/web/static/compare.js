// The comparison page: a line a release as it ends, then the table that the server rendered.
(() => {
  "use strict";
  const form = document.querySelector("form[data-compare]");
  const out = document.getElementById("answer");
  if (!form || !window.ReadableStream) return;
  let running = null;

  const element = (name, text, kind = "") => {
    const made = document.createElement(name);
    made.className = kind;
    made.textContent = text;
    return made;
  };

  async function compare() {
    running?.abort();
    const mine = (running = new AbortController());
    const lines = element("ol", "", "stages");
    out.replaceChildren(element("p", "Running every release", "muted"), lines);
    try {
      const answer = await fetch("/check/compare", {
        method: "POST",
        signal: mine.signal,
        headers: { accept: "text/event-stream" },
        body: new URLSearchParams(new FormData(form)),
      });
      if (!answer.ok) {
        const problem = (answer.headers.get("content-type") || "").includes("json") ? await answer.json() : { detail: answer.statusText };
        out.replaceChildren(element("p", problem.detail, "notice no"));
        return;
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = "", part = await reader.read(); !part.done; part = await reader.read()) {
        text += part.value;
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
          const [name, json] = text.slice(0, end).split("\n").map((one) => one.slice(one.indexOf(": ") + 2));
          const data = JSON.parse(json);
          if (name === "release") lines.append(element("li", `${data.version}: ${{ pass: "starts", fail: "refused" }[data.verdict] || "not decided"}`, data.verdict));
          else if (name === "problem") out.replaceChildren(element("p", `${data.title}. ${data.detail}`, "notice no"));
          else {
            out.innerHTML = data.html; // rendered and escaped by the server
            document.getElementById("verdict").focus({ preventScroll: true });
          }
        }
      }
    } catch (error) {
      if (error.name !== "AbortError") out.replaceChildren(element("p", "The server could not be reached.", "notice no"));
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    compare();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
})();
