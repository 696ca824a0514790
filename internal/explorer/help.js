// Explanations: what the figures below the points mean, and a hint at the first visit.

/** Has a card say what a figure means while its row is pointed at, focused or tapped. */
function explain(row, text) {
  const card = byId("meaning"), term = row.firstElementChild;
  const button = make("button", "quiet", term.textContent);
  button.type = "button";
  button.setAttribute("aria-describedby", "meaning");
  term.replaceChildren(button);
  const show = () => {
    card.textContent = text;
    card.hidden = false;
    const at = row.getBoundingClientRect(), { width, height } = card.getBoundingClientRect();
    card.style.left = within(at.left, 8, Math.max(8, innerWidth - width - 8)) + "px";
    card.style.top = Math.max(8, at.top - height - 8) + "px";
  };
  const hide = () => { card.hidden = true; };
  row.addEventListener("pointerenter", (e) => { if (e.pointerType === "mouse") show(); });
  row.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") hide(); });
  row.addEventListener("click", show);
  button.addEventListener("focus", show);
  button.addEventListener("blur", hide);
  button.addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || card.hidden) return;
    hide();
    e.stopPropagation();
  });
  // Not every browser gives the focus to a button that is tapped.
  document.addEventListener("pointerdown", (e) => { if (!row.contains(e.target)) hide(); });
}

/** Shows how to begin, once in a browser, until something is done. */
function showHint() {
  const box = byId("hint"), key = "cne-hint";
  try { if (localStorage.getItem(key)) return; } catch { /* then once in a page */ }
  box.hidden = false;
  const events = ["pointerdown", "wheel", "keydown"];
  const done = (e) => {
    if (e.key === "Tab" || e.type === "pointerdown" && box.contains(e.target)) return;
    if (box.contains(document.activeElement)) byId("points").focus(); // its button goes
    box.parentElement.style.minHeight = box.getBoundingClientRect().height + "px"; // or the map would move
    box.hidden = true;
    for (const name of events) document.removeEventListener(name, done, true);
    try { localStorage.setItem(key, "seen"); } catch { /* see above */ }
  };
  for (const name of events) document.addEventListener(name, done, { capture: true, passive: true });
  byId("hint-close").addEventListener("click", done);
}
