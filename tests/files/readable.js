// Whether text can be told from what is behind it, everything has a name, and nothing points nowhere.
(seen) => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    const over = (under, [r, g, b, a]) => [r, g, b].map((c, i) => (c * a + under[i] * (255 - a)) / 255);
    return layers.reverse().reduce(over, [255, 255, 255]);
  };
  seen.faint = []; seen.texts = 0;
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, element = text.parentElement;
    if (!text.textContent.trim() || !element.getClientRects().length || element.closest("script, style, .hidden")) continue;
    const style = getComputedStyle(element);
    const ink = rgba(element.closest("svg") && element.tagName === "text" ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
    seen.texts++;
    if ((a + 0.05) / (b + 0.05) < 4.5) seen.faint.push([text.textContent.trim().slice(0, 40), (a + 0.05) / (b + 0.05)]);
  }
  const all = (query) => [...document.querySelectorAll(query)];
  seen.nameless = [
    ...all("input").filter((e) => !e.labels.length),
    ...all("button, a").filter((e) => !e.textContent.trim()),
    ...all("img").filter((e) => !e.hasAttribute("alt")),
    ...all("main svg").filter((e) => e.getAttribute("role") !== "img" || !e.getAttribute("aria-label")),
    ...all("thead th").filter((e) => !e.getAttribute("scope") || !e.textContent.trim()),
    ...all("table").filter((e) => !e.caption && !e.closest("#matches")),
  ].map((e) => e.outerHTML.slice(0, 80));
  seen.doubled = all("[id]").map((e) => e.id).filter((id, i, ids) => ids.indexOf(id) !== i);
  seen.dangling = all("svg use, nav a, tbody a").map((e) => (e.getAttribute("href") || e.getAttribute("xlink:href")))
    .filter((href) => !document.querySelector(CSS.supports("selector(a)") ? "#" + CSS.escape(href.slice(1)) : href));
  seen.clipped = all("svg [clip-path]").map((e) => /#([^)"]+)/.exec(e.getAttribute("clip-path"))[1]).filter((id) => !document.getElementById(id));
  seen.width = [document.documentElement.scrollWidth, window.innerWidth];
  seen.headings = all("h1, h2, h3, h4").map((e) => e.tagName);
  seen.ink = getComputedStyle(document.body).color;
  seen.owned = window.owned || 0;
  seen.unloaded = all("img").filter((e) => !e.complete || !e.naturalWidth).length;
}
