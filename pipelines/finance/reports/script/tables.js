// Tables that sort: one for each currency, as amounts of two currencies are never added.
const Tables = (() => {
  "use strict";
  const { element } = Cells;
  const PAGE = 25;
  const UNKNOWN = "not known";
  const words = new Intl.Collator("en", { numeric: true });

  // What is not known comes last, in either direction.
  function order(direction) {
    return (one, other) => {
      if (one === null || other === null) return Number(one === null) - Number(other === null);
      if (typeof one === "string") return direction * words.compare(one, other);
      return direction * Amounts.compare(one, other);
    };
  }
  DataTable.type("exact", { order: { asc: order(1), desc: order(-1) } });
  DataTable.ext.errMode = "throw";

  // Return a table of rows in one currency. `open` gives what a number opens.
  function make(list, rows, currency, open) {
    const columns = list.columns.filter((each) => each.kind !== "group");
    const digits = list.digits[currency] ?? list.digits[""];
    const table = element("table", {},
      element("caption", { class: "unseen" }, `${list.title}, ${currency}`),
      element("thead", {}, headings(columns)));
    if (list.has_sums) {
      table.append(element("tfoot", {}, sums(columns, rows, digits, !list.left_out)));
    }
    const box = element("div", {}, table);
    const made = new DataTable(table, {
      data: rows,
      columns: columns.map((column) => settings(column, digits)),
      order: [],
      searching: false,
      autoWidth: false,
      typeDetect: false,
      pageLength: PAGE,
      layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: paging(rows) },
      language: { paginate: { first: "First", previous: "Previous", next: "Next", last: "Last" } },
    });
    scrolls(box, `${list.title}, ${currency}`);
    box.querySelector("nav")?.setAttribute("aria-label", `Pages of ${list.title}, ${currency}`);
    table.addEventListener("click", (event) => {
      const button = event.target.closest("button.more");
      if (button) toggle(made, button, (row) => open(row, digits));
    });
    return box;
  }

  function paging(rows) {
    return rows.length > PAGE ? "paging" : null;
  }

  function headings(columns) {
    const cells = columns.map((column) => {
      const side = Cells.isNumber(column) ? "number" : "";
      return element("th", { scope: "col", "class": side }, column.label);
    });
    return element("tr", {}, ...cells);
  }

  function sums(columns, rows, digits, isWhole) {
    const cells = columns.map((column, place) => {
      if (place === 0) return element("th", { scope: "row" }, sumLabel(rows.length, isWhole));
      return cell(column, sumOf(column, rows, digits));
    });
    return element("tr", {}, ...cells);
  }

  function cell(column, content) {
    return element("td", { "class": look(column), "data-label": column.label }, content);
  }

  // Of a list that is here in part, a sum may lack rows that the filters select.
  function sumLabel(number, isWhole) {
    const rows = number === 1 ? "1 row" : `${number.toLocaleString("en")} rows`;
    return `Sum of ${rows}${isWhole ? "" : " in this file"}`;
  }

  function sumOf(column, rows, digits) {
    const values = rows.map((row) => row[column.name]);
    if (column.kind === "count") return values.reduce((sum, value) => sum + value, 0).toLocaleString("en");
    if (column.kind !== "amount" && column.kind !== "change") return "";
    if (values.includes(UNKNOWN)) return UNKNOWN;
    return Amounts.format(Amounts.sum(values), digits, column.kind === "change");
  }

  function settings(column, digits) {
    return {
      type: "exact",
      className: look(column),
      createdCell: (cell) => { cell.dataset.label = column.label; }, // where cells stand below each other
      data: (row, type) => type === "display" ? Cells.node(column, row, digits) : Cells.keyOf(column, row),
    };
  }

  function look(column) {
    if (Cells.isNumber(column)) return "number";
    return column.kind === "text" || column.kind === "partner" ? "text" : "short";
  }

  // A box that scrolls can be reached by keyboard.
  function scrolls(box, label) {
    const inner = box.querySelector("table").parentElement;
    inner.classList.add("scroll");
    inner.setAttribute("tabindex", "0");
    inner.setAttribute("role", "region");
    inner.setAttribute("aria-label", label);
  }

  function toggle(made, button, open) {
    const row = made.row(button.closest("tr"));
    const isOpen = row.child.isShown();
    button.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) row.child.hide();
    else open(row.data()).then((content) => row.child(content, "opened").show());
  }

  // A table of few rows, as they come.
  function plain(list, digits) {
    const body = list.rows.map((row) => element("tr", {}, ...list.columns.map((column) =>
      cell(column, Cells.node(column, row, digits)))));
    const table = element("table", {}, element("thead", {}, headings(list.columns)),
      element("tbody", {}, ...body));
    if (list.has_sums) table.append(element("tfoot", {}, sums(list.columns, list.rows, digits, true)));
    return table;
  }

  return { make, plain };
})();
