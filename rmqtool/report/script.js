"use strict";
(function () {
  const found = JSON.parse(document.getElementById("document").textContent);
  const panel = document.getElementById("zoom");
  const drawing = panel.querySelector("svg"), line = panel.querySelector(".at"), head = panel.querySelector("h3");
  const colours = new Map(found.page.topics.map((name, at) => [name, "t" + at]));
  const number = new Intl.NumberFormat("en-US");
  let row = null, columns = [], first = 0, count = 1;

  function shown(text) {
    return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
      (char) => "\\u" + char.charCodeAt(0).toString(16).padStart(4, "0"));
  }
  function shape(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    return made;
  }
  function cells() { return Math.ceil(row.size / row.cell_bytes); }
  function draw() {
    drawing.replaceChildren();
    drawing.setAttribute("viewBox", "0 0 " + count + " 100");
    for (let cell = first; cell < first + count; cell++) {
      const all = Math.min(row.cell_bytes, row.size - cell * row.cell_bytes);
      let top = 0;
      for (const column of columns) {
        const height = 100 * column.counts[cell] / all;
        if (height > 0) drawing.append(shape("rect", { class: column.colour, x: cell - first, y: top, width: 1, height: height }));
        top += height;
      }
    }
    const low = row.segment + first * row.cell_bytes;
    const high = row.segment + Math.min((first + count) * row.cell_bytes, row.size);
    head.textContent = shown(row.path) + ": " + number.format(low) + " to " + number.format(high);
    line.textContent = "";
  }
  function open(index) {
    row = found.map.rows[index];
    columns = Object.entries(row.cells.states).map(([name, counts]) => ({ name: name, counts: counts, colour: "s-" + name }));
    for (const [name, counts] of Object.entries(row.cells.topics)) columns.push({ name: name, counts: counts, colour: colours.get(name) || "other" });
    if (row.cells.other_topics) columns.push({ name: "all other topics", counts: row.cells.other_topics, colour: "other" });
    first = 0;
    count = cells();
    panel.hidden = false;
    draw();
  }
  function zoom(factor, middle) {
    const wanted = Math.min(Math.max(Math.round(count * factor), 1), cells());
    move(Math.round(middle - wanted / 2), wanted);
  }
  function move(to, wanted) {
    count = wanted;
    first = Math.min(Math.max(to, 0), cells() - count);
    draw();
  }
  function cellAt(event) {
    const box = drawing.getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.999999);
    return first + Math.floor(part * count);
  }
  for (const button of document.querySelectorAll(".map .cell")) {
    button.disabled = false;
    button.addEventListener("click", () => open(Number(button.dataset.row)));
  }
  const middle = () => first + count / 2;
  const steps = {
    "in": () => zoom(0.5, middle()), "out": () => zoom(2, middle()), "all": () => move(0, cells()),
    "left": () => move(first - Math.ceil(count / 4), count), "right": () => move(first + Math.ceil(count / 4), count),
    "close": () => { panel.hidden = true; },
  };
  for (const button of panel.querySelectorAll("button")) button.addEventListener("click", steps[button.value]);
  drawing.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 0.5 : 2, cellAt(event)); }, { passive: false });
  drawing.addEventListener("pointermove", (event) => {
    const cell = cellAt(event), low = row.segment + cell * row.cell_bytes;
    const parts = columns.filter((column) => column.counts[cell]).map((column) => shown(column.name) + " " + number.format(column.counts[cell]) + " B");
    line.textContent = number.format(low) + ": " + parts.join(", ");
  });
  addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
  document.documentElement.dataset.ready = "true";
})();
