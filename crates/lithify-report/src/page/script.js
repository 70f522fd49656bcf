(() => {
  "use strict";
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  const live = document.createElement("div");
  live.className = "hidden";
  live.setAttribute("aria-live", "polite");
  document.body.append(tip, live);
  const hide = () => { tip.hidden = true; };
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x - box.width / 2), innerWidth - box.width - 8);
    const above = y - box.height - 10;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 4 ? y + 16 : above}px`;
  };
  const name = (mark, text) => {
    mark.setAttribute("role", "img");
    mark.setAttribute("tabindex", "0");
    mark.setAttribute("aria-label", text);
    mark.querySelector("title")?.remove();
    const at = () => {
      const box = mark.querySelector(".hit").getBoundingClientRect();
      show(text, box.left + box.width / 2, box.top);
    };
    mark.addEventListener("pointerenter", at);
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("focus", at);
    mark.addEventListener("blur", hide);
  };
  // The drawing for phones has the marks of the wide one, in the same order.
  for (const figure of document.querySelectorAll("figure")) {
    const plots = [...figure.querySelectorAll(".plot")];
    const words = [...plots[0].querySelectorAll(".mark > title")].map((t) => t.textContent);
    for (const plot of plots) {
      plot.querySelectorAll(".mark").forEach((mark, index) => name(mark, words[index]));
    }
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", hide, { passive: true });
  // A cursor over lines reads the rows of the table under the plot.
  for (const plot of document.querySelectorAll("svg[data-lines]")) {
    const [left, right, first, last] = plot.dataset.lines.split(" ").map(Number);
    const table = document.getElementById(plot.dataset.table);
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((c) => c.textContent));
    const places = rows.map((row) => parseFloat(row[0].replace(/\s/g, "")));
    const cursor = plot.querySelector(".cursor");
    let index = -1;
    const point = (next, speak) => {
      if (!rows.length) return;
      index = Math.min(Math.max(0, next), rows.length - 1);
      const x = left + (right - left) * (places[index] - first) / Math.max(1e-9, last - first);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.style.visibility = "visible";
      const values = rows[index].slice(1).map((value, i) => `${names[i + 1]}: ${value}`);
      const text = `${names[0]} ${rows[index][0]}\n${values.join("\n")}`;
      const box = cursor.getBoundingClientRect();
      show(text, box.left, box.top + 10);
      if (speak) live.textContent = text;
    };
    const leave = () => { cursor.style.visibility = "hidden"; hide(); };
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const scale = plot.viewBox.baseVal.width / box.width;
      const at = ((event.clientX - box.left) * scale - left) / (right - left);
      const wanted = first + at * (last - first);
      let nearest = 0;
      places.forEach((place, i) => {
        if (Math.abs(place - wanted) < Math.abs(places[nearest] - wanted)) nearest = i;
      });
      point(nearest, false);
    });
    plot.addEventListener("pointerleave", leave);
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
      const end = { Home: 0, End: rows.length - 1 }[event.key];
      if (step === undefined && end === undefined) return;
      event.preventDefault();
      point(end ?? index + step, true);
    });
  }
})();
