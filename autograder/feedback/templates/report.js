"use strict";
(() => {
  const table = document.getElementById("everybody");
  const search = document.getElementById("search");
  if (table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const points = (text) => (text === "refused" ? -1 : text === "–" ? -2 : Number(text));
    const value = (row, column) => row.cells[column].textContent.trim();
    const compare = (column) => (one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      return column === 0 ? a.localeCompare(b, undefined, { numeric: true }) : points(a) - points(b);
    };
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].sort(compare(column));
      body.append(...(up ? rows : rows.reverse()));
    }));
    search.closest("[hidden]").hidden = false;
    search.addEventListener("input", () => {
      const words = search.value.toLocaleLowerCase().split(/\s+/);
      const rows = [...body.rows];
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLocaleLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      const shown = rows.filter((row) => !row.hidden).length;
      document.getElementById("shown").textContent = `${shown} of ${rows.length} students`;
    });
  }
  const cellOf = (cell) => {
    const text = cell.innerText.replace(/\u00ad/g, "").replace(/\s+/g, " ").trim().replace(/^−(?=[\d.])/, "-");
    const safe = /^[=+@]|^-(?![\d.]+$)/.test(text) ? `'${text}` : text;
    return `"${safe.replace(/"/g, '""')}"`;
  };
  for (const one of document.querySelectorAll("main table")) {
    const section = one.closest("section");
    const link = document.createElement("a");
    link.href = "#";
    link.textContent = "Download as CSV";
    link.setAttribute("aria-label", `Download as CSV: ${one.caption.textContent.split(/[.:]/)[0]}`);
    link.download = `${section.id}.csv`;
    link.addEventListener("click", () => {
      const rows = [...one.rows].map((row) => [...row.cells].map(cellOf).join(","));
      link.href = URL.createObjectURL(new Blob(["\ufeff", rows.join("\r\n"), "\r\n"], { type: "text/csv" }));
    });
    const line = document.createElement("p");
    line.className = "download";
    line.append(link);
    (one.closest(".wide") || one).after(line);
  }
  const closed = () => [...document.querySelectorAll("details:not([open])")];
  let opened = [];
  addEventListener("beforeprint", () => { opened = closed(); opened.forEach((one) => { one.open = true; }); });
  addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));
})();
