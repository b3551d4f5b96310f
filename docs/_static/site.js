// What scrolls by itself can be reached with the Tab key, and the theme's captions are headings of the second level.
document.addEventListener("DOMContentLoaded", () => {
  for (const area of document.querySelectorAll(".highlight pre, .table-wrapper")) {
    area.tabIndex = 0;
  }
  for (const caption of document.querySelectorAll("p.caption[role=heading]")) {
    caption.setAttribute("aria-level", "2");
  }
});
