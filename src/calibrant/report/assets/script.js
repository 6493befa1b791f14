"use strict";
(() => {
  const source = document.getElementById("data"); // the sliders of a report have data, pages of the service have none
  const data = source ? JSON.parse(source.textContent) : null;
  const tip = document.getElementById("tip");

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

  // A click on a heading sorts its table; numbers sort by value, not by text.
  const value = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.number === undefined ? cell.textContent.trim() : Number(cell.dataset.number);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const orders = new Map(); // by the id of a table, which may be replaced by a newer one
  const sort = (table, place, down) => {
    const headings = [...table.tHead.rows[0].cells];
    for (const other of headings) other.removeAttribute("aria-sort");
    headings[place].setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(value(a, place), value(b, place)) * (down ? -1 : 1));
    table.tBodies[0].append(...rows);
    if (table.id) orders.set(table.id, [place, down]);
  };
  const enable = (root) => {
    for (const table of root.querySelectorAll("table.sortable")) {
      [...table.tHead.rows[0].cells].forEach((heading, place) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...heading.childNodes);
        heading.append(button);
        button.addEventListener("click", () => sort(table, place, heading.getAttribute("aria-sort") === "ascending"));
      });
      if (orders.has(table.id)) sort(table, ...orders.get(table.id));
    }
  };
  enable(document);
  document.addEventListener("replaced", (event) => enable(event.target));

  // Sliders select values that Python computed.
  const short = (x) => String(Number(x.toPrecision(3)));
  const control = (id, change) => {
    const input = document.getElementById(id);
    if (!input) return;
    input.closest(".control").hidden = false;
    input.addEventListener("input", () => change(Number(input.value)));
    change(Number(input.value));
  };
  control("alpha", (place) => {
    const alpha = data.alphas[place];
    document.getElementById("alpha-value").textContent = "alpha = " + short(alpha);
    document.getElementById("alpha").setAttribute("aria-valuetext", "alpha " + short(alpha));
    for (const [key, model] of Object.entries(data.models)) {
      document.getElementById(key + "-tce").textContent = model.tested.values[place].toFixed(2) + " %";
      const rows = document.getElementById(key + "-bins").tBodies[0].rows;
      for (const row of rows) {
        const rejected = model.tested.rejected[place][Number(row.dataset.bin)];
        const cell = row.querySelector(".rejected");
        const share = (100 * rejected) / Number(row.dataset.rows);
        cell.textContent = share.toFixed(1) + " %";
        cell.dataset.number = share;
      }
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
