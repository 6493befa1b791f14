"use strict";
(() => {
  const source = document.getElementById("data"); // the sliders of a report have data, pages of the service have none
  const data = source ? JSON.parse(source.textContent) : null;
  const tip = document.getElementById("tip") || document.createElement("div"); // pages of audits have none

  // Tooltip of a shape, by pointer or keyboard focus.
  const show = (shape, x, y) => {
    tip.textContent = "";
    for (const part of shape.dataset.tip.split("; ")) {
      const line = document.createElement("div");
      line.textContent = part;
      tip.append(line);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18) + "px";
  };
  const hide = () => { tip.hidden = true; };
  document.addEventListener("mousemove", (event) => {
    const shape = event.target.closest ? event.target.closest("[data-tip]") : null;
    if (shape) show(shape, event.clientX, event.clientY);
    else if (!document.activeElement || !document.activeElement.matches("[data-tip]")) hide();
  });
  document.addEventListener("focusin", (event) => {
    if (!event.target.matches("[data-tip]")) return hide();
    const box = event.target.getBoundingClientRect();
    show(event.target, box.left + box.width / 2, box.top + box.height / 2);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    if (!document.activeElement.matches("svg [tabindex]")) return;
    const stops = [...document.activeElement.ownerSVGElement.querySelectorAll("[tabindex]")];
    const next = stops[stops.indexOf(document.activeElement) + (event.key === "ArrowRight" ? 1 : -1)];
    if (next) { next.focus(); event.preventDefault(); }
  });

  // A click on a heading sorts its table; columns of numbers sort by value, others by text.
  const measure = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.number === undefined ? cell.textContent.trim() : Number(cell.dataset.number);
  };
  const read = (value) => {
    if (typeof value === "number") return value;
    const found = /^[<+]?\s?(-?[0-9][0-9,]*(\.[0-9]+)?(e[+-]?[0-9]+)?)/i.exec(value);
    return found ? Number(found[1].replaceAll(",", "")) : NaN;
  };
  const compare = (a, b, numeric) => {
    if (!numeric) return String(a).localeCompare(String(b), undefined, { numeric: true });
    const [x, y] = [read(a), read(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : x - y;
  };
  const orders = new Map(); // by the id of a table, which may be replaced by a newer one
  const sort = (table, place, down) => {
    const headings = [...table.tHead.rows[0].cells];
    for (const other of headings) other.removeAttribute("aria-sort");
    headings[place].setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [measure(row, place), row]);
    const numeric = rows.every(([value]) => value === "–" || !Number.isNaN(read(value)));
    rows.sort(([a], [b]) => compare(a, b, numeric) * (down ? -1 : 1));
    table.tBodies[0].append(...rows.map(([, row]) => row));
    if (table.id) orders.set(table.id, [place, down]);
    table.dispatchEvent(new Event("sorted"));
  };
  const makeSortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((heading, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, place, heading.getAttribute("aria-sort") === "ascending"));
    });
    if (orders.has(table.id)) sort(table, ...orders.get(table.id));
  };

  // On phones the cells of a row stand below each other, each with the heading of its column; roles keep it a table.
  const makeStackable = (table) => {
    const names = [...table.tHead.rows[0].cells].map((heading) => heading.textContent);
    table.setAttribute("role", "table");
    for (const part of [table.tHead, ...table.tBodies]) part.setAttribute("role", "rowgroup");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, place) => {
        cell.setAttribute("role", row.parentElement === table.tHead ? "columnheader" : "cell");
        if (place && row.parentElement !== table.tHead) cell.dataset.label = names[place];
        if (cell.textContent.trim() === "–") cell.classList.add("none");
      });
    }
    table.classList.add("stack");
  };

  // Long tables have a search field and pages.
  const makePaged = (table) => {
    const size = Number(table.dataset.page), body = table.tBodies[0], box = table.closest(".scroll");
    box.classList.remove("long");
    if (body.rows.length <= size) return;
    let first = 0;
    const bar = document.createElement("div"), label = document.createElement("label"), field = document.createElement("input");
    const [back, forth] = ["Previous", "Next"].map((text) => Object.assign(document.createElement("button"), { type: "button", textContent: text }));
    const count = document.createElement("span");
    bar.className = "search";
    label.textContent = "Find a group";
    label.htmlFor = field.id = table.id + "-search";
    field.type = "search";
    field.autocomplete = "off";
    count.setAttribute("role", "status");
    bar.append(label, field, back, count, forth);
    box.before(bar);
    const printed = document.createElement("p"); // paper shows one page of the table, and says so
    printed.className = "printed soft small";
    box.after(printed);
    const show = () => {
      const text = field.value.trim().toLowerCase();
      const found = [...body.rows].filter((row) => row.cells[0].textContent.toLowerCase().includes(text));
      first = Math.max(0, Math.min(first, size * (Math.ceil(found.length / size) - 1)));
      const shown = new Set(found.slice(first, first + size));
      for (const row of body.rows) row.hidden = !shown.has(row);
      back.disabled = first === 0;
      forth.disabled = first + size >= found.length;
      const total = found.length.toLocaleString("en");
      count.textContent = found.length ? first + 1 + " to " + (first + shown.size) + " of " + total : "no group found";
      printed.textContent = "Printed: groups " + count.textContent + ".";
    };
    field.addEventListener("input", () => { first = 0; show(); });
    back.addEventListener("click", () => { first -= size; show(); });
    forth.addEventListener("click", () => { first += size; show(); });
    table.addEventListener("sorted", () => { first = 0; show(); });
    show();
  };
  const enable = (root) => {
    for (const table of root.querySelectorAll("table.data")) makeStackable(table);
    for (const table of root.querySelectorAll("table.sortable")) makeSortable(table);
    for (const table of root.querySelectorAll("table[data-page]")) makePaged(table);
  };
  enable(document);
  document.addEventListener("replaced", (event) => enable(event.target));

  // Long parts are closed on phones, where a reader scrolls past them otherwise.
  if (matchMedia("screen and (max-width: 40rem)").matches) {
    for (const part of document.querySelectorAll("details.wide-open")) part.open = false;
  }

  // Sliders select values that Python computed.
  const short = (x) => String(Number(x.toPrecision(3)));
  const control = (id, change) => {
    const input = document.getElementById(id);
    if (!input) return;
    input.closest(".control").hidden = false;
    input.addEventListener("input", () => change(Number(input.value)));
    change(Number(input.value));
  };
  const bins = new Map(); // rows in the order of the bins, whatever the order of the table
  for (const key of data ? Object.keys(data.models) : []) bins.set(key, [...document.getElementById(key + "-bins").tBodies[0].rows]);
  control("alpha", (place) => {
    const alpha = data.alphas[place];
    document.getElementById("alpha-value").textContent = "alpha = " + short(alpha);
    document.getElementById("alpha").setAttribute("aria-valuetext", "alpha " + short(alpha));
    for (const [key, model] of Object.entries(data.models)) {
      document.getElementById(key + "-tce").textContent = model.tce[place].toFixed(2) + " %";
      bins.get(key).forEach((row, bin) => { row.cells[row.cells.length - 1].textContent = model.rejected[place][bin].toFixed(1) + " %"; });
    }
  });
  control("ratio", (place) => {
    const ratio = data.ratios[place];
    const words = ratio >= 1 ? "underestimation costs " + short(ratio) + " times as much" : "overestimation costs " + short(1 / ratio) + " times as much";
    document.getElementById("ratio-value").textContent = ratio === 1 ? "equal costs" : words;
    document.getElementById("ratio").setAttribute("aria-valuetext", words);
    for (const [key, model] of Object.entries(data.models)) {
      document.getElementById(key + "-cost").textContent = model.costs[place].toPrecision(4);
    }
  });
})();
