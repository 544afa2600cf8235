"use strict";
// The page is complete without this: it adds sorting, picking a part, and the search.
(() => {
  document.documentElement.classList.add("scripting");

  const value = (cell) => {
    const number = parseFloat(cell.textContent.replace(/[,%]/g, ""));
    return Number.isNaN(number) ? cell.textContent : number;
  };
  const sort = (heading) => {
    const table = heading.closest("table"), body = table.tBodies[0];
    const rising = heading.getAttribute("aria-sort") === "descending";
    for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const rows = [...body.rows].map((row) => [value(row.cells[heading.cellIndex]), row]);
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    rows.sort(([a], [b]) => (rising ? compare(a, b) : compare(b, a)));
    body.append(...rows.map(([, row]) => row));
  };
  for (const heading of document.querySelectorAll(".sortable thead th")) {
    if (heading.querySelector(".hidden")) continue;
    heading.tabIndex = 0;
    heading.addEventListener("click", () => sort(heading));
    heading.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(heading); }
    });
  }

  let picked = null;
  const pick = (part) => {
    picked = part === picked ? null : part;
    for (const item of document.querySelectorAll("[data-part]")) item.classList.toggle("picked", item.dataset.part === picked);
    for (const button of document.querySelectorAll(".pick")) {
      button.setAttribute("aria-pressed", String(button.closest("[data-part]").dataset.part === picked));
    }
    for (const band of document.querySelectorAll('.codes [id^="codes-"]')) {
      band.classList.toggle("faded", picked !== null && band.id !== `codes-${picked}`);
    }
  };
  for (const item of document.querySelectorAll(".pick, .key, tr[data-part]")) {
    item.addEventListener("click", (event) => {
      if (!event.target.closest("a")) pick(item.closest("[data-part]").dataset.part);
    });
  }

  const source = document.getElementById("search-data");
  if (!source) return;
  const { mode, names, weights, rank, signed } = JSON.parse(source.textContent);
  const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
  const levels = new DataView(bytes.buffer);
  const lowered = names.map((name) => name.toLowerCase());
  const weight = (row, part) => levels.getUint16(2 * (row * rank + part), true) / 65535;
  const matches = document.getElementById("matches");
  const cell = (kind, text) => Object.assign(document.createElement(kind), { textContent: text });
  const MOST = 20;

  const search = (text) => {
    const wanted = text.trim().toLowerCase();
    matches.replaceChildren();
    if (!wanted) return;
    const hits = lowered.flatMap((name, row) => (name.includes(wanted) ? [row] : []));
    hits.sort((a, b) => (lowered[b] === wanted) - (lowered[a] === wanted) || lowered[a].length - lowered[b].length || a - b);
    const table = document.createElement("table");
    table.createCaption().textContent = hits.length
      ? `${hits.length} found${hits.length > MOST ? `, ${MOST} shown` : ""}; ${signed ? "absolute " : ""}weights in percent of the largest in each part`
      : `no ${mode} with "${text}"`;
    table.caption.className = "note";
    const head = table.createTHead().insertRow();
    head.append(cell("th", mode), ...Array.from({ length: rank }, (_, part) => cell("th", String(part + 1))));
    const body = table.createTBody();
    for (const row of hits.slice(0, MOST)) {
      const line = body.insertRow();
      line.append(cell("th", names[row]));
      for (let part = 0; part < rank; part++) {
        const share = weight(row, part), data = cell("td", share ? (100 * share).toFixed(share < 0.0995 ? 1 : 0) : "");
        data.className = "number";
        data.style.background = `color-mix(in srgb, var(--blue) ${Math.round(45 * share)}%, transparent)`;
        line.append(data);
      }
    }
    if (hits.length) matches.append(table);
    else matches.append(table.caption ? cell("p", table.caption.textContent) : "");
  };
  document.getElementById("search").addEventListener("input", (event) => search(event.target.value));
})();
