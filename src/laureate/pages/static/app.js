"use strict";
/* One script for both shells: the local web, and one file that holds all pages. No library, no build step. */
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const remembered = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  if (remembered === "dark" || remembered === "light") root.dataset.theme = remembered;

  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector, within = document) => within.querySelector(selector);
  const visible = (element) => element.getClientRects().length > 0;
  const say = (text) => { const place = one("#said"); if (place) place.textContent = text; };
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  /* one file: what it holds beside the pages that stand in it; packed where there is much of it */
  let data = null;
  async function readData() {
    const place = one("#data");
    if (!place) return;
    let text = place.textContent;
    if (place.type === "application/gzip") {
      const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    }
    data = JSON.parse(text);
    one("main").append(...Object.keys(data.pages).map((name) => make("section", { class: "page", id: `/${name}`, "data-page": "", hidden: "" })));
  }
  /* a page that came packed is made when it is first wanted */
  function fill(page) {
    const name = page?.id.slice(1) ?? "";
    if (name in data.pages) { page.innerHTML = data.pages[name]; delete data.pages[name]; stillness(page); }
  }

  /* theme, copying, help */
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  function switchTheme() {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a private window forgets */ }
    say(`${root.dataset.theme} theme`);
  }
  async function copy(button) {
    const text = button.dataset.copy;
    try { await navigator.clipboard.writeText(text); } catch {
      const area = make("textarea"); area.value = text; document.body.append(area); area.select();
      document.execCommand("copy"); area.remove();
    }
    button.textContent = "copied"; say("copied");
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  }

  function hold(button, atEnd = false) {
    const held = button.getAttribute("aria-pressed") !== "true";
    for (const film of all("svg.film", button.closest("figure"))) {
      held ? film.pauseAnimations() : film.unpauseAnimations();
      if (atEnd) film.setCurrentTime(0.999 * parseFloat(one("animate", film)?.getAttribute("dur") ?? "0"));
    }
    button.setAttribute("aria-pressed", String(held)); button.textContent = held ? "play" : "stop";
  }

  /* films stand still, at their end, for who asked for less motion */
  function stillness(place) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) all("button.pause", place).forEach((button) => hold(button, true));
  }

  /* j and k walk through what can be opened */
  function step(direction) {
    const items = all("[data-item]").filter(visible);
    if (!items.length) return;
    const here = items.indexOf(document.activeElement);
    const next = items[Math.min(items.length - 1, Math.max(0, here < 0 ? (direction > 0 ? 0 : items.length - 1) : here + direction))];
    all(".current").forEach((element) => element.classList.remove("current"));
    next.closest("tr, article")?.classList.add("current");
    next.focus(); next.scrollIntoView({ block: "nearest" });
  }
  function onKey(event) {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) { event.target.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
    if (event.key === "/") {
      const field = [...all("main [data-search]"), ...all("[data-search]")].find(visible);
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (event.key === "j" || event.key === "k") { event.preventDefault(); step(event.key === "j" ? 1 : -1); }
    else if (event.key === "?") { event.preventDefault(); one("#help")?.showModal(); }
  }

  /* the board: filter and sort */
  function board(form) {
    const page = form.parentNode, rows = all("tr[data-claim]", page), homes = new Map(rows.map((row) => [row, row.parentNode]));
    const flat = one(".flat", page), groups = all("section.area", page), cards = all("[data-card]", page);
    const words = new Map(cards.map((card) => [card, `${card.textContent} ${rows.filter((row) => row.dataset.claim.startsWith(`${card.dataset.card}/`)).map((row) => row.textContent).join(" ")}`.toLowerCase()]));
    const order = { refuted: 0, inconclusive: 1, supported: 2, "not run": 3 };
    const keys = {
      verdict: (row) => order[row.dataset.verdict],
      effect: (row) => row.dataset.effect === "" ? Infinity : -Number(row.dataset.effect),
      seconds: (row) => row.dataset.seconds === "" ? Infinity : -Number(row.dataset.seconds),
      newest: (row) => row.dataset.newest === "" ? Infinity : -Number(row.dataset.newest),
    };
    const update = () => {
      const { text, verdict, area, sort } = form.elements;
      const asked = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0, papers = 0;
      for (const card of cards) {
        card.hidden = !(asked.every((word) => words.get(card).includes(word)) && (!verdict.value || card.dataset.verdicts.split("|").includes(verdict.value)) && (!area.value || card.dataset.area === area.value));
        if (!card.hidden) papers += 1;
      }
      for (const row of rows) {
        const said = `${row.textContent} ${row.dataset.area}`.toLowerCase();
        row.hidden = !(asked.every((word) => said.includes(word)) && (!verdict.value || row.dataset.verdict === verdict.value) && (!area.value || row.dataset.area === area.value));
        if (!row.hidden) shown += 1;
      }
      flat.hidden = !sort.value;
      const key = keys[sort.value], body = one("tbody", flat);
      all("tr.unit-of", flat).forEach((heading) => heading.remove());
      if (sort.value === "effect") {
        // Numbers of different units are not compared: each unit has its own order, under its own heading.
        const units = Map.groupBy ? Map.groupBy(rows, (row) => row.dataset.unit) : rows.reduce((found, row) => found.set(row.dataset.unit, [...(found.get(row.dataset.unit) ?? []), row]), new Map());
        for (const [unit, mine] of [...units].sort((a, b) => b[1].length - a[1].length)) {
          const heading = make("tr", { class: "role unit-of" }, make("th", { scope: "rowgroup", colspan: "6" }, unit));
          heading.hidden = mine.every((row) => row.hidden);
          body.append(heading, ...mine.sort((a, b) => key(a) - key(b)));
        }
      } else if (key) body.append(...[...rows].sort((a, b) => key(a) - key(b)));
      else for (const row of rows) homes.get(row).append(row);
      for (const group of groups) {
        group.hidden = Boolean(sort.value) || !all("tr[data-claim]", group).some((row) => !row.hidden);
        all("article", group).forEach((card) => { card.hidden = !all("tr[data-claim]", card).some((row) => !row.hidden); });
      }
      for (const heading of all("tr.role:not(.unit-of)", page)) heading.hidden = !all("tr[data-claim]", heading.parentNode).some((row) => !row.hidden);
      // What was asked for is shown, also among the checks and inside a paper that nobody ran yet.
      if (asked.length || verdict.value) all("article details", one(".all-claims", page)).forEach((element) => { element.open = true; });
      one("output", form).textContent = shown === rows.length ? "" : `${papers} of ${cards.length} papers, ${shown} of ${rows.length} claims`;
    };
    for (const field of form.elements) field.addEventListener("input", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    update();
  }

  /* charts that can be explored: the library is loaded when one is */
  let library = null;
  function loaded() {
    if (window.vegaEmbed) return Promise.resolve();
    library ??= new Promise((done, failed) => { const script = make("script", { src: "/static/vega.js" }); script.onload = done; script.onerror = () => failed(new Error("Vega could not be loaded")); document.head.append(script); });
    return library;
  }
  async function explore(button) {
    button.disabled = true; button.textContent = "loading …";
    try {
      const spec = button.dataset.spec ? await (await fetch(button.dataset.spec)).json() : data.specs[button.dataset.specName];
      await loaded();
      const place = one(".drawing", button.closest("figure"));
      const ink = getComputedStyle(root).getPropertyValue("--quiet").trim(), line = getComputedStyle(root).getPropertyValue("--line").trim();
      const look = { background: "transparent", view: { stroke: "transparent" }, axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: ink, tickColor: ink }, legend: { labelColor: ink, titleColor: ink }, title: { color: ink } };
      place.replaceChildren();
      place.setAttribute("role", "img"); place.setAttribute("aria-label", spec.description);
      delete spec.title;
      spec.width = Math.max(220, Math.min(520, place.clientWidth - 90));
      await window.vegaEmbed(place, spec, { ast: true, actions: false, defaultStyle: false, renderer: "canvas", tooltip: { disableDefaultStyle: true }, config: look });
      button.remove();
    } catch (error) { button.textContent = "not available"; say(String(error)); }
  }

  /* the web: results while typing, and pages that follow a run */
  function liveSearch(form) {
    const results = one("[data-results]");
    let wanted = 0, timer = 0, here = location.search;
    // Back and forward change the address alone: what belongs to it is loaded.
    addEventListener("popstate", () => { if (location.search !== here) location.reload(); });
    const ask = async (push) => {
      // The answer stands right under the question: the map makes room for it.
      const map = one("details.atlas"), asked = form.elements.q.value;
      if (map && asked) map.open = false;
      const fields = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
      const address = `${form.getAttribute("action")}${fields.size ? "?" + fields : ""}`, mine = ++wanted;
      const answer = await fetch(address, { headers: { "X-Fragment": "results" } });
      if (!answer.ok || mine !== wanted) return;
      results.innerHTML = await answer.text();
      history[push ? "pushState" : "replaceState"]({}, "", address);
      here = location.search;
    };
    form.addEventListener("input", (event) => { clearTimeout(timer); timer = setTimeout(() => ask(false), event.target.type === "search" ? 120 : 0); });
    form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); ask(true); });
  }
  /* what the header's search suggests while one types */
  function suggest(form, found) {
    const field = form.elements.q, place = one(".suggestions", form);
    let wanted = 0, timer = 0;
    const close = () => { place.hidden = true; field.setAttribute("aria-expanded", "false"); };
    const ask = async () => {
      const mine = ++wanted, question = field.value.trim();
      if (!question) { close(); return; }
      const nodes = await found(question);
      if (mine !== wanted || !nodes) return;
      if (typeof nodes === "string") place.innerHTML = nodes; else place.replaceChildren(...nodes);
      place.hidden = false; field.setAttribute("aria-expanded", "true");
    };
    field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 120); });
    form.addEventListener("keydown", (event) => {
      const links = all("a", place), here = links.indexOf(document.activeElement);
      if (event.key === "Escape") { wanted += 1; close(); }
      else if (!place.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
        event.preventDefault();
        const next = here + (event.key === "ArrowDown" ? 1 : -1);
        (links[next] ?? field).focus();
      }
    });
    document.addEventListener("click", (event) => { if (!form.contains(event.target)) close(); });
    place.addEventListener("click", close);
  }
  async function suggestionsOf(question) {
    const answer = await fetch(`/catalogue?q=${encodeURIComponent(question)}`, { headers: { "X-Fragment": "suggestions" } });
    return answer.ok ? answer.text() : null;
  }
  /* what an address points at is unfolded */
  function unfold(target) {
    for (let element = target; element; element = element.parentElement?.closest("details")) if (element.tagName === "DETAILS") element.open = true;
  }
  const unfoldHash = () => { const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1))); if (target) { unfold(target); target.scrollIntoView(); } };
  function follow() {
    const main = one("main"), source = one("[data-poll]");
    if (!source) return;
    setTimeout(async () => {
      try {
        if (!document.hidden) {
          const answer = await fetch(location.href, { headers: { "X-Fragment": "main" } });
          if (answer.ok) {
            const fresh = await answer.text();
            if (fresh !== follow.last) {
              const opened = all("details", main).map((element) => element.open), focused = document.activeElement?.className;
              const chosen = all(".controls [name]", main).map((field) => field.value), typing = main.contains(document.activeElement) && document.activeElement.name;
              main.innerHTML = fresh; follow.last = fresh;
              all(".controls [name]", main).forEach((field, i) => { if (i < chosen.length) field.value = chosen[i]; });
              all("form[data-board]", main).forEach(board);
              if (typing) one(`.controls [name="${typing}"]`, main)?.focus();
              all("details", main).forEach((element, i) => { if (i < opened.length) element.open = opened[i]; });
              const log = one(".log"); if (log) log.scrollTop = log.scrollHeight;
              if (focused === "danger") one("button.danger")?.focus();
            }
          }
        }
      } catch { /* the server is gone for a moment */ }
      follow();
    }, Number(source.dataset.poll));
  }

  /* one file: which page is shown, and the search */
  function openFile() {
    fill(document.getElementById("/catalogue"));
    const pages = all("[data-page]"), papers = data.papers, byId = new Map(papers.map((paper) => [paper.id, paper]));
    const words = (text) => text.toLowerCase().normalize("NFKD").match(/[a-z0-9]+/g) ?? [];
    const stem = (word) => word.length > 4 ? word.replace(/(ations?|ings?|ers?|ies|es|s|ed)$/, "") : word;
    const fields = [["name", 4], ["title", 3], ["problem", 2], ["asks", 2], ["does", 1], ["authors", 2]];
    let index = null;
    const build = () => papers.map((paper) => fields.map(([name, weight]) => [weight, new Set(words([paper[name]].flat().join(" ")).map(stem))]));
    const find = (question, filters) => {
      index ??= build();
      const asked = [...new Set(words(question).map(stem))];
      const rarity = asked.map((word) => Math.log(1 + papers.length / (1 + index.filter((entry) => entry.some(([, set]) => set.has(word))).length)));
      return papers.map((paper, i) => [paper, asked.reduce((sum, word, j) => sum + rarity[j] * Math.max(0, ...index[i].map(([weight, set]) => set.has(word) ? weight : 0)), 0)])
        .filter(([paper, score]) => (!asked.length || score > 0) && Object.entries(filters).every(([name, value]) => !value || (name === "runs" ? paper.runs : paper[name] === value)))
        .sort((a, b) => b[1] - a[1]).map(([paper]) => paper);
    };
    const away = (paper) => /^https?:/.test(paper.url) ? [" · ", make("a", { href: paper.url, rel: "noopener noreferrer" }, "the paper")] : [];
    const brief = (paper) => make("article", { class: "paper" },
      make("h3", {}, make("a", { "data-item": "", href: `#/paper/${encodeURIComponent(paper.id)}` }, paper.title)),
      make("p", { class: "facts" }, [paper.authors.slice(0, 3).join(", ") + (paper.authors.length > 3 ? " and others" : ""), `${paper.venue} ${paper.decision}`, paper.award, paper.topic, paper.kind].filter(Boolean).join(" · "), ...away(paper)),
      make("p", {}, paper.problem || paper.does),
      ...(paper.runs ? [make("p", {}, make("a", { class: "chip runs", href: `#/method/${paper.id}` }, "▶ runs here"))] : []));
    const show = (form, place, from) => {
      const found = find(form.elements.q.value, Object.fromEntries(["topic", "kind", "venue", "decision"].map((name) => [name, form.elements[name].value]).concat([["runs", form.elements.runs.checked]])));
      const more = make("button", { type: "button" }, "show more");
      more.addEventListener("click", () => { more.remove(); place.append(...part()); });
      const part = () => { const next = found.slice(from, from + 20); from += 20; return [...next.map(brief), ...(from < found.length ? [more] : [])]; };
      place.replaceChildren(make("p", { class: "facts" }, found.length ? `${found.length} found` : "Nothing found; try the problem in other words."), ...part());
    };
    const entry = (paper) => {
      const place = one('[id="/paper"]');
      const lines = [["The problem", paper.problem], ["What it does", paper.does], ["What would show it", paper.demo]].filter(([, text]) => text);
      place.replaceChildren(make("p", { class: "crumbs" }, make("a", { href: "#/catalogue" }, "Catalogue")), make("h1", {}, paper.title), make("p", { class: "facts" }, paper.authors.join(", ")),
        make("p", { class: "facts" }, [`${paper.venue} ${paper.decision}`, paper.award, paper.topic, paper.kind].filter(Boolean).join(" · "), ...away(paper)),
        ...lines.flatMap(([title, text]) => [make("h2", {}, title), make("p", {}, text)]), make("h2", {}, "In Laureate"),
        make("p", {}, paper.runs ? make("a", { href: `#/method/${paper.id}` }, "It runs here: problem, equation, example and verdicts") : "Not yet: its claims cannot be measured here."));
    };
    const route = () => {
      const [address, query] = (location.hash.slice(1) || pages[0].id).split("?");
      const path = decodeURIComponent(address);
      const parts = path.split("/"), paper = parts[1] === "paper" && byId.get(parts[2]);
      if (paper) entry(paper);
      fill(document.getElementById(parts.slice(0, 3).join("/")));
      const target = document.getElementById(path), page = paper ? one('[id="/paper"]') : (target?.closest("[data-page]") ?? document.getElementById(parts.slice(0, 3).join("/")) ?? pages[0]);
      pages.forEach((other) => { other.hidden = other !== page; });
      all("header.top nav a").forEach((link) => { link.getAttribute("href") === `#${path}` ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current"); });
      all(".claim.target").forEach((element) => element.classList.remove("target"));
      const form = one("form.search", page);
      if (form) {
        const asked = new URLSearchParams(query ?? "");
        if (query) {
          // An address is the whole question: nothing stays of the one before.
          for (const name of ["q", "topic", "kind", "venue", "decision"]) form.elements[name].value = asked.get(name) ?? "";
          form.elements.runs.checked = asked.get("runs") === "1";
          one("details.atlas", page).open = false;
        }
        show(form, one("[data-results]", page), 0);
      }
      if (target && target !== page) { unfold(target); target.classList.add("target"); target.scrollIntoView(); } else scrollTo(0, 0);
    };
    all("form.search").forEach((form) => {
      form.addEventListener("input", () => { if (form.elements.q.value) one("details.atlas").open = false; show(form, one("[data-results]"), 0); });
      form.addEventListener("submit", (event) => event.preventDefault());
    });
    all("[data-quick]").forEach((form) => form.addEventListener("submit", (event) => { event.preventDefault(); location.hash = `#/catalogue?q=${encodeURIComponent(form.elements.q.value)}`; }));
    all("[data-quick]").forEach((form) => suggest(form, async (question) => {
      const hits = find(question, {}).slice(0, 6);
      return [...hits.map((paper) => make("a", { href: `#/${paper.runs ? "method" : "paper"}/${encodeURIComponent(paper.id)}` }, paper.title, make("span", { class: "said" }, `${paper.venue}${paper.runs ? " · runs here" : ""}`))),
        make("a", { class: "all", href: `#/catalogue?q=${encodeURIComponent(question)}` }, hits.length ? "All results" : "Nothing found yet")];
    }));
    addEventListener("hashchange", route);
    route();
  }

  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if ("themeSwitch" in button.dataset) switchTheme();
    else if (button.classList.contains("pause")) hold(button);
    else if ("help" in button.dataset) one("#help").showModal();
    else if (button.dataset.copy) copy(button);
    else if (button.classList.contains("explore")) explore(button);
  });
  document.addEventListener("DOMContentLoaded", async () => {
    await readData();
    all("form[data-board]").forEach(board);
    stillness(document);
    if (data) openFile();
    else {
      all("form[data-live-search]").forEach(liveSearch);
      all("[data-quick]").forEach((form) => suggest(form, suggestionsOf));
      addEventListener("hashchange", unfoldHash); unfoldHash();
      follow();
    }
    // A phone has no room for filters that nobody uses; one that is set stays in sight.
    all("details.filters").forEach((element) => { element.open = matchMedia("(min-width: 46rem)").matches || all("select, input[type=checkbox]", element).some((field) => field.checked || (field.tagName === "SELECT" && field.value)); });
  });
})();
