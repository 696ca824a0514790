// The view as the fragment of the page's address, so that a link shows the same: what
// differs from how the page begins.

const linkTime = 300; // milliseconds of rest after which the address follows

class Link {
  constructor(app) {
    this.app = app;
    const { data, camera, views } = app;
    const number = (text, low, high) => (text.trim() !== "" && Number(text) >= low && Number(text) <= high ? Number(text) : undefined);
    const short = (v) => String(Number(v.toFixed(7)));
    /** Each key: its text now, how it begins, and what to do with a text. */
    this.keys = [
      { key: "t", now: () => short(camera.t), first: "0", set: (v) => { app.player.stop(); app.setPlace(number(v, 0, views.length - 1) ?? 0); } },
      { key: "x", now: () => short(camera.x), first: "0", set: (v) => { camera.x = number(v, -1 - camera.reach, 1 + camera.reach) ?? 0; } },
      { key: "y", now: () => short(camera.y), first: "0", set: (v) => { camera.y = number(v, -1 - camera.reach, 1 + camera.reach) ?? 0; } },
      { key: "zoom", now: () => short(camera.zoom), first: "1", set: (v) => { camera.zoom = number(v, leastZoom / camera.reach, mostZoom) ?? 1; } },
      // What follows needs columns that are read late.
      { key: "color", late: true, now: () => data.columns[data.column]?.name ?? "", first: data.columns[0]?.name ?? "", set: (v) => {
        const k = Math.max(0, data.columns.findIndex((c) => c.name === v));
        if (!data.columns.length) return;
        byId("column").value = String(k);
        app.colourBy(k);
      } },
      { key: "scale", late: true, now: () => (app.scale && app.scale.kind !== app.scale.usual ? app.scale.kind : ""), first: "", set: (v) => app.scale?.set({ kind: v || app.scale.usual }) },
      { key: "range", late: true, now: () => app.scale?.range ?? "", first: "", set: (v) => { if (app.scale) app.scale.range = v; } },
      { key: "missing", late: true, now: () => (app.scale && !app.scale.missing ? "hidden" : ""), first: "", set: (v) => { if (v === "hidden") app.scale?.set({ missing: false }); } },
      { key: "names", late: true, now: () => app.mapNames.kind, first: app.mapNames.kind, set: (v) => { if (app.mapNames.kinds.includes(v)) app.mapNames.choose(v); } },
      // Names may have commas: one key for each class.
      { key: "hide", late: true, several: true, now: () => [...app.hidden].sort((a, b) => a - b).map((k) => app.nameOf(k)), set: (names) => {
        app.hidden.clear();
        for (let k = 0; k <= (data.classes?.length ?? -1); k++) if (app.counts[k] && names.includes(app.nameOf(k))) app.hidden.add(k);
      } },
      { key: "hide-points", late: true, several: true, now: () => [...app.hiddenKinds].sort().map((kind) => ["training", "held-out"][kind]), set: (names) => {
        app.hiddenKinds.clear();
        if (data.held) ["training", "held-out"].forEach((name, kind) => { if (names.includes(name)) app.hiddenKinds.add(kind); });
      } },
    ];
    window.addEventListener("hashchange", () => {
      if (location.hash.slice(1) === this.written) return;
      this.written = location.hash.slice(1);
      this._read(this.keys);
    });
    this.written = ""; // the fragment of what is shown
  }

  /** Shows what the address says when the page begins: first the place, and what is late in the end. */
  begin(late) {
    if (!late) this.written = location.hash.slice(1);
    if (location.hash.length > 1) this._read(this.keys.filter((k) => Boolean(k.late) === late));
    this.begun = late;
  }

  /** Shows what the address says of some keys; what it does not say is as the page begins. */
  _read(keys) {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const { key, several, first, set } of keys) set(several ? given.getAll(key) : given.get(key) ?? first);
    this.app.legend.update();
    this.app.visibilityChanged();
  }

  /** Has the address follow once the view is at rest. */
  later() {
    clearTimeout(this.timer);
    if (this.begun) this.timer = setTimeout(() => this.write(), linkTime);
  }

  write() {
    if (location.hash.slice(1) !== this.written) return; // the address is new, and will be read
    const now = new URLSearchParams();
    for (const { key, several, now: text, first } of this.keys) {
      if (several) text().forEach((v) => now.append(key, v));
      else if (text() !== first) now.set(key, text());
    }
    const fragment = now.toString();
    if (fragment === this.written) return;
    try {
      history.replaceState(null, "", fragment ? "#" + fragment : location.pathname + location.search);
      this.written = location.hash.slice(1);
    } catch { /* a browser allows only so many in a time */ }
  }
}
