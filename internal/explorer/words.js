// What a page says where nothing can be drawn.

/** Says in words what cannot be drawn. */
function showText(data, reason) {
  const box = byId("text");
  const table = (head, rows) => {
    const t = make("table");
    const row = (cells, tag) => {
      const r = make("tr");
      r.append(...cells.map((c) => make(tag, "", String(c))));
      return r;
    };
    t.append(row(head, "th"), ...rows.map((r) => row(r, "td")));
    return t;
  };
  box.append(make("p", "", `${reason} The points cannot be drawn without it; another browser, or one with its graphics acceleration switched on, shows them. This is what the page holds.`));
  const facts = [...new Set(data.views.flatMap((v) => v.facts.map((f) => f[0])))];
  box.append(make("h2", "", "Embeddings of " + points(data.n)));
  box.append(table(["view", ...facts, "width × height"], data.views.map((v, k) => [
    v.name || k,
    ...facts.map((name) => v.facts.find((f) => f[0] === name)?.[1] ?? ""),
    v.low.map((low, k) => ((v.high[k] - low) * v.unit).toPrecision(3)).join(" × "),
  ])));
  if (data.classes) {
    const counts = new Array(data.classes.length + 1).fill(0);
    for (const c of data.category) counts[c]++;
    box.append(make("h2", "", "Classes"));
    box.append(table(["class", "points"], counts.map((n, k) => [data.classes[k]?.name ?? data.noLabel, grouped(n)]).filter((r) => r[1] !== "0")));
  }
  box.hidden = false;
  document.body.classList.add("no-side");
  for (const id of ["loading", "points", "marks", "scale", "zoom", "search"]) byId(id).hidden = true;
  for (const button of document.querySelectorAll(".tools button")) button.hidden = true;
  byId("count").textContent = points(data.n);
}
