// Sort, pick a part, switch, and search, as a person would.
(seen) => {
  const all = (query) => [...document.querySelectorAll(query)];
  const shown = (e) => e.getClientRects().length > 0;
  const column = (i) => all("#found .sortable tbody tr").map((row) => row.cells[i].textContent);
  const head = (text) => all("#found .sortable thead th").find((e) => e.textContent === text);
  head("sparsity").click(); seen.falling = column(head("sparsity").cellIndex);
  head("sparsity").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" })); seen.rising = column(head("sparsity").cellIndex);
  seen.sorted = head("sparsity").getAttribute("aria-sort");

  all(".pick")[1].click();
  seen.pressed = all(".pick").map((e) => e.getAttribute("aria-pressed"));
  seen.faded = all(".faded").map((e) => e.id);
  seen.picked = all("tr.picked th").map((e) => e.textContent);
  all(".pick")[1].click(); seen.after = all("[data-part].picked, .faded").length;
  all(".key")[0].click(); seen.by_key = all(".card.picked").map((e) => e.id);

  seen.sides = all(".card .size").filter(shown).length, seen.specific = all(".card .specificity").filter(shown).length;
  document.querySelector('input[value="specificity"]').click();
  seen.sides_after = all(".card div.size").filter(shown).length;
  seen.specific_after = all(".card div.specificity").filter(shown).length;

  const search = (text) => {
    const box = document.getElementById("search");
    box.value = text; box.dispatchEvent(new Event("input"));
    return all("#matches tbody tr").map((row) => [...row.cells].map((cell) => cell.textContent));
  };
  seen.one = search("word 17"); seen.hostile = search("<script>"); seen.none = search("no such word").length;
  seen.said = document.getElementById("matches").textContent;
  seen.many = search("WORD").length;
  seen.owned = window.owned || 0;
}
