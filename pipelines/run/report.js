"use strict";
// Numbers are compared digit by digit, as integers: a double would take two long sums for one.
const number = text => {
  const [whole, part = ""] = text.replaceAll(",", "").split(".");
  return BigInt((whole || "0") + part.padEnd(20, "0"));
};
const plain = /^-?[\d,]+(\.\d+)?$/;
const compare = (a, b) => {
  if (a === b) return 0;
  if (a === "" || b === "") return a === "" ? 1 : -1;
  if (!plain.test(a) || !plain.test(b)) return a < b ? -1 : 1;
  const [x, y] = [number(a), number(b)];
  return x < y ? -1 : x > y ? 1 : 0;
};
const sort = head => {
  const place = head.cellIndex, body = head.closest("table").tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending";
  const text = row => row.cells[place].textContent.trim();
  const rows = [...body.rows].sort((a, b) => {
    const empty = (text(a) === "") !== (text(b) === "");
    const order = compare(text(a), text(b));
    return down && !empty ? -order : order;
  });
  for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows);
};
for (const head of document.querySelectorAll("table.sortable th"))
  head.querySelector("button").addEventListener("click", () => sort(head));
const open = () => {
  const found = location.hash && document.getElementById(location.hash.slice(1));
  if (found instanceof HTMLDetailsElement) found.open = true;
};
addEventListener("hashchange", open);
open();
let closed = [];
addEventListener("beforeprint", () => {
  closed.push(...document.querySelectorAll("details:not([open])"));
  for (const each of closed) each.open = true;
});
addEventListener("afterprint", () => {
  for (const each of closed) each.open = false;
  closed = [];
});
