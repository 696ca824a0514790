// Search by label, name or row. What is typed lights up at once; the list
// offers what else it may mean.

const mostOffers = 8;

class Search {
  constructor(app) {
    this.app = app;
    this.input = byId("query");
    this.list = byId("found");
    this.offers = [];
    this.active = -1;
    this.lowNames = null; // the names in lower case, once they are searched
    if (app.data.hasNames) this.input.placeholder = app.data.columns.length ? "Search name, label or row" : "Search name or row";
    else if (!app.data.columns.length) this.input.placeholder = "Search row";
    this.input.addEventListener("input", () => this._typed());
    this.input.addEventListener("focus", () => { if (this.typed) this._open(true); });
    this.input.addEventListener("blur", () => this._open(false));
    this.input.addEventListener("keydown", (e) => this._key(e));
    byId("query-clear").addEventListener("click", () => { this.clear(); this.input.focus(); });
    // The field must not lose focus before the click comes.
    this.list.addEventListener("pointerdown", (e) => e.preventDefault());
  }

  get typed() { return this.input.value.trim(); }

  clear() {
    this.input.value = "";
    this._typed();
  }

  /** Searches once more, since the labels are others now, or names are there. */
  again() {
    if (!this.typed) return;
    this._find(this.typed);
    this._list();
  }

  _typed() {
    const text = this.typed;
    byId("query-clear").hidden = this.input.value === "";
    if (text === "") {
      this.offers = [];
      this._open(false);
      this._show(null);
      return;
    }
    this._find(text);
    this._list();
    this._open(true);
  }

  /** Finds what a text may mean: offers, and the rows that light up. */
  _find(text) {
    const { data, counts } = this.app;
    const low = text.toLowerCase();
    this.offers = [];
    let rows = null;
    if (data.classes) {
      const named = data.classes.map((c, k) => ({ k, name: c.name.toLowerCase() }));
      const exact = named.filter((c) => c.name === low);
      const similar = named.filter((c) => c.name !== low && c.name.includes(low));
      for (const c of [...exact, ...similar].slice(0, mostOffers)) {
        this.offers.push({ category: c.k, what: data.classes[c.k].name, how: points(counts[c.k]) });
      }
      const wanted = new Set((exact.length ? exact : similar).map((c) => c.k));
      if (wanted.size) rows = this._rows((i) => wanted.has(data.category[i]));
    }
    if (data.values && Number.isFinite(Number(text))) {
      const value = Number(text);
      const equal = this._rows((i) => data.values[i] === value);
      if (equal.length) {
        this.offers.push({ rows: equal, what: "label " + text, how: points(equal.length) });
        rows = equal;
      }
    }
    const row = /^(?:row\s*|#)?(\d+)$/i.exec(text)?.[1];
    if (row !== undefined && Number(row) < data.n) this.offers.push(this._offer(Number(row)));
    if (data.names) {
      this.lowNames = this.lowNames ?? data.names.map((name) => oneLine(name).toLowerCase());
      const named = this._rows((i) => this.lowNames[i].includes(low));
      if (named.length > 1) this.offers.push({ rows: named, what: `“${text}” in names`, how: points(named.length) });
      for (const i of named.slice(0, mostOffers)) this.offers.push({ ...this._offer(i), what: oneLine(data.names[i]) });
      if (named.length) rows = rows ? this._rows((() => { const both = new Set([...rows, ...named]); return (i) => both.has(i); })()) : named;
    }
    if (!rows && row !== undefined && Number(row) < data.n) rows = Uint32Array.of(Number(row));
    this._show(rows ?? new Uint32Array(0));
  }

  _offer(i) {
    const label = this.app.labelOf(i);
    return { row: i, what: "row " + i, how: label };
  }

  /** Returns the rows that a test lets through, in increasing order. */
  _rows(test) {
    const rows = [];
    for (let i = 0; i < this.app.data.n; i++) if (test(i)) rows.push(i);
    return Uint32Array.from(rows);
  }

  _show(rows) {
    byId("hits").textContent = rows ? grouped(rows.length) : "";
    this.app.setFound(rows);
  }

  _list() {
    this._activate(-1);
    this.list.replaceChildren(...this.offers.slice(0, 2 * mostOffers).map((offer, k) => {
      const item = make("li");
      item.id = "found-" + k;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      const dot = make("span", "dot");
      if (offer.row !== undefined) dot.style.background = this.app.inkOfRow(offer.row);
      else if (offer.category !== undefined) dot.style.background = this.app.ink(offer.category);
      item.append(dot, make("span", "what", offer.what), make("span", "how", offer.how));
      item.addEventListener("click", () => this._choose(offer));
      return item;
    }));
    if (!this.offers.length) {
      const nothing = make("li", "nothing", "Nothing found");
      nothing.setAttribute("role", "option");
      nothing.setAttribute("aria-disabled", "true");
      this.list.append(nothing);
    }
  }

  _open(open) {
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    if (!open) this._activate(-1);
  }

  _move(by) {
    const items = this.list.querySelectorAll("li:not(.nothing)");
    if (!items.length) return;
    this._activate((this.active + by + items.length + (this.active < 0 && by < 0 ? 1 : 0)) % items.length);
    reveal(items[this.active]);
  }

  /** Makes the offer at a place of the list that which Enter chooses, or none for −1. */
  _activate(k) {
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    this.active = k;
    if (k < 0) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    this.list.children[k].setAttribute("aria-selected", "true");
    this.input.setAttribute("aria-activedescendant", this.list.children[k].id);
  }

  _choose(offer) {
    this._open(false);
    if (offer.row !== undefined) {
      this._show(Uint32Array.of(offer.row));
      this.app.goTo(offer.row);
    } else if (offer.category !== undefined) {
      this.input.value = offer.what;
      this.app.reveal(offer.category);
      this._show(this._rows((i) => this.app.data.category[i] === offer.category));
    } else {
      this._show(offer.rows);
    }
  }

  _key(event) {
    if (event.isComposing) return; // Enter and the arrows are the input method's, as for kanji
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (this.list.hidden && this.typed) this._open(true);
      this._move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      if (!this.list.hidden && this.active >= 0) this._choose(this.offers[this.active]);
      else this.app.nextFound(event.shiftKey ? -1 : 1);
      this._open(false);
    } else if (event.key === "Escape") {
      if (this.list.hidden || !this.typed) {
        this.clear();
        this.input.blur();
        byId("points").focus();
      } else {
        this._open(false);
      }
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
